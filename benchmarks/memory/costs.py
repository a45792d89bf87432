"""What a search costs in a small and in a large memory: request units, requests and time.

The service and the emulator run in this thread. The time is the processor time of both.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from google.adk.events.event import Event
from google.adk.sessions.session import Session
from google.genai import types

from benchmarks.memory.material import APP, User
from cosmos_emulator import Emulator
from cosmosservice import CosmosMemoryService, RequestCharge

SIZES = (100, 1_000, 10_000)
SEARCHES = 100
COLD_SEARCHES = 15
TURNS = 50  # per session
WORDS = 15  # per turn
VOCABULARY = [f"word{number}" for number in range(5_000)]


@dataclass(frozen=True)
class Cost:
    memories: int
    add_units: float  # per memory, on average
    median_ms: float
    cold_ms: float  # the first search of a process, including its connection
    median_units: float
    largest_units: float
    requests: float  # per search, on average


async def costs() -> list[Cost]:
    """Asks every size the same question in turn, so that disturbances affect all of them
    equally."""
    stores = [await _Filled.with_memories(size) for size in SIZES]
    chance = random.Random(1)
    for _ in range(SEARCHES):
        question = " ".join(_word(chance) for _ in range(5))
        for each in stores:
            await each.search(question)
    for _ in range(COLD_SEARCHES):
        question = " ".join(_word(chance) for _ in range(5))
        for each in stores:
            await each.search_cold(question)
    for each in stores:
        await each.close()
    return [each.cost for each in stores]


async def units(user: User, limits: Sequence[int]) -> list[float]:
    """The request units of a search with each limit, on average over the user's questions."""
    charges: list[RequestCharge] = []
    spent = [0.0] * len(limits)
    async with CosmosMemoryService.embedded(
        repeat_seconds=0, on_request_charge=charges.append
    ) as service:
        for session in user.sessions:
            await service.add_session_to_memory(session)
        await service.search_memory(app_name=APP, user_id=user.user_id, query="first")
        for question in user.questions:
            for at, limit in enumerate(limits):
                charges.clear()
                await service.search_memory(
                    app_name=APP, user_id=user.user_id, query=question.text, limit=limit
                )
                spent[at] += sum(charge.request_units for charge in charges)
    return [each / len(user.questions) for each in spent]


class _Filled:
    """A user with many memories, and what a search of them costs."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._charges: list[RequestCharge] = []
        self._emulator = Emulator()
        self._service = CosmosMemoryService.embedded(
            self._emulator, on_request_charge=self._charges.append, repeat_seconds=0
        )
        self._added = 0.0
        self._seconds: list[float] = []
        self._cold: list[float] = []
        self._units: list[float] = []
        self._requests: list[int] = []

    @classmethod
    async def with_memories(cls, size: int) -> Self:
        made = cls(size)
        chance = random.Random(0)
        await made._service.__aenter__()
        for number in range(size // TURNS):
            await made._service.add_session_to_memory(_session(number, chance))
        made._added = sum(charge.request_units for charge in made._charges)
        return made

    async def search(self, question: str) -> None:
        self._charges.clear()
        self._seconds.append(await _timed(self._service, question))
        self._units.append(sum(charge.request_units for charge in self._charges))
        self._requests.append(len(self._charges))

    async def search_cold(self, question: str) -> None:
        async with CosmosMemoryService.embedded(self._emulator) as service:
            self._cold.append(await _timed(service, question))

    async def close(self) -> None:
        await self._service.__aexit__(None, None, None)
        self._emulator.close()

    @property
    def cost(self) -> Cost:
        return Cost(
            memories=self._size,
            add_units=self._added / self._size,
            median_ms=statistics.median(self._seconds) * 1000,
            cold_ms=statistics.median(self._cold) * 1000,
            median_units=statistics.median(self._units),
            largest_units=max(self._units),
            requests=statistics.fmean(self._requests),
        )


async def _timed(service: CosmosMemoryService, question: str) -> float:
    started = time.process_time()
    await service.search_memory(app_name="app", user_id="user", query=question)
    return time.process_time() - started


def _word(chance: random.Random) -> str:
    """A random word. Some words occur far more often than others."""
    return VOCABULARY[int(len(VOCABULARY) * chance.random() ** 2)]


def _session(number: int, chance: random.Random) -> Session:
    events = [
        Event(
            author="user",
            timestamp=1_700_000_000.0 + number * 1_000 + turn,
            content=types.Content(
                role="user",
                parts=[types.Part(text=" ".join(_word(chance) for _ in range(WORDS)))],
            ),
        )
        for turn in range(TURNS)
    ]
    return Session(app_name="app", user_id="user", id=f"s{number}", events=events)
