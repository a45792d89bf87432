"""Any point in a session's past, forks, and a session that is rebuilt from its log alone."""

from __future__ import annotations

import datetime
import os
from unittest import mock

import pytest

from cosmosservice.errors import AlreadyExistsError, SessionNotFoundError
from cosmosservice.sessions.store import history
from tests.support.adk import event, reload, texts
from tests.support.raw import raw_store

WHO = {"app_name": "app", "user_id": "user"}
THIS = WHO | {"session_id": "s"}


@pytest.fixture
def service(open_service):
    return open_service()


@pytest.fixture
async def session(service):
    """A session that was created with state, and has three events."""
    made = await service.create_session(**THIS, state={"a": 0, "kept": True, "user:u": 0})
    for number in range(1, 4):
        delta = {"a": number, f"n{number}": number, "user:u": number}
        said = event(str(number), delta=delta, id=f"e{number}", timestamp=1000.0 + number)
        await service.append_event(made, said)
    return made


def utc(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC)


POINTS = {
    "the beginning": (0, 0),
    "a revision": (2, 2),
    "an event": ("e2", 2),
    "a time between two events": (utc(1002.5), 2),
    "the time of an event": (utc(1002.0), 2),
    "a time before all": (utc(10.0), 0),
    "a time after all": (utc(5000.0), 3),
    "the end": (3, 3),
}


@pytest.mark.parametrize("followed", [True, False], ids=["followed", "not followed"])
@pytest.mark.parametrize("point", POINTS)
async def test_a_session_is_shown_as_it_was(open_service, service, session, point, followed):
    if followed:
        await service.flush()
    at, count = POINTS[point]
    with mock.patch.object(history, "_FAR", 0):  # where it can, it reads no later events
        found = await open_service().get_session_at(**THIS, at=at)
    assert texts(found) == [str(number) for number in range(1, count + 1)]
    own = {f"n{number}": number for number in range(1, count + 1)}
    assert found.state == {"a": count, "kept": True} | own


async def test_before_its_first_event_a_session_has_the_time_of_its_creation(service):
    made = await service.create_session(**THIS)
    created = made.last_update_time
    await service.append_event(made, event("1"))
    past = await service.get_session_at(**THIS, at=0)
    assert past.last_update_time == pytest.approx(created, abs=1e-5)


@pytest.mark.parametrize("events", [0, 2])
async def test_zero_is_before_the_first_event_of_a_session_that_was_created_again_too(
    service, session, events
):
    await service.delete_session(**THIS)
    made = await service.create_session(**THIS, state={"a": "again"})
    for number in range(events):
        await service.append_event(made, event(f"new {number}", delta={"a": number}))
    for found in (
        await service.get_session_at(**THIS, at=0),
        await service.fork_session(**THIS, at=0, new_user_id="other"),
    ):
        assert (found.events, found.state) == ([], {"a": "again"})
    with pytest.raises(ValueError, match="there is no such point: revision 1"):
        await service.get_session_at(**THIS, at=1)


@pytest.mark.needs("charges")
@pytest.mark.parametrize("at", [1, 2])
async def test_what_follows_an_early_revision_is_not_read(open_service, service, session, at):
    for _ in range(6):
        await service.append_event(session, event("x" * 200_000))
    await service.flush()

    async def cost(far):
        charges = []
        other = open_service(on_request_charge=charges.append)
        with mock.patch.object(history, "_FAR", far):
            found = await other.get_session_at(**THIS, at=at)
        assert (len(found.events), found.state["a"]) == (at, at)
        return sum(each.request_units for each in charges)

    assert await cost(far=5) < await cost(far=100) / 2


LOCAL = datetime.datetime(2025, 1, 27, 10, 30)  # where?


@pytest.mark.parametrize("at", [4, -1, "e9", True, 1.5, [], LOCAL, datetime.datetime.min])
async def test_a_point_that_is_not_there_is_refused(service, session, at):
    with pytest.raises(ValueError, match="there is no such point"):
        await service.get_session_at(**THIS, at=at)


async def test_a_session_that_is_not_there_has_no_past(service):
    with pytest.raises(SessionNotFoundError):
        await service.get_session_at(**THIS, at=0)


async def test_what_was_appended_to_a_session_of_the_past_is_refused(service, session):
    past = await service.get_session_at(**THIS, at=1)
    with pytest.raises(ValueError, match="fork_session"):
        await service.append_event(past, event("too late"))
    assert texts(await reload(service, session)) == ["1", "2", "3"]


@pytest.mark.parametrize("point", POINTS)
async def test_a_fork_has_the_history_up_to_a_point(open_service, session, point):
    at, count = POINTS[point]
    service = open_service()
    fork = await service.fork_session(**THIS, at=at, new_session_id="fork")
    assert fork.events == session.events[:count]
    own = {f"n{number}": number for number in range(1, count + 1)}
    assert fork.state == {"a": count, "kept": True, "user:u": 3} | own
    assert await reload(open_service(), fork) == fork
    assert {each.id for each in (await service.list_sessions(**WHO)).sessions} == {"s", "fork"}


async def test_a_fork_and_its_source_go_on_independently(open_service, service, session):
    fork = await service.fork_session(**THIS)
    assert fork.id != "s"
    await service.append_event(fork, event("there", delta={"a": "there"}))
    await service.append_event(session, event("here", delta={"a": "here"}))
    await service.flush()
    assert texts(await reload(open_service(), fork)) == ["1", "2", "3", "there"]
    assert (await reload(open_service(), fork)).state["a"] == "there"
    assert (await reload(open_service(), session)).state["a"] == "here"
    await service.purge_session(**THIS)
    assert texts(await reload(open_service(), fork)) == ["1", "2", "3", "there"]
    again = await open_service().fork_session(**WHO, session_id=fork.id, at="e2")
    assert texts(again) == ["1", "2"]


