"""Random histories of sessions with memories and artifacts: nothing of a session that lives is lost
or strange, and nothing of one that is over stays.

Three processes share two session ids. Requests and answers are lost, processes are killed, replicas
lag. `make interleavings` tries more seeds.
"""

from __future__ import annotations

import asyncio
import datetime
import os
import random
import string
from typing import Any

import pytest
from google.genai import types

from cosmos_emulator import Replicas
from cosmosservice.errors import AlreadyExistsError, SessionNotFoundError, StaleSessionError
from tests.reliability.simulation import Fate, Killed, simulate
from tests.support.adk import event, texts
from tests.together.processes import ADA, LARGE, Process, left_of, store

SEEDS = range(2 * int(os.environ.get("RELIABILITY_SEEDS", "1")))
LAGS = (0.0, 0.5, 8.0)
IDS = ("s", "t")
DAY = 24 * 3600
# What a process does, and how often.
WORK = {"use": 9, "delete": 2, "purge": 2, "restore": 2, "create": 3, "get": 2, "sweep": 1}
ANSWERS = (AlreadyExistsError, SessionNotFoundError, StaleSessionError, Killed)
FATES = [Fate.DROPPED_BEFORE, Fate.DROPPED_AFTER, Fate.KILLED_AFTER, Fate.ARRIVES]


class World:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        lag = LAGS[seed % len(LAGS)]
        self.emulator = store(Replicas(lag=lag) if lag else None)
        self.said: dict[str, set[str]] = {}  # of each text: what was acknowledged

    def process(self) -> Process:
        made = Process(self.emulator, whole=self.random.random() < 0.8)

        async def hold(_: Any) -> Fate:
            await asyncio.sleep(self.random.random() / 20)
            return self.random.choices(FATES, [1, 1, 0.5, 97.5])[0]

        made.wire.hold = hold
        return made

    async def work(self) -> None:
        process = self.process()
        for _ in range(14):
            names = ADA | {"session_id": self.random.choice(IDS)}
            work = self.random.choices(list(WORK), list(WORK.values()))[0]
            try:
                await self._do(work, process, names)
            except ANSWERS as told:
                if isinstance(told, Killed):
                    process = self.process()

    async def _do(self, work: str, process: Process, names: dict[str, str]) -> None:
        sessions = process.sessions
        if work == "use":
            await self._use(process, names)
        elif work == "delete":
            await sessions.delete_session(**names)
        elif work == "purge":
            await sessions.purge_session(**names)
        elif work == "restore":
            await sessions.restore_session(**names)
        elif work == "create":
            await sessions.create_session(**names)
        elif work == "get":
            await sessions.get_session(**names)
        else:
            await sessions.purge_deleted(older_than=datetime.timedelta(0))

    async def _use(self, process: Process, names: dict[str, str]) -> None:
        session = await process.sessions.get_session(**names)
        if session is None:
            session = await process.sessions.create_session(**names)
        text = "".join(self.random.choices(string.ascii_lowercase, k=8))
        done = self.said.setdefault(text, set())
        await process.sessions.append_event(session, event(f"word {text}"))
        if process.memory is not None and process.artifacts is not None:
            await process.memory.add_session_to_memory(session)
            done.add("memory")
            data = text.encode() * self.random.choice([1, LARGE])
            part = types.Part.from_bytes(data=data, mime_type="text/plain")
            await process.artifacts.save_artifact(**names, filename=text, artifact=part)
            done.add("file")

    async def seen(self, session_id: str) -> tuple[set[str], set[str], set[str]]:
        """The texts of a session's events, memories and files; nothing if there is no session."""
        process, names = Process(self.emulator), ADA | {"session_id": session_id}
        assert process.memory is not None
        assert process.artifacts is not None
        session = await process.sessions.get_session(**names)
        if session is None:
            return set(), set(), set()
        events = {str(each).removeprefix("word ") for each in texts(session)}
        found = await process.memory.search_memory(**names, query="word", limit=500)
        memories = {each.content.parts[0].text.removeprefix("word ") for each in found.memories}
        files = set(await process.artifacts.list_artifact_keys(**names))
        for each in files:
            assert await process.artifacts.load_artifact(**names, filename=each) is not None
        return events, memories, files


async def _play(seed: int) -> None:
    world = World(seed)
    await asyncio.gather(*(world.work() for _ in range(3)))
    if world.emulator.replicas is not None:
        world.emulator.replicas.catch_up()
    before = {each: await world.seen(each) for each in IDS}
    for events, memories, files in before.values():
        assert memories <= events
        for text in events:
            assert text in memories or "memory" not in world.said[text]
            assert text in files or "file" not in world.said[text]
    for days in (2, 75):
        world.emulator.clock.advance(days * DAY)
        process = Process(world.emulator, whole=False)
        await process.sessions.list_sessions(**ADA)  # its answer tells the time
        report = await process.sessions.purge_deleted(older_than=datetime.timedelta(0))
        assert report.failed == ()
    assert {each: await world.seen(each) for each in IDS} == before
    # A file that was saved late is the new session's.
    alive = {text for events, _, files in before.values() for text in events | files}
    assert [
        left for text in world.said.keys() - alive if (left := left_of(world.emulator, text))
    ] == []
    world.emulator.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_living_sessions_are_whole_and_nothing_stays_of_others(seed):
    simulate(lambda: _play(seed), seed)
