"""Every operation ends within its deadline, whatever the server does. In virtual time."""

from __future__ import annotations

import asyncio

import pytest

from cosmosservice.errors import (
    StateUpdatePendingError,
    StorageError,
    ThrottledError,
    UnavailableError,
)
from tests.reliability.operations import THIS, WHO
from tests.reliability.simulation import Process, simulate, store
from tests.support.adk import event

TIMEOUT = 30.0

SILENCES = {
    "before it is applied": lambda faults, **match: faults.silent(when="before", **match),
    "after it was applied": lambda faults, **match: faults.silent(when="after", **match),
    "an answer without end": lambda faults, **match: faults.endless(drip=0.05, **match),
    "half an answer": lambda faults, **match: faults.truncate(**match),
    "429 without end": lambda faults, **match: faults.throttle(retry_after_ms=500, **match),
}


async def append(service, session):
    await service.append_event(session, event("x", delta={"user:k": 1, "own": 1}))


OPERATIONS = {
    "create": lambda service, _: service.create_session(**WHO, state={"user:k": 1}),
    "get": lambda service, _: service.get_session(**THIS),
    "append": append,
    "list": lambda service, _: service.list_sessions(**WHO),
    "user state": lambda service, _: service.get_user_state(**WHO),
    "delete": lambda service, _: service.delete_session(**THIS),
    "restore": lambda service, _: service.restore_session(**THIS),
    "purge": lambda service, _: service.purge_session(**THIS),
    "repair": lambda service, _: service.repair_session(**THIS),
}


