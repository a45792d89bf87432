"""Erasing under lag: what a purge reports as erased is erased, and nothing comes back."""

from __future__ import annotations

import asyncio
import datetime
import json
from unittest import mock

import pytest

from cosmos_emulator.messages import Request
from cosmosservice.errors import StaleSessionError, StateUpdatePendingError
from cosmosservice.sessions.store.clock import HybridClock
from tests.reliability.guarantees import APP, Picture
from tests.reliability.lag import BOTH, SOME, WORLDS, World, catch_up, content, scene, used
from tests.reliability.operations import THIS, USER, WHERE, WHO, Stage, late, say
from tests.reliability.simulation import EPOCH, Fate, Killed, all_waiting, simulate
from tests.reliability.test_guarantees import tamper

everywhere = pytest.mark.parametrize("world", WORLDS, ids=str)
somewhere = pytest.mark.parametrize("world", SOME, ids=str)
NOW = datetime.timedelta(0)
BIG = "secret" * 6_000  # goes into a document of its own
DAY = 24 * 3600.0
FUTURE = int((EPOCH + 10 * DAY) * 1e6)


def user_state(stage: Stage) -> dict:
    return Picture(stage.emulator).states["user_state", USER]


def only_stubs(stage: Stage, *words: str) -> None:
    """Only stubs are left of the user's sessions."""
    assert content(stage, "secret", *words) == []
    for session in Picture(stage.emulator).sessions.values():
        assert (session["status"], session["state"]) == ("purged", {})


async def with_everything(stage: Stage, world: World) -> None:
    """A session with small and large events and values, and a predecessor."""
    await used(stage, world)
    service = stage.victim.service
    await service.delete_session(**THIS)
    session = stage.session = await stage.create(stage.victim, "again", own_key=BIG)
    await asyncio.sleep(0.2)
    await stage.append(stage.victim, session, say("large", "own", large=True))
    await stage.append(stage.victim, session, say("last", "own", "user:"))
    await service.flush()


@everywhere
@pytest.mark.parametrize("deleted", [False, True], ids=["", "deleted before"])
def test_a_purge_erases_what_it_says(world, deleted):
    async def work(stage: Stage, world: World) -> None:
        await with_everything(stage, world)
        if deleted:
            await stage.victim.service.delete_session(**THIS)
        report = await stage.fresh().service.purge_session(**THIS)
        stage.history.purged.add(WHERE)
        assert report.sessions == 1
        # Seven events; a chunk or two, and the large value.
        assert report.documents >= 7 + 1 + 1
        assert content(stage, "secret") == []
        assert Picture(stage.emulator).sessions[WHERE]["status"] == "purged"
        again = await stage.fresh().service.purge_session(**THIS)
        assert (again.sessions, again.documents) == (0, 0)

    scene(world, work)


@everywhere
def test_a_purge_of_the_user_finds_every_session(world):
    async def work(stage: Stage, world: World) -> None:
        await with_everything(stage, world)
        other = await stage.victim.service.create_session(
            **WHO, session_id="t", state={"born": "t", "user:secret": BIG, "app:kept": 1}
        )
        stage.history.initial["t"] = {"born": "t"}
        await stage.append(stage.victim, other, say("in t", "own", "user:"))
        await stage.victim.service.flush()
        report = await stage.fresh().service.purge_user(**WHO, include_state=True)
        stage.history.purged |= {WHERE, (USER, "t")}
        assert report.sessions == 2
        only_stubs(stage)
        assert (user_state(stage)["state"], user_state(stage)["stamps"]) == ({}, {})
        app = Picture(stage.emulator).states["app_state", f"app:{APP}"]
        assert app["state"]["kept"] == 1

    scene(world, work, flushed=False)


@everywhere
def test_what_purge_deleted_marks_as_purged_is_erased(world):
    async def work(stage: Stage, world: World) -> None:
        await with_everything(stage, world)
        await stage.fresh().service.delete_session(**THIS)
        await asyncio.sleep(0.2)
        report = await stage.fresh().service.purge_deleted(older_than=NOW)
        status = Picture(stage.emulator).sessions[WHERE]["status"]
        assert (status == "purged") == (report.sessions == 1) == (content(stage, "secret") == [])
        # A list that was too old did not contain it. The next call finds it.
        catch_up(stage)
        await stage.fresh().service.purge_deleted(older_than=NOW)
        stage.history.purged.add(WHERE)
        only_stubs(stage)

    scene(world, work)


