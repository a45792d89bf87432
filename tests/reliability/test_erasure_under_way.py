"""A user is erased while another process is in the middle of an operation. Nothing comes back when
that process continues or, a day later, if it has died there.

`make interleavings` stops that process at every request, `make test` at one in four.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable

import pytest

from cosmos_emulator.messages import Request
from cosmosservice.errors import CosmosServiceError
from tests.reliability.guarantees import Picture
from tests.reliability.lag import BOTH, World, catch_up
from tests.reliability.operations import REFUSALS, THIS, USER, WHO, Stage, late, say
from tests.reliability.simulation import Fate, Killed, Process, simulate

STEP = 4 if os.environ.get("RELIABILITY_SEEDS", "1") == "1" else 1  # every request, if asked
DAY = 24 * 3600.0
WORDS = ("one", "two", "other", "secret")

Work = Callable[[Stage, Process], Awaitable[object]]


async def append(stage: Stage, process: Process, size: int = 1) -> None:
    session = await process.service.get_session(**THIS)
    said = say("two", "own")
    said.actions.state_delta = {"user:addr": "secret" * size, "own": "secret" * size}
    await process.service.append_event(session, said)


async def create(stage: Stage, process: Process, size: int = 1) -> None:
    state = {"user:addr": "secret" * size, "own": "secret" * size}
    await process.service.create_session(**WHO, session_id="t", state=state)


async def read_and_repair(stage: Stage, process: Process) -> None:
    """Merges and projects what a dead process has appended."""
    await process.service.get_session(**THIS)
    await process.service.flush()
    await process.service.repair_session(**THIS)


OPERATIONS: dict[str, Work] = {
    "append": append,
    "append, large": lambda *both: append(*both, size=6_000),
    "create": create,
    "create, large": lambda *both: create(*both, size=6_000),
    "repair": read_and_repair,
}


async def prepare() -> tuple[Stage, Process]:
    """A process has appended an event and died before its user state was merged. Another process
    has read that state. From now on the replicas stand still."""
    stage = Stage(replicas=World(BOTH).replicas())
    await late(stage)
    await stage.victim.service.close()
    process = stage.fresh()
    await process.service.get_user_state(**WHO)
    World(BOTH, held=True).hold(stage)
    return stage, process


def requests_of(work: Work) -> int:
    """The number of requests that it sends."""
    count = 0

    async def hold(_: Request) -> Fate:
        nonlocal count
        count += 1
        return Fate.ARRIVES

    async def scene() -> None:
        stage, process = await prepare()
        process.wire.hold = hold
        await work(stage, process)
        await process.service.flush()

    simulate(scene)
    return count


def texts(stage: Stage) -> str:
    """Everything that is stored of the user, except for ids."""
    kept = [
        {name: value for name, value in body.items() if name not in ("id", "event_id")}
        for body in Picture(stage.emulator).documents
        if body["document_type"] != "app_state"
    ]
    return json.dumps(kept)


def no_older_key(stage: Stage) -> None:
    """The user's state contains only changes from after its erasure."""
    found = Picture(stage.emulator).states["user_state", USER]
    assert all(stamp > found["erased"] for stamp, _ in found["stamps"].values())


@pytest.mark.parametrize("dies", [False, True], ids=["", "dies"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_nothing_comes_back(operation, dies):
    nothing_comes_back(operation, dies, STEP)


def nothing_comes_back(operation: str, dies: bool, step: int) -> None:
    work = OPERATIONS[operation]
    for nth in range(1, requests_of(work) + 1, step):
        simulate(lambda nth=nth: _scene(work, nth, dies))


async def _scene(work: Work, nth: int, dies: bool) -> None:
    stage, process = await prepare()
    arrive, seen, stored = asyncio.Event(), 0, False

    async def hold(request: Request) -> Fate:
        nonlocal seen, stored
        seen += 1
        if seen == nth:
            await arrive.wait()
            return Fate.KILLED_AFTER if dies else Fate.ARRIVES
        if seen < nth:
            stored = stored or request.operation == "create"
        return Fate.ARRIVES

    async def run() -> None:
        await work(stage, process)
        await process.service.flush()

    process.wire.hold = hold
    running = asyncio.create_task(run())
    await asyncio.sleep(5)
    await stage.fresh().service.purge_user(**WHO, include_state=True)
    arrive.set()
    for _ in range(3):
        await asyncio.sleep(60)  # background retries
    try:
        await running
    except (CosmosServiceError, *REFUSALS, Killed):
        pass
    catch_up(stage)
    no_older_key(stage)
    if stored or work is read_and_repair:
        assert await stage.fresh().service.get_user_state(**WHO) == {}
    await asyncio.sleep(DAY + 60)
    await stage.fresh().service.purge_deleted()
    no_older_key(stage)
    if _statuses(stage) == {"purged"}:  # it was not created after the purge
        assert not [word for word in WORDS if f'"{word}' in texts(stage)]
        kinds = {each["document_type"] for each in Picture(stage.emulator).documents}
        assert not kinds & {"chunk", "state_value", "adk_event"}


def _statuses(stage: Stage) -> set[str]:
    return {each["status"] for each in Picture(stage.emulator).sessions.values()}