async def test_a_fork_for_another_user_copies_no_user_state(open_service, service, session):
    fork = await service.fork_session(**THIS, new_user_id="other")
    assert fork.events == session.events
    assert "user:u" not in fork.state
    await service.flush()
    other = {"app_name": "app", "user_id": "other"}
    assert await open_service().get_user_state(**other) == {}
    assert (await open_service().get_session(**other, session_id=fork.id)).state == fork.state


async def test_a_fork_onto_an_id_that_is_in_use_stores_nothing(service, session, cosmos):
    await service.create_session(**WHO, session_id="taken", state={"mine": 1})
    with raw_store(cosmos) as raw:
        before = raw.everything()
    with pytest.raises(AlreadyExistsError, match="Nothing was stored"):
        await service.fork_session(**THIS, new_session_id="taken")
    with raw_store(cosmos) as raw:
        assert raw.everything() == before


async def test_large_events_and_values_are_forked_whole(open_service, service):
    session = await service.create_session(**THIS, state={"large": os.urandom(50_000).hex()})
    said = event(os.urandom(1_500_000).hex(), delta={"more": os.urandom(40_000).hex()})
    await service.append_event(session, said)
    fork = await service.fork_session(**THIS)
    await service.purge_session(**THIS)
    found = await reload(open_service(), fork)
    assert (found.events, found.state) == (session.events, session.state)


@pytest.mark.parametrize("nth", range(1, 9))
async def test_a_fork_that_was_cut_short_anywhere_is_completed_by_whoever_meets_it(
    open_service, session, emulator, nth
):
    service = open_service()
    await service.get_session(**THIS)
    rule = emulator.faults.fail(
        403,
        nth=nth,
        times=None,
        resource="docs",
        where=lambda each: each.operation in ("create", "replace"),
    )
    done = False
    try:
        await service.fork_session(**THIS, new_session_id="fork")
        done = True
    except Exception:
        assert rule.hits
    emulator.faults.clear()
    found = await open_service().get_session(**WHO, session_id="fork")
    if found is None:
        assert not done
    else:
        assert found.events == session.events
        assert found.state == session.state
    again = await open_service().fork_session(**THIS, new_session_id="again")
    assert again.events == session.events


async def test_a_session_is_made_again_from_its_log_alone(open_service, service, cosmos):
    large = os.urandom(50_000).hex()
    session = await service.create_session(**THIS, state={"a": 0, "kept": large})
    await service.append_event(session, event("1", delta={"a": 1}))
    await service.append_event(session, event("2", delta={"b": 2}))
    await service.flush()
    with raw_store(cosmos) as raw:
        for body in raw.sessions.all(document_type="session"):
            raw.sessions.remove(body)
        for body in raw.sessions.all(document_type="state_value"):
            raw.sessions.remove(body)
    report = await open_service().repair_session(**THIS)
    assert report.rebuilt
    found = await reload(open_service(), session)
    assert (found.events, found.state) == (session.events, session.state)


async def test_a_large_initial_state_is_in_the_log_too(open_service, service):
    state = {"large": os.urandom(1_500_000).hex()}
    session = await service.create_session(**THIS, state=dict(state))
    await service.append_event(session, event("1", delta={"large": "small"}))
    await service.flush()
    assert (await open_service().get_session_at(**THIS, at=0)).state == state
    assert (await reload(open_service(), session)).state == {"large": "small"}


async def test_a_session_that_was_restored_before_its_first_event_keeps_its_beginning(open_service):
    service = open_service()
    await service.create_session(**THIS, state={"a": 0, "kept": 1})
    await service.delete_session(**THIS)
    await service.restore_session(**THIS)
    session = await open_service().get_session(**THIS)
    writer = open_service()
    await writer.append_event(session, event("1", delta={"a": 1}, id="e1"))
    await writer.flush()
    assert (await open_service().get_session_at(**THIS, at=2)).state == {"a": 0, "kept": 1}
    assert (await open_service().get_session_at(**THIS, at="e1")).state == {"a": 1, "kept": 1}


async def test_a_fork_whose_source_is_purged_meanwhile_leaves_nothing(
    open_service, session, emulator
):
    service, other = open_service(), open_service()
    await other.get_session(**THIS)

    async def purge(_):
        await other.purge_session(**THIS)
        assert await open_service().get_session(**WHO, session_id="fork") is None

    emulator.faults.call(purge, when="after", operation="create", container="sessions")
    with pytest.raises(SessionNotFoundError, match="was erased while it was copied"):
        await service.fork_session(**THIS, new_session_id="fork")
    emulator.faults.clear()
    with raw_store(emulator) as raw:
        kinds = {each["document_type"] for each in raw.events.all()}
    assert "adk_event" not in kinds


async def test_values_of_a_session_that_was_created_anew_are_purged_with_it(open_service, cosmos):
    service = open_service()
    await service.create_session(**THIS, state={"large": os.urandom(50_000).hex()})
    await service.delete_session(**THIS)
    await service.create_session(**THIS, state={"large": os.urandom(50_000).hex()})
    await service.purge_session(**THIS)
    with raw_store(cosmos) as raw:
        assert raw.sessions.all(document_type="state_value") == []
