"""A task that is cancelled at any point leaves a usable service and a correct session object.

The task is cancelled after every possible number of event loop steps, in virtual time, and at every
request with the real I/O thread. Odd numbers run on a thread and even ones on the caller's loop;
`make interleavings` tries all numbers on both.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from functools import partial

import pytest

from cosmos_emulator import Emulator
from cosmosservice import CosmosSessionService
from tests.reliability.crash_matrix import _check, _session_object
from tests.reliability.guarantees import Picture
from tests.reliability.operations import OPERATIONS, THIS, WHERE, Stage, attempt, say
from tests.reliability.simulation import simulate
from tests.support.adk import event

STRIDE = 1 if "RELIABILITY_SEEDS" in os.environ else 2
CANCELLED = [
    each
    for each in OPERATIONS
    if each.name
    in {
        "create with user and app state",
        "append",
        "append with session, user and app state",
        "append, rebasing",
        "delete",
        "create again",
        "restore",
        "purge",
    }
]


@pytest.mark.parametrize("executor", ["a thread", "this loop"])
@pytest.mark.parametrize("operation", CANCELLED, ids=lambda each: each.name)
def test_cancelled_after_any_number_of_steps(operation, executor):
    async def scene(steps: int) -> bool:
        stage = Stage(**operation.options)
        if executor == "this loop":
            stage.victim.wire.slow = True
            await stage.victim.service.__aenter__()
        await operation.prepare(stage)
        work = operation.run(stage, stage.victim)
        task = asyncio.create_task(attempt(work))
        for _ in range(steps):
            await asyncio.sleep(0)
        finished = task.done()
        task.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        _session_object(stage)
        if stage.event is not None:
            _held_if_stored(stage)
        assert outcome in ("ok", "cancelled") or isinstance(outcome, asyncio.CancelledError)
        again = await attempt(operation.run(stage, stage.victim))
        assert again in ("ok", operation.again.__name__ if operation.again else "ok")
        await stage.victim.service.flush()
        await _check(stage, operation, [operation.after])
        return finished

    # From 1: a task that is cancelled before its first step never began.
    steps = 2 if executor == "this loop" and STRIDE > 1 else 1
    while not simulate(partial(scene, steps)):
        steps += STRIDE
    assert steps > 2


def _held_if_stored(stage: Stage) -> None:
    held = [each.id for each in stage.session.events]
    log = Picture(stage.emulator).live(WHERE)
    there = [each["event_id"] for each in log if each["document_type"] == "adk_event"]
    if stage.event.id in held or stage.event.id in there:
        assert held == there


@pytest.mark.parametrize("executor", ["a thread", "this loop"])
def test_cancelling_one_of_several_appends_leaves_the_others_alone(executor):
    async def scene(steps: int) -> bool:
        stage = Stage()
        if executor == "this loop":
            stage.victim.wire.slow = True
            await stage.victim.service.__aenter__()
        stage.session = await stage.create(stage.victim, "first")
        names = ["one", "two", "three"]
        tasks = [
            asyncio.create_task(
                attempt(stage.append(stage.victim, stage.session, say(name, "user:")))
            )
            for name in names
        ]
        for _ in range(steps):
            await asyncio.sleep(0)
        finished = tasks[1].done()
        tasks[1].cancel()
        outcome = await asyncio.gather(*tasks, return_exceptions=True)
        assert [outcome[0], outcome[2]] == ["ok", "ok"]
        assert isinstance(outcome[1], asyncio.CancelledError) or outcome[1] in ("ok", "cancelled")
        await stage.append(stage.victim, stage.session, say("four"))
        held = [each.id for each in stage.session.events]
        await stage.victim.service.flush()
        found = await stage.fresh().service.get_session(**THIS)
        assert [each.id for each in found.events] == held
        assert found.state == stage.session.state
        assert {"one", "three", "four"} <= set(held)
        return finished

    # From 1: a task that is cancelled before its first step never began.
    steps = 2 if executor == "this loop" and STRIDE > 1 else 1
    while not simulate(partial(scene, steps)):
        steps += STRIDE
    assert steps > 2


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("nth", [1, 2, 3, 4])
async def test_cancelled_at_a_request_with_the_real_thread(nth, when):
    with Emulator() as emulator:
        service = CosmosSessionService.embedded(emulator)
        session = await service.create_session(**THIS, state={"born": "first"})
        loop = asyncio.get_running_loop()
        said = event("one", delta={"k": 1, "user:k": 1, "app:k": 1})
        task = asyncio.create_task(service.append_event(session, said))
        arrived = threading.Event()

        async def cancel(_) -> None:
            loop.call_soon_threadsafe(task.cancel)
            loop.call_soon_threadsafe(loop.call_soon, arrived.set)
            await asyncio.to_thread(arrived.wait)

        rule = emulator.faults.call(cancel, when=when, nth=nth)
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        if nth <= 3:  # the fourth follows in the background
            assert isinstance(outcome, asyncio.CancelledError)
            assert session.events == [said]
        await service.append_event(session, event("two"))
        await service.flush()
        assert rule.hits == 1
        fresh = CosmosSessionService.embedded(emulator)
        assert await fresh.get_session(**THIS) == session
        await fresh.close()
        await service.close()


async def test_a_refusal_whose_caller_was_cancelled_is_not_logged(caplog):
    with Emulator() as emulator:
        service, other = (CosmosSessionService.embedded(emulator) for _ in range(2))
        session = await service.create_session(**THIS, state={"born": "first"})
        newer = await other.get_session(**THIS)
        await other.append_event(newer, event("other"))
        task = asyncio.create_task(service.append_event(session, event("one")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert session.events == []
        await other.close()
        await service.close()
        del task
        gc.collect()
    assert "never retrieved" not in caplog.text