@somewhere
def test_a_session_that_is_created_during_the_purge_of_its_predecessor_stays(world):
    async def work(stage: Stage, world: World) -> None:
        await used(stage, world)
        purger, creator = stage.fresh(), stage.fresh()
        await purger.service.delete_session(**THIS)

        async def create(_) -> None:
            stage.emulator.faults.clear()
            session = await stage.create(creator, "again")
            await stage.append(creator, session, say("new", "own"))
            await creator.service.flush()

        stage.emulator.faults.call(create, when="before", operation="query", container="events")
        await purger.service.purge_session(**THIS)
        assert [each.id async for each in stage.fresh().service.iter_events(**THIS)] == ["new"]

    scene(world, work)


# --- what must not come back


async def no_user_state(request: Request) -> Fate:
    """An outage that concerns only the user's state."""
    body = json.loads(request.body) if request.operation in ("create", "replace") else {}
    names = (body.get("document_type"), body.get("owner"))
    is_user_state = names[0] == "user_state" or names[1] == "user_state.app"
    return Fate.DROPPED_BEFORE if is_user_state else Fate.ARRIVES


@pytest.mark.parametrize("existed", [False, True], ids=["first state", "more state"])
@pytest.mark.parametrize("way", ["append", "create"])
@pytest.mark.parametrize("size", [1, 6_000], ids=["small", "large"])
def test_state_that_could_not_be_merged_does_not_come_back(existed, way, size):
    async def work(stage: Stage, world: World) -> None:
        state = {"user:addr": "secret"} if existed else {}
        session = await stage.create(stage.victim, "first", **state)
        await stage.victim.service.flush()
        delta = {"user:addr": "secret" * size, "app:kept": "kept"}
        stage.victim.wire.hold = no_user_state
        said = say("two", "own")
        said.actions.state_delta = delta
        service = stage.victim.service
        if way == "append":
            write = service.append_event(session, said)
        else:
            write = service.create_session(**WHO, session_id="t", state={"born": "t"} | delta)
        with pytest.raises(StateUpdatePendingError):
            await write
        report = await stage.fresh().service.purge_user(**WHO, include_state=True)
        stage.victim.wire.hold = None
        assert report.sessions == (2 if way == "create" else 1)
        for _ in range(6):  # background retries
            await asyncio.sleep(60)
            await stage.victim.service.flush()
        assert await stage.victim.service.get_session(**THIS) is None
        only_stubs(stage, "addr")
        assert user_state(stage)["state"] == {}
        # The user continues.
        fresh = await stage.fresh().service.create_session(**WHO, state={"user:addr": "new"})
        assert fresh.state == {"user:addr": "new"} | (
            {"app:kept": "kept"} if "app:kept" in fresh.state else {}
        )
        assert user_state(stage)["state"] == {"addr": "new"}

    simulate_in(World(BOTH, 0.5), work)


@pytest.mark.parametrize("purged", [False, True], ids=["", "after its session was purged"])
def test_a_change_of_the_future_does_not_come_back(purged):
    """A host's clock is ahead, and it does not use the server's time. Its session has expired when
    it is erased, so the change exists only in the log and in a request under way."""

    async def work(stage: Stage, world: World) -> None:
        session = await stage.create(stage.victim, "first", **{"user:key": "old"})
        arrive = asyncio.Event()

        async def wait(request: Request) -> Fate:
            if await no_user_state(request) is not Fate.ARRIVES:
                await arrive.wait()
            return Fate.ARRIVES

        stage.victim.wire.hold = wait
        with mock.patch.object(HybridClock, "next", return_value=FUTURE):
            append = asyncio.create_task(
                stage.victim.service.append_event(session, say("secret", "user:"))
            )
            await all_waiting()
        await asyncio.sleep(8)
        if purged:
            assert (await stage.fresh().service.purge_session(**THIS)).sessions == 1
        await stage.fresh().service.purge_user(**WHO, include_state=True)
        arrive.set()
        await append
        await stage.victim.service.flush()
        assert user_state(stage)["state"] == {}

    simulate_in(World(BOTH), work, ttl=5)


# --- what no document names any more