@pytest.mark.parametrize("silence", SILENCES)
@pytest.mark.parametrize("opened", [True, False], ids=["opened", "connecting"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_ends_within_its_deadline(operation, opened, silence):
    async def scene():
        loop = asyncio.get_running_loop()
        emulator = store()
        await Process(emulator).service.create_session(**THIS)
        process = Process(emulator, timeout=TIMEOUT)
        session = await Process(emulator).service.get_session(**THIS)
        if opened:
            session = await process.service.get_session(**THIS)
        SILENCES[silence](emulator.faults, times=None)
        began = loop.time()
        with pytest.raises((UnavailableError, ThrottledError)) as raised:
            await OPERATIONS[operation](process.service, session)
        assert loop.time() - began <= TIMEOUT + 0.001
        emulator.faults.clear()
        if silence == "429 without end" and opened:
            assert isinstance(raised.value, ThrottledError)
            assert "Nothing was stored" in str(raised.value)
        return str(raised.value)

    said = simulate(scene)
    assert "not known" in said or "Nothing was stored" in said or "Nothing was changed" in said


@pytest.mark.parametrize("nth", range(1, 6))
@pytest.mark.parametrize("silence", SILENCES)
def test_a_silence_that_begins_in_the_middle_ends_too_and_nothing_acknowledged_is_lost(
    silence, nth
):
    async def scene():
        loop = asyncio.get_running_loop()
        emulator = store()
        process = Process(emulator, timeout=TIMEOUT)
        session = await process.service.create_session(**THIS)
        SILENCES[silence](emulator.faults, nth=nth, times=None, resource="docs")
        answered = []
        for number in range(3):
            began = loop.time()
            try:
                await process.service.append_event(
                    session, event(str(number), delta={"user:k": number})
                )
                answered.append(str(number))
            except StateUpdatePendingError:
                answered.append(str(number))
            except (UnavailableError, ThrottledError):
                pass
            assert loop.time() - began <= TIMEOUT + 0.001
        emulator.faults.clear()
        found = await Process(emulator).service.get_session(**THIS)
        stored = [each.content.parts[0].text for each in found.events]
        assert [each for each in stored if each in answered] == answered

    simulate(scene)


@pytest.mark.parametrize("timeout", [2.0, TIMEOUT])
@pytest.mark.parametrize("then", [429, 403, 503, "silence"])
@pytest.mark.parametrize("first", ["drop_after", "silent"])
def test_an_error_does_not_deny_what_an_earlier_attempt_has_stored(first, then, timeout):
    async def scene():
        emulator = store()
        process = Process(emulator, timeout=timeout)
        session = await process.service.create_session(**THIS)
        match = {"operation": "create", "container": "events"}
        faults, later = emulator.faults, match | {"nth": 2, "times": None}
        if first == "drop_after":
            faults.drop_after(**match)
        else:
            faults.silent(**match, when="after")
        if then == 429:
            faults.throttle(retry_after_ms=100, **later)
        elif then == "silence":
            faults.silent(**later)
        else:
            faults.fail(then, **later)
        with pytest.raises(StorageError, match="Whether it was stored is not known"):
            await process.service.append_event(session, event("x"))
        faults.clear()
        found = await Process(emulator).service.get_session(**THIS)
        assert len(found.events) == 1

    simulate(scene)


def test_an_error_of_a_read_says_that_it_stored_nothing():
    async def scene():
        emulator = store()
        process = Process(emulator, timeout=TIMEOUT)
        await process.service.create_session(**THIS)
        emulator.faults.silent(times=None)
        with pytest.raises(UnavailableError, match="Nothing was stored by this request"):
            await process.service.get_session(**THIS)
        emulator.faults.clear()

    simulate(scene)


def test_a_silent_connection_is_given_up_for_another_one_in_time():
    async def scene():
        emulator = store()
        process = Process(emulator, timeout=TIMEOUT)
        session = await process.service.create_session(**THIS)
        rule = emulator.faults.silent(when="after", operation="create", container="events")
        await process.service.append_event(session, event("x"))
        assert rule.hits == 1
        found = await Process(emulator).service.get_session(**THIS)
        assert len(found.events) == 1

    simulate(scene)


def test_work_of_any_length_ends_only_when_there_is_no_answer():
    async def scene():
        loop = asyncio.get_running_loop()
        emulator = store()
        process = Process(emulator, timeout=TIMEOUT)
        session = await process.service.create_session(**THIS)
        for number in range(30):
            await process.service.append_event(session, event(str(number)))
        emulator.faults.latency = 5.0
        began = loop.time()
        report = await process.service.purge_session(**THIS)
        assert loop.time() - began > TIMEOUT
        assert report.sessions == 1

    simulate(scene)


@pytest.mark.parametrize("silence", SILENCES)
def test_closing_ends_however_much_is_due(silence):
    async def scene():
        loop = asyncio.get_running_loop()
        emulator = store()
        process = Process(emulator, timeout=TIMEOUT)
        for number in range(40):
            session = await process.service.create_session(**WHO, session_id=str(number))
            await process.service.append_event(session, event("x"))
        SILENCES[silence](emulator.faults, times=None)
        began = loop.time()
        await process.service.close()
        assert loop.time() - began <= TIMEOUT + 0.001
        emulator.faults.clear()
        emulator.clear_requests()
        await asyncio.sleep(300)
        assert not list(emulator.requests)  # a closed service does not try again
        found = await Process(emulator).service.get_session(**WHO, session_id="39")
        assert len(found.events) == 1

    simulate(scene)


def test_a_delete_does_not_wait_beyond_its_deadline_for_a_slow_projection():
    async def scene():
        loop = asyncio.get_running_loop()
        emulator = store()
        process, other = Process(emulator, timeout=TIMEOUT), Process(emulator)
        session = await process.service.create_session(**THIS)
        await process.service.append_event(session, event("x"))
        found = await other.service.get_session(**THIS)
        await other.service.append_event(found, event("y"))
        await other.service.flush()  # so that the projection of the first process is refused
        emulator.faults.delay(14.0, times=None, container="sessions")
        slow = asyncio.ensure_future(process.service.flush())
        await asyncio.sleep(0.1)
        began = loop.time()
        with pytest.raises(UnavailableError, match="delete_session"):
            await process.service.delete_session(**THIS)
        assert loop.time() - began <= TIMEOUT + 0.001
        await slow
        emulator.faults.clear()
        await process.service.delete_session(**THIS)
        assert await process.service.get_session(**THIS) is None

    simulate(scene)
