"""Time is the server's: the clocks of some or all processes are fast or slow."""

from __future__ import annotations

import asyncio
import datetime
import time
from email.utils import formatdate
from unittest import mock

import pytest

from cosmosservice.account.server_clock import ServerClock
from cosmosservice.sessions.store.clock import HybridClock
from tests.reliability.guarantees import APP, Picture
from tests.reliability.lag import BOTH, World, catch_up
from tests.reliability.operations import LARGE, THIS, USER, WHERE, WHO, Stage, say
from tests.reliability.simulation import EPOCH, Process, simulate

HOUR, DAY = 3600.0, 24 * 3600.0
TTL = 600
SKEWS = {
    "right": [0.0, 0.0],
    "one an hour ahead": [0.0, HOUR],
    "one an hour slow": [0.0, -HOUR],
    "both three minutes slow": [-180.0, -180.0],
    "both a day ahead": [DAY, DAY],
    "a day apart": [DAY, -DAY],
}
WORLDS = [World(BOTH), World(BOTH, 8.0)]


def run(world: World, work, **options) -> None:
    async def scene() -> None:
        await work(Stage(replicas=world.replicas(), **options))

    simulate(scene)


@pytest.mark.parametrize("who", SKEWS)
def test_a_session_in_use_stays_and_an_unused_one_expires(who):
    skews, world = SKEWS[who], WORLDS[list(SKEWS).index(who) % 2]

    async def work(stage: Stage) -> None:
        processes = [Process(stage.emulator, skew=skew, ttl=TTL) for skew in skews]
        with processes[0].clock():
            session = await stage.create(processes[0], "first", own_key="v" * 40_000)
            await stage.append(processes[0], session, say("large", large=True))
            await processes[0].service.flush()
        names = ["large"]
        # In use for six times the ttl.
        for number in range(24):
            await asyncio.sleep(150)
            process = processes[number % 2]
            with process.clock():
                found = await process.service.get_session(**THIS)
                assert found is not None
                assert [each.id for each in found.events] == names
                assert found.state["own_key"] == "v" * 40_000
                if number % 10 == 0:
                    names.append(f"event{number}")
                    await stage.append(process, found, say(names[-1]))
        assert found.events[0].content.parts[0].inline_data.data == LARGE
        for process in processes:
            await process.service.close()
        now = asyncio.get_running_loop().time() + EPOCH
        document = Picture(stage.emulator).sessions[WHERE]
        assert now < document["expires_at"] <= now + TTL * 1.1 + 2
        # Unused, it expires: not before the ttl has passed, and then at once.
        await asyncio.sleep(TTL - 180)
        for skew, shown in ((skews[0], True), (skews[1], True)):
            reader = Process(stage.emulator, skew=skew)
            with reader.clock():
                assert (await _listed(reader)) == shown
            reader.kill()
        await asyncio.sleep(document["expires_at"] - EPOCH - asyncio.get_running_loop().time() + 3)
        for skew in skews:
            reader = Process(stage.emulator, skew=skew)
            with reader.clock():
                assert await reader.service.get_session(**THIS) is None
                assert not await _listed(reader)

    run(world, work)


async def _listed(process: Process) -> bool:
    return bool((await process.service.list_sessions(**WHO)).sessions)


@pytest.mark.parametrize("skew", [DAY, -DAY])
@pytest.mark.parametrize("first", ["append", "create"])
@pytest.mark.parametrize("second", ["append", "create"])
def test_a_key_keeps_its_later_value(skew, first, second):
    async def work(stage: Stage) -> None:
        wrong, right = Process(stage.emulator, skew=skew), stage.fresh()
        last = ""
        for number, (process, way) in enumerate(
            [(wrong, first), (right, second), (wrong, second), (right, first)]
        ):
            catch_up(stage)
            with process.clock():
                last = f"value{number}"
                state = {"user:key": last, "app:key": last} if way == "create" else {}
                session = await process.service.create_session(
                    **WHO, session_id=f"s{number}", state={"born": last} | state
                )
                stage.history.initial[last] = {"born": last}
                if way == "append":
                    await stage.append(process, session, say(last, "user:", "app:"))
            states = Picture(stage.emulator).states
            for kind, partition in (("user_state", USER), ("app_state", f"app:{APP}")):
                assert states[kind, partition]["state"] == {"key": last}
                stamp = states[kind, partition]["stamps"]["key"][0] / 1e6
                assert abs(stamp - EPOCH - asyncio.get_running_loop().time()) <= 2
            await asyncio.sleep(2)  # the server's time is in whole seconds

    run(World(BOTH), work)


@pytest.mark.parametrize("way", ["append", "create"])
def test_a_value_of_the_future_is_overwritten(way):
    """Stored by a host whose clock was ahead, before stamps used the server's time."""

    async def work(stage: Stage) -> None:
        session = await stage.create(stage.victim, "first")
        with mock.patch.object(HybridClock, "next", return_value=int((EPOCH + DAY) * 1e6)):
            await stage.append(stage.victim, session, say("old", "user:", "app:"))
        fresh = stage.fresh()
        state = {"user:key": "new", "app:key": "new"} if way == "create" else {}
        session = await fresh.service.create_session(**WHO, session_id="t", state=state)
        if way == "append":
            await fresh.service.append_event(session, say("new", "user:", "app:"))
        found = await stage.fresh().service.get_session(**THIS)
        assert (found.state["user:key"], found.state["app:key"]) == ("new", "new")

    run(World(BOTH), work)


@pytest.mark.parametrize("skew", [40 * DAY, -40 * DAY])
def test_purge_deleted_counts_days_by_the_server(skew):
    async def work(stage: Stage) -> None:
        wrong = Process(stage.emulator, skew=skew)
        await stage.create(stage.victim, "first")
        with wrong.clock():
            await wrong.service.delete_session(**THIS)
        await asyncio.sleep(29 * DAY)
        for days, purged in ((0, 0), (2, 1)):
            await asyncio.sleep(days * DAY)
            other = Process(stage.emulator, skew=-skew)
            with other.clock():
                month = datetime.timedelta(days=30)
                assert (await other.service.purge_deleted(older_than=month)).sessions == purged

    run(World(BOTH), work)


def test_an_event_that_nobody_projected_is_renewed():
    """The process that keeps the session in use has not seen the event."""

    async def work(stage: Stage) -> None:
        session = stage.session = await stage.create(stage.victim, "first")
        catch_up(stage)
        reader = stage.fresh()
        await reader.service.get_session(**THIS)
        stage.emulator.replicas.hold("events")
        await stage.append(stage.victim, session, say("one"))
        stage.victim.kill()
        for _ in range(28):
            await asyncio.sleep(150)
            assert await reader.service.get_session(**THIS) is not None
        await reader.service.flush()
        catch_up(stage)
        found = await stage.fresh().service.get_session(**THIS)
        assert [each.id for each in found.events] == ["one"]

    run(World(BOTH), work, ttl=TTL)


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="only Linux tells")
def test_time_goes_on_while_the_machine_is_suspended(monkeypatch):
    """A clock that stops meanwhile would make stamps hours old until the next answer."""
    clock = ServerClock()
    clock.answered({"Date": formatdate(time.time())})
    monotonic, since_boot, now = time.monotonic(), time.clock_gettime, time.time()
    monkeypatch.setattr(time, "monotonic", lambda: monotonic)
    monkeypatch.setattr(time, "clock_gettime", lambda which: since_boot(which) + 8 * 3600)
    monkeypatch.setattr(time, "time", lambda: now + 8 * 3600)
    assert clock.now() == pytest.approx(now + 8 * 3600, abs=5)