@pytest.mark.parametrize("how", ["purge_session", "purge_user"])
@pytest.mark.parametrize("after", [700, 1700, 2900])
def test_a_session_that_has_expired_can_be_erased(how, after):
    async def work(stage: Stage, world: World) -> None:
        session = await stage.create(stage.victim, "first", own_key=BIG)
        await stage.append(stage.victim, session, say("large", "own", large=True))
        await stage.append(stage.victim, session, say("secret", "own"))
        await stage.victim.service.close()
        await asyncio.sleep(after)
        assert await stage.fresh().service.get_session(**THIS) is None
        target = THIS if how == "purge_session" else WHO
        report = await getattr(stage.fresh().service, how)(**target)
        left = content(stage, "secret")
        if after < 1800:  # the records live three times as long as the ttl
            assert report.sessions == 1
            assert report.documents >= 3
            assert left == []
        else:
            assert report.sessions == 1

    simulate_in(World(BOTH, 0.5), work, ttl=600)


def test_the_events_of_a_session_without_a_document_can_be_erased():
    async def work(stage: Stage, world: World) -> None:
        await used(stage, world)
        document = Picture(stage.emulator).sessions[WHERE]
        tamper(stage, lambda body: body["id"] == document["id"], lambda _: None)
        report = await stage.fresh().service.purge_session(**THIS)
        assert (report.sessions, report.documents) == (1, 5)
        assert content(stage) == []

    simulate_in(World(BOTH), work)


@pytest.mark.parametrize("how", ["purge_session", "purge_user", "repair_session"])
def test_chunks_of_a_refused_event_whose_clean_up_failed_are_removed(how):
    async def work(stage: Stage, world: World) -> None:
        session = stage.session = await stage.create(stage.victim, "first")
        catch_up(stage)
        other = stage.fresh()
        held = await other.service.get_session(**THIS)
        await stage.append(stage.victim, session, say("one", "own"))
        stage.emulator.faults.fail(403, container="events", operation="delete", times=None)
        stage.history.cut_off.add("large")
        with pytest.raises(StaleSessionError):
            await stage.append(other, held, say("large", large=True))
        stage.emulator.faults.clear()
        assert len(Picture(stage.emulator).chunks) == 2
        target = WHO if how == "purge_user" else THIS
        if how == "repair_session":
            assert (await stage.fresh().service.repair_session(**THIS)).healthy
            assert len(Picture(stage.emulator).chunks) == 2  # a document may still name them
            await asyncio.sleep(DAY + 60)
        await getattr(stage.fresh().service, how)(**target)
        assert Picture(stage.emulator).chunks == {}
        if how == "repair_session":
            assert [each.id async for each in stage.fresh().service.iter_events(**THIS)] == ["one"]

    simulate_in(World(BOTH, 8.0), work)


def test_an_upload_that_was_under_way_during_the_purge_is_removed_a_day_later():
    async def work(stage: Stage, world: World) -> None:
        session = stage.session = await stage.create(stage.victim, "first")
        await stage.append(stage.victim, session, say("one", "own"))
        other = stage.fresh()
        held = await other.service.get_session(**THIS)

        async def purge(_) -> None:
            stage.emulator.faults.clear()
            await stage.victim.service.purge_session(**THIS)
            other.kill()

        # Between its two chunks: the second one arrives after the purge.
        creates = {"container": "events", "operation": "create"}
        stage.emulator.faults.call(purge, when="before", nth=2, **creates)
        with pytest.raises(Killed):
            await stage.append(other, held, say("large", large=True))
        assert len(Picture(stage.emulator).chunks) == 1
        await asyncio.sleep(DAY + 60)
        await stage.fresh().service.purge_deleted()
        assert Picture(stage.emulator).chunks == {}

    simulate_in(World(BOTH), work)


@somewhere
def test_a_purge_of_what_is_not_there_says_so(world):
    async def work(stage: Stage, world: World) -> None:
        world.hold(stage)
        service = stage.fresh().service
        for report in (
            await service.purge_session(**THIS),
            await service.purge_user(**WHO),
            await service.purge_deleted(older_than=NOW),
        ):
            assert (report.sessions, report.documents) == (0, 0)

    simulate_in(world, work)


def test_a_state_that_nobody_has_merged_is_erased_with_its_session():
    """The writer of the log died before its user state was merged."""

    async def work(stage: Stage, world: World) -> None:
        await late(stage)
        await stage.fresh().service.purge_user(**WHO, include_state=True)
        await asyncio.sleep(60)
        await stage.victim.service.get_session(**THIS)
        await stage.victim.service.flush()
        assert user_state(stage)["state"] == {}

    simulate_in(World(BOTH), work)


def simulate_in(world: World, work, **options) -> None:
    async def run() -> None:
        await work(Stage(replicas=world.replicas(), **options), world)

    simulate(run)
