"""Clocks that disagree, equal timestamps, repeated event ids, and events that are delivered
again."""

from __future__ import annotations

import asyncio

import pytest

from cosmosservice.errors import EventIdReusedError
from tests.reliability.guarantees import check_guarantees
from tests.reliability.interleaving import World
from tests.reliability.operations import THIS, WHO, Stage, say
from tests.reliability.simulation import Process, simulate
from tests.reliability.test_interleavings import begin, play, write
from tests.support.adk import event

HOUR = 3600.0


def scene(work, **options):
    """Runs `work(stage)`, then checks every guarantee and what a new process sees."""

    async def run() -> None:
        stage = Stage(**options)
        stage.session = await stage.create(stage.victim, "first")
        await work(stage)
        await stage.victim.service.flush()
        check_guarantees(stage.emulator, stage.history)

    simulate(run)


async def load(process: Process):
    found = await process.service.get_session(**THIS)
    assert found is not None
    return found


def test_a_process_that_has_read_a_value_overwrites_it_however_late_its_clock_is():
    async def work(stage: Stage) -> None:
        skews = [HOUR, -HOUR, 0.0, 2 * HOUR, -2 * HOUR]
        processes = [Process(stage.emulator, skew=skew) for skew in skews]
        for number in range(15):
            process = processes[number % len(processes)]
            with process.clock():
                session = await load(process)
                await stage.append(process, session, say(f"event{number}", "own", "user:", "app:"))
            name = f"event{number}"
            found = await load(stage.fresh())
            assert [found.state[f"{scope}key"] for scope in ("own_", "user:", "app:")] == [name] * 3

    scene(work)


def test_a_session_of_the_user_that_was_read_is_overwritten_by_another_with_a_late_clock():
    async def work(stage: Stage) -> None:
        early, late = (Process(stage.emulator, skew=s) for s in (HOUR, -HOUR))
        with late.clock():
            other = await late.service.create_session(**WHO, session_id="t", state={"born": "t"})
        stage.history.initial["t"] = {"born": "t"}
        with early.clock():
            await stage.append(early, await load(early), say("one", "user:", "app:"))
        with late.clock():
            other = await late.service.get_session(**WHO, session_id="t")
            assert other.state["user:key"] == "one"
            await stage.append(late, other, say("two", "user:", "app:"))
        found = await load(stage.fresh())
        assert (found.state["user:key"], found.state["app:key"]) == ("two", "two")

    scene(work)


@pytest.mark.parametrize("seed", range(12))
def test_processes_whose_clocks_disagree_agree_on_the_outcome(seed):
    async def run() -> None:
        world = World(seed)
        world.clocks_agree = False
        both = [("ann", "s"), ("ann", "t")]
        await begin(world, *both)

        async def act(number: int) -> None:
            process = world.process(skew=HOUR * world.random.choice([-1, 0, 1]))
            with process.clock():
                await write(world, process, both[number % 2], 2, "user:same", "app:same")

        await play(world, *map(act, range(4)))
        await world.check()

    simulate(run, seed)


def test_events_with_one_timestamp_keep_the_order_in_which_they_were_appended():
    async def work(stage: Stage) -> None:
        names = ["c", "a", "d", "b"]
        for name in names:
            said = event(name, id=name, timestamp=1.5, delta={"k": name, "user:k": name})
            await stage.append(stage.victim, stage.session, said)
        found = await load(stage.fresh())
        assert [each.id for each in found.events] == names
        assert (found.state["k"], found.state["user:k"]) == ("b", "b")

    scene(work)


def test_an_event_that_is_delivered_again_is_stored_once():
    async def work(stage: Stage) -> None:
        said = say("one", "own", "user:")
        for _ in range(3):
            await stage.append(stage.victim, stage.session, said)
        await stage.append(stage.victim, stage.session, say("two", "own"))
        await stage.append(stage.victim, stage.session, said)
        other = stage.fresh()
        session = await load(other)
        await stage.append(other, session, said)
        await stage.append(other, session, say("two", "own"))
        assert [each.id for each in session.events] == ["one", "two"]
        assert session.state["own_key"] == "two"
        assert (await load(stage.fresh())).events == session.events

    scene(work)


@pytest.mark.parametrize("mode", ["raise", "rebase"])
def test_an_event_that_two_processes_deliver_is_stored_once(mode):
    async def work(stage: Stage) -> None:
        others = [Process(stage.emulator, on_conflict=mode) for _ in range(3)]
        sessions = [await load(other) for other in others]
        await asyncio.gather(
            *(
                stage.append(other, session, say("one", "own", "app:"))
                for other, session in zip(others, sessions, strict=True)
            )
        )
        await stage.append(others[0], sessions[0], say("two"))
        if mode == "rebase":
            await stage.append(others[1], sessions[1], say("three"))
            assert [each.id for each in sessions[1].events] == ["one", "two", "three"]

    scene(work, on_conflict=mode)


def test_an_event_whose_answer_was_lost_is_recognised_before_newer_ones():
    async def work(stage: Stage) -> None:
        stage.emulator.faults.drop_after(operation="create", container="events", times=None)
        with pytest.raises(Exception, match="Whether it was stored is not known"):
            await stage.append(stage.victim, stage.session, say("one", "user:"))
        stage.emulator.faults.clear()
        other = stage.fresh()
        await stage.append(other, await load(other), say("two", "user:"))
        await stage.append(stage.victim, stage.session, say("one", "user:"))
        assert [each.id for each in stage.session.events] == ["one"]
        found = await load(stage.fresh())
        assert [each.id for each in found.events] == ["one", "two"]
        assert found.state["user:key"] == "two"

    scene(work)


def test_another_event_under_an_id_that_the_session_holds_is_refused():
    async def work(stage: Stage) -> None:
        await stage.append(stage.victim, stage.session, say("one"))
        with pytest.raises(EventIdReusedError, match="Nothing was stored"):
            await stage.victim.service.append_event(stage.session, event("different", id="one"))
        other = stage.fresh()
        with pytest.raises(EventIdReusedError, match="Nothing was stored"):
            await other.service.append_event(await load(other), event("different", id="one"))
        assert len((await load(stage.fresh())).events) == 1
        await stage.append(stage.victim, stage.session, say("two"))

    scene(work)


def test_sessions_may_have_events_with_the_same_id():
    async def run() -> None:
        stage = Stage()
        service = stage.victim.service
        for born in ("first", "second"):
            session = await stage.create(stage.victim, born)
            await service.append_event(session, event(born, id="same", delta={"user:k": born}))
            other = await service.create_session(**WHO)
            await service.append_event(other, event(born, id="same"))
            found = await load(stage.fresh())
            assert [each.content.parts[0].text for each in found.events] == [born]
            assert found.state["user:k"] == born
            await service.delete_session(**THIS)

    simulate(run)
