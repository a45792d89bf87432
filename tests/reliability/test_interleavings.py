"""Interleavings of several processes, each reproducible from its seed.

RELIABILITY_SEEDS=20 tries twenty times as many seeds (`make interleavings`).
"""

from __future__ import annotations

import contextlib
import os

import pytest

from tests.reliability.interleaving import World
from tests.reliability.simulation import Killed, simulate

HERE = ("ann", "s")
TIMES = int(os.environ.get("RELIABILITY_SEEDS", "1"))
SEEDS = range(9 * TIMES)  # every kind of trouble with every lag
# Some worlds lose requests and answers, some kill processes, some do neither.
TROUBLES = [{}, {"losses": 0.05}, {"losses": 0.03, "kills": 0.03}]


# In two of three worlds of each kind, replicas lag by up to this many seconds. A request takes
# 1 ms.
LAGS = [0.0, 0.05, 8.0]


def world_of(seed: int) -> World:
    kind = seed // len(TROUBLES)
    return World(seed, **TROUBLES[seed % len(TROUBLES)], lag=LAGS[kind % len(LAGS)])


async def begin(world: World, *sessions, **state) -> None:
    """Creates the sessions, without trouble."""
    process = world.process()
    losses, world._losses, kills, world._kills = world._losses, 0.0, world._kills, 0.0
    await world.play(_begin(world, process, sessions, state))
    world.catch_up()
    world._losses, world._kills = losses, kills


async def _begin(world, process, sessions, state) -> None:
    for where in sessions:
        assert await world.create(process, where, **state) is not None
    await process.service.close()


async def until_killed(actor) -> None:
    with contextlib.suppress(Killed):
        await actor


async def play(world: World, *actors) -> None:
    await world.play(*(until_killed(actor) for actor in actors))


async def write(world: World, process, where, count: int, *keys: str) -> None:
    """Appends, and loads the session again when its object is stale."""
    session = await world.get(process, where)
    for _ in range(count):
        for _ in range(50):
            if session is not None and await world.append(process, session, *keys):
                break
            session = await world.get(process, where)
            if session is None:
                return
        else:
            raise AssertionError("never got its turn")


@pytest.mark.parametrize("seed", SEEDS)
def test_of_writers_from_one_revision_one_wins_and_the_others_leave_no_trace(seed):
    async def scene() -> None:
        world = world_of(seed)
        await begin(world, HERE)
        await play(
            world, *(write(world, world.process(), HERE, 2, "k", "user:k") for _ in range(4))
        )
        await world.check()
        outcome = {call.outcome for call in world.calls if call.name == "append"}
        if not world._kills:  # a process may be killed before it learns that its event is stored
            assert "ok" in outcome
        if not world._losses:
            assert "StaleSessionError" in outcome
            assert len(world.model.lives[HERE].events) == 8

    simulate(scene, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_when_writers_rebase_all_land_in_one_order_that_all_readers_see(seed):
    async def scene() -> None:
        world = world_of(seed)
        world.rebasing = True
        await begin(world, HERE)

        async def rebase(process) -> None:
            session = await world.get(process, HERE)
            for _ in range(3):
                if session is not None:
                    await world.append(process, session, "k", "app:k")
            # The session object has taken in, in order, the events that it was rebased onto.
            if session is not None and not world._losses:
                events = tuple(each.id for each in session.events)
                moments = world.model.between(HERE, 0, world.step)
                assert events in [each.events for each in moments]

        await play(world, *(rebase(world.process(on_conflict="rebase")) for _ in range(4)))
        await world.check()
        if not world._losses:
            assert {call.outcome for call in world.calls} == {"ok"}
            assert len(world.model.lives[HERE].events) == 12

    simulate(scene, seed)


@pytest.mark.parametrize("seed", range(18 * TIMES))
def test_deleters_creators_restorers_and_readers_agree_on_what_is_true(seed):
    async def scene() -> None:
        world = world_of(seed)
        await begin(world, HERE)

        async def act(process) -> None:
            session = None
            for _ in range(4):
                action = world.random.choice(
                    ["append", "append", "append", "get", "delete", "create", "restore", "repair"]
                    + ["purge"] * (seed % 4 == 0)
                )
                if action == "append":
                    if session is None or world.random.random() < 0.5:
                        session = await world.get(process, HERE)
                    if session is not None:
                        await world.append(process, session, "k", "user:k", "app:k")
                elif action == "create":
                    session = await world.create(process, HERE, **{"user:c": 1}) or session
                else:
                    session = await getattr(world, action)(process, HERE) or session
            await process.service.flush()

        options = {"on_conflict": "rebase"} if seed % 2 else {}
        world.rebasing = bool(options)
        await play(world, *(act(world.process(**options)) for _ in range(4)))
        await world.check()

    simulate(scene, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_sessions_of_one_user_write_its_state(seed):
    async def scene() -> None:
        world = world_of(seed)
        sessions = [("ann", "s"), ("ann", "t")]
        await begin(world, *sessions)

        async def act(number: int) -> None:
            process = world.process()
            await write(world, process, sessions[number], 2, "user:same", f"user:own{number}")
            await world.get(process, sessions[1 - number])
            await write(world, process, sessions[number], 1, "user:same")

        await play(world, act(0), act(1))
        await world.check()

    simulate(scene, seed)


@pytest.mark.parametrize("seed", range(1, 1 + TIMES))
def test_64_sessions_write_the_state_of_one_app(seed):
    async def scene() -> None:
        world = World(seed, losses=0.01)
        sessions = [(f"user{number}", "s") for number in range(64)]
        await begin(world, *sessions)
        processes = [world.process() for _ in range(4)]

        async def act(number: int) -> None:
            process = processes[number % 4]
            await write(world, process, sessions[number], 1, "app:same", f"app:own{number}")

        await play(world, *map(act, range(64)))
        await world.check()
        merged = world.model.shared["app", ""]
        assert len(merged) == 65

    simulate(scene, seed)


def test_the_same_seed_gives_the_same_run():
    async def scene() -> list:
        world = World(7, losses=0.05)
        await begin(world, HERE)
        await play(world, *(write(world, world.process(), HERE, 2, "user:k") for _ in range(3)))
        return [(call.name, call.start, call.end, call.outcome) for call in world.calls]

    assert simulate(scene, 7) == simulate(scene, 7)
