"""Reading and writing under lag: what is shown was true, and is whole.

Tests run where the replicas of either container lag, or of both: by nothing, 50 ms, half a second,
8 seconds, or stopped in the middle of the writes.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
from unittest import mock

import pytest
from google.adk.sessions import Session
from google.adk.sessions.base_session_service import GetSessionConfig

from cosmos_emulator.messages import Request
from cosmosservice.account.failures import NotFound
from cosmosservice.cli import archive, session_work
from cosmosservice.cli.moving import Export
from cosmosservice.errors import (
    AlreadyExistsError,
    SessionNotFoundError,
    StaleSessionError,
)
from cosmosservice.hosting.operation import Unbounded
from cosmosservice.sessions.store.store import SessionStore
from tests.reliability.guarantees import APP, Picture
from tests.reliability.lag import (
    NAMES,
    SOME,
    STEP,
    WORLDS,
    World,
    catch_up,
    load,
    own,
    scene,
    truths,
    used,
)
from tests.reliability.operations import THIS, WHERE, WHO, Stage, say
from tests.reliability.simulation import Fate, Killed, Process

everywhere = pytest.mark.parametrize("world", WORLDS, ids=str)
somewhere = pytest.mark.parametrize("world", SOME, ids=str)


@pytest.fixture(autouse=True)
def no_damage_is_reported(caplog):
    """Lag is never taken for damage."""
    yield
    errors = [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR]
    assert errors == []


def check_shown(session) -> int:
    """It was true, it is whole, and its shared state is not older than its events."""
    shown = [each.id for each in session.events]
    assert (shown, own(session)) in truths()
    if shown:
        later = NAMES[len(shown) - 1 :]
        assert session.state["user:key"] in later
        assert session.state["app:key"] in later
    return len(shown)


@everywhere
def test_a_get_shows_what_the_session_had(world):
    async def work(stage: Stage, world: World) -> None:
        await used(stage, world)
        reader = stage.fresh()
        for name in ("next", "after"):
            session = await reader.service.get_session(**THIS)
            if session is None:  # before it was created
                assert world.lag > len(NAMES) * STEP
                return
            if check_shown(session) == len(NAMES):
                break
            with pytest.raises(StaleSessionError):
                await stage.append(reader, session, say(name, "own", "user:"))
        # After the refusal, the log is read up to date.
        assert check_shown(session) == len(NAMES)
        await stage.append(reader, session, say("more", "own"))

    scene(world, work)


@everywhere
@pytest.mark.parametrize("count", [0, 3])
def test_a_get_of_the_newest_events_shows_what_was_the_end_of_the_session(world, count):
    async def work(stage: Stage, world: World) -> None:
        await used(stage, world)
        config = GetSessionConfig(num_recent_events=count)
        reader = stage.fresh()
        session = await reader.service.get_session(**THIS, config=config)
        if session is None:
            assert world.lag > len(NAMES) * STEP
            return
        shown = [each.id for each in session.events]
        possible = [(names[max(0, len(names) - count) :], state) for names, state in truths()]
        assert (shown, own(session)) in possible
        if own(session).get("own_key") == NAMES[-1]:
            await stage.append(reader, session, say("next", "own"))
        else:
            with pytest.raises(StaleSessionError):
                await stage.append(reader, session, say("next", "own"))

    scene(world, work)


@everywhere
@pytest.mark.parametrize("marked", [True, False])
def test_a_current_object_is_accepted_by_another_process(world, marked):
    async def work(stage: Stage, world: World) -> None:
        held = (await used(stage, world)).model_copy(deep=True)
        if not marked:
            held = Session.model_validate_json(held.model_dump_json())
        await stage.append(stage.fresh(), held, say("more", "own"))

    scene(world, work)


@everywhere
def test_an_iteration_is_complete(world):
    async def work(stage: Stage, world: World) -> None:
        session = await used(stage, world)
        await asyncio.sleep(STEP)
        await stage.append(stage.victim, session, say("last"))  # its document is late
        pages = stage.fresh().service.iter_events(**THIS, page_size=2)
        assert [each.id async for each in pages] == [*NAMES, "last"]

    scene(world, work)


@somewhere
def test_an_iteration_shows_the_session_that_was_created_last(world):
    async def work(stage: Stage, world: World) -> None:
        await used(stage, world)
        service = stage.victim.service
        await service.delete_session(**THIS)
        assert [each.id async for each in stage.fresh().service.iter_events(**THIS)] == []
        session = await stage.create(stage.victim, "again")
        await stage.append(stage.victim, session, say("new"))
        assert [each.id async for each in stage.fresh().service.iter_events(**THIS)] == ["new"]

    scene(world, work)


@everywhere
def test_an_export_is_complete(world):
    async def work(stage: Stage, world: World) -> None:
        await used(stage, world)
        reader = stage.fresh()
        file = io.BytesIO()
        with (
            mock.patch.object(session_work, "CosmosSessionService", return_value=reader.service),
            mock.patch.object(session_work, "settings_of"),
        ):
            await Export(file, ()).run(None, None, None, None)
        (found,) = archive.read(file.getvalue().splitlines())
        assert [each.id for each in found.events] == NAMES
        assert found.state["own_key"] == found.state["user:key"] == NAMES[-1]

    scene(world, work)


@somewhere
def test_a_list_shows_what_sessions_had(world):
    async def work(stage: Stage, world: World) -> None:
        await used(stage, world)
        found = (await stage.fresh().service.list_sessions(**WHO)).sessions
        states = [state for _, state in truths()]
        assert all(own(each) in states for each in found)
        if "sessions" not in world.containers:
            assert [each.state["own_key"] for each in found] == NAMES[-1:]

    scene(world, work)


@somewhere
@pytest.mark.parametrize("mode", ["raise", "rebase"])
def test_of_two_appends_of_one_number_one_is_refused(world, mode):
    async def work(stage: Stage, world: World) -> None:
        session = stage.session = await stage.create(stage.victim, "first")
        catch_up(stage)
        other = Process(stage.emulator, on_conflict=mode)
        held = await load(other)
        world.hold(stage)
        for name in NAMES[:3]:
            await asyncio.sleep(STEP)
            await stage.append(stage.victim, session, say(name, "own", "user:"))
        if mode == "rebase":
            await stage.append(other, held, say("late", "own", "user:"))
            assert [each.id for each in held.events] == [*NAMES[:3], "late"]
        else:
            with pytest.raises(StaleSessionError):
                await stage.append(other, held, say("late", "own", "user:"))
            # A repeated delivery is recognised, whatever its sequence number.
            await stage.append(other, held, say(NAMES[0], "own", "user:"))

    scene(world, work, on_conflict=mode)


@somewhere
def test_a_large_event_of_another_process_is_read_whole(world):
    async def work(stage: Stage, world: World) -> None:
        session = stage.session = await stage.create(stage.victim, "first")
        await stage.append(stage.victim, session, say("one", "own"))
        world.hold(stage)
        await asyncio.sleep(STEP)
        await stage.append(stage.victim, session, say("large", "own", large=True))
        await stage.victim.service.flush()
        found = await stage.fresh().service.get_session(**THIS)
        shown = [] if found is None else [each.id for each in found.events]
        assert shown in ([], ["one"], ["one", "large"])
        assert [each.id async for each in stage.fresh().service.iter_events(**THIS)] == [
            "one",
            "large",
        ]

    scene(world, work)


@everywhere
def test_a_process_sees_what_it_wrote_first(world):
    async def work(stage: Stage, world: World) -> None:
        """The first request to each of two containers is a write."""

        async def look(store: SessionStore) -> None:
            written = {"id": "first", "session_id": "s", "user_id": "u"}
            await store.sessions.create(written)
            await store.sessions.create(written | {"id": "second"})
            await store.events.create(written)
            for container, key in ((store.sessions, "u"), (store.events, "s")):
                try:
                    await container.read("first", key)
                except NotFound:
                    pytest.fail("this process does not see what it has written")
                await container.delete("first", key)
            await store.sessions.delete("second", "u")

        await stage.fresh().service.in_store(Unbounded("look"), look)

    scene(world, work)


@everywhere
def test_a_process_sees_its_own_write(world):
    async def work(stage: Stage, world: World) -> None:
        session = stage.session = await stage.create(stage.victim, "first")
        await stage.append(stage.victim, session, say("one", "own"))
        await stage.victim.service.flush()
        assert [each.id for each in (await load(stage.victim)).events] == ["one"]
        writer = stage.fresh()
        session.id = "t"  # a session object from another process: the first operation is an append
        with pytest.raises(SessionNotFoundError):
            await stage.append(writer, session, say("two"))
        session.id = "s"
        await stage.append(writer, session, say("three", "own"))
        assert [each.id async for each in writer.service.iter_events(**THIS)] == ["one", "three"]

    scene(world, work)


@everywhere
def test_a_repair_moves_no_revision_back(world):
    async def work(stage: Stage, world: World) -> None:
        session = await used(stage, world)
        before = Picture(stage.emulator).dump()
        report = await stage.fresh().service.repair_session(**THIS)
        assert report.healthy
        assert (report.events, report.late, report.rebuilt) == (len(NAMES), 0, False)
        assert Picture(stage.emulator).dump() == before
        await asyncio.sleep(STEP)
        await stage.append(stage.victim, session, say("last"))
        report = await stage.fresh().service.repair_session(**THIS)
        assert (report.healthy, report.events, report.late) == (True, len(NAMES) + 1, 1)
        assert Picture(stage.emulator).sessions[WHERE]["revision"] == len(NAMES) + 1

    scene(world, work)


@somewhere
def test_a_session_that_exists_is_not_created_again(world):
    async def work(stage: Stage, world: World) -> None:
        await used(stage, world)
        other = stage.fresh()
        with pytest.raises(AlreadyExistsError):
            await other.service.create_session(**THIS, state={"born": "again", "user:key": "no"})
        assert Picture(stage.emulator).sessions[WHERE]["state"]["born"] == "first"

    scene(world, work)


@everywhere
def test_a_delete_is_done_and_a_restore(world):
    async def work(stage: Stage, world: World) -> None:
        session = await used(stage, world)
        await stage.fresh().service.delete_session(**THIS)
        assert Picture(stage.emulator).sessions[WHERE]["status"] == "deleted"
        with pytest.raises(SessionNotFoundError):
            await stage.append(stage.victim, session, say("late"))
        await stage.fresh().service.delete_session(**THIS)
        await stage.fresh().service.restore_session(**THIS)
        assert Picture(stage.emulator).sessions[WHERE]["status"] == "active"
        assert [each.id async for each in stage.fresh().service.iter_events(**THIS)] == NAMES
        # An old replica may still show the document of the first delete. It is not trusted.
        await stage.fresh().service.delete_session(**THIS)
        assert Picture(stage.emulator).sessions[WHERE]["status"] == "deleted"
        again = await stage.create(stage.fresh(), "again")
        assert again.state["user:key"] == NAMES[-1] or world.containers != ("events",)
        await stage.fresh().service.delete_session(**THIS)
        assert Picture(stage.emulator).sessions[WHERE]["status"] == "deleted"

    scene(world, work)


@somewhere
def test_a_restore_sees_a_delete_that_stopped_after_its_tombstone(world):
    async def work(stage: Stage, world: World) -> None:
        await used(stage, world)
        deleter = stage.fresh()

        async def die(request: Request) -> Fate:
            body = json.loads(request.body) if request.operation == "replace" else {}
            return Fate.KILLED_BEFORE if body.get("status") == "deleted" else Fate.ARRIVES

        deleter.wire.hold = die
        with pytest.raises(Killed):
            await deleter.service.delete_session(**THIS)
        await stage.fresh().service.restore_session(**THIS)
        assert [each.id async for each in stage.fresh().service.iter_events(**THIS)] == NAMES

    scene(world, work)


@somewhere
def test_a_key_that_two_sessions_of_a_user_write_keeps_the_later_value(world):
    async def work(stage: Stage, world: World) -> None:
        session = stage.session = await stage.create(stage.victim, "first")
        other = stage.fresh()
        second = await other.service.create_session(**WHO, session_id="t", state={"born": "t"})
        stage.history.initial["t"] = {"born": "t"}
        world.hold(stage)
        for number in range(3):
            await asyncio.sleep(1.5)  # more than the uncertainty of the server's Date
            await stage.append(stage.victim, session, say(f"a{number}", "user:", "app:"))
            await asyncio.sleep(1.5)
            await stage.append(other, second, say(f"b{number}", "user:", "app:"))
        await other.service.flush()
        states = Picture(stage.emulator).states
        assert states["user_state", WHO["user_id"]]["state"] == {"key": "b2"}
        assert states["app_state", f"app:{APP}"]["state"] == {"key": "b2"}

    scene(world, work)
