"""Worlds whose replicas lag, and a session that is used in them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from google.adk.sessions import Session

from cosmos_emulator import Replicas
from tests.reliability.guarantees import Picture, check_guarantees
from tests.reliability.operations import THIS, WHERE, Stage, say
from tests.reliability.simulation import Process, simulate

BOTH = ("events", "sessions")
CONTAINERS = (("events",), ("sessions",), BOTH)
LAGS = (0.05, 0.5, 8.0)
STEP = 0.2  # seconds from one event to the next
NAMES = [f"event{number}" for number in range(1, 6)]
HELD_AFTER = 2  # events, in a world whose replicas are held


@dataclass(frozen=True)
class World:
    """The replicas lag by `lag` seconds or, if `held`, stop in the middle of the writes."""

    containers: tuple[str, ...]
    lag: float = 0.0
    held: bool = False

    def __str__(self) -> str:
        return f"{'+'.join(self.containers)} {'held' if self.held else self.lag}"

    def replicas(self) -> Replicas:
        return Replicas(dict.fromkeys(self.containers, self.lag))

    def hold(self, stage: Stage) -> None:
        """Stops the replicas, if this world holds them."""
        if self.held:
            assert stage.emulator.replicas is not None
            stage.emulator.replicas.hold(*self.containers)


# A single container lags only by half a second; `make interleavings` tries every lag.
FEWER = {} if "RELIABILITY_SEEDS" in os.environ else dict.fromkeys(CONTAINERS[:2], LAGS[1:2])
WORLDS = [
    World(BOTH),
    *(World(each, lag) for each in CONTAINERS for lag in FEWER.get(each, LAGS)),
    *(World(containers, held=True) for containers in CONTAINERS),
]

# One of every kind.
SOME = [World(BOTH), World(BOTH, 0.5), *(World(each, held=True) for each in CONTAINERS)]

Work = Callable[[Stage, World], Awaitable[None]]


def scene(world: World, work: Work, *, flushed: bool = True, **options: Any) -> None:
    """Does the work while replicas lag. Once they have caught up, every guarantee holds."""

    async def run() -> None:
        stage = Stage(replicas=world.replicas(), **options)
        await work(stage, world)
        await stage.victim.service.flush()
        check_guarantees(stage.emulator, stage.history)
        catch_up(stage)
        if flushed:
            await strictly(stage)

    simulate(run)


def catch_up(stage: Stage) -> None:
    assert stage.emulator.replicas is not None
    stage.emulator.replicas.release()
    stage.emulator.replicas.catch_up()


async def strictly(stage: Stage) -> None:
    """A new process sees what is stored, and after it nothing is left to do."""
    expected = Picture(stage.emulator).view(WHERE)
    reader = stage.fresh()
    found = await reader.service.get_session(**THIS)
    assert (found and ([each.id for each in found.events], found.state)) == expected
    await reader.service.close()
    check_guarantees(stage.emulator, stage.history, flushed=expected is not None)


async def used(stage: Stage, world: World) -> Session:
    """The victim's session, with an event every fifth of a second. Its document is projected after
    each."""
    session = stage.session = await stage.create(stage.victim, "first")
    for number, name in enumerate(NAMES):
        if number == HELD_AFTER:
            world.hold(stage)
        await asyncio.sleep(STEP)
        await stage.append(stage.victim, session, say(name, "own", "user:", "app:"))
        await stage.victim.service.flush()
    return session


def truths() -> list[tuple[list[str], dict[str, Any]]]:
    """What was true of that session, one moment after the other: events and the session's own
    state."""
    return [
        (NAMES[:count], {"born": "first"} | ({"own_key": NAMES[count - 1]} if count else {}))
        for count in range(len(NAMES) + 1)
    ]


def own(session: Session) -> dict[str, Any]:
    shared = ("user:", "app:")
    return {key: value for key, value in session.state.items() if not key.startswith(shared)}


def content(stage: Stage, *words: str) -> list[str]:
    """The ids of documents that have content: events, chunks and large values, or one of these
    kinds."""
    found = []
    for body in Picture(stage.emulator).documents:
        text = json.dumps({name: value for name, value in body.items() if name != "event_id"})
        kinds = ("adk_event", "chunk", "state_value")
        if body["document_type"] in kinds or any(word in text for word in words):
            found.append(body["id"])
    return found


async def load(process: Process) -> Session:
    found = await process.service.get_session(**THIS)
    assert found is not None
    return found
