"""What a search costs in a small and in a large memory: request units, requests and time.

Service and emulator run in this thread: the time is the processor's, whatever else it does.
"""

from __future__ import annotations

import random
import statistics
import time
from dataclasses import dataclass

from google.adk.events.event import Event
from google.adk.sessions.session import Session
from google.genai import types

from cosmosservice import CosmosMemoryService, RequestCharge

SIZES = (100, 1_000, 10_000)
SEARCHES = 40
TURNS = 50  # of a session
WORDS = 15  # of a turn
VOCABULARY = [f"word{number}" for number in range(5_000)]


@dataclass(frozen=True)
class Cost:
    memories: int
    add_units: float  # of one memory, on average
    median_ms: float
    median_units: float
    largest_units: float
    requests: float  # of a search, on average


async def costs() -> list[Cost]:
    return [await _cost(size) for size in SIZES]


async def _cost(size: int) -> Cost:
    charges: list[RequestCharge] = []
    chance = random.Random(0)
    async with CosmosMemoryService.embedded(
        on_request_charge=charges.append, repeat_seconds=0
    ) as service:
        for number in range(size // TURNS):
            await service.add_session_to_memory(_session(number, chance))
        added = sum(charge.request_units for charge in charges)
        seconds, units, requests = [], [], []
        for _ in range(SEARCHES):
            charges.clear()
            question = " ".join(_word(chance) for _ in range(5))
            started = time.process_time()
            await service.search_memory(app_name="app", user_id="user", query=question)
            seconds.append(time.process_time() - started)
            units.append(sum(charge.request_units for charge in charges))
            requests.append(len(charges))
    return Cost(
        memories=size,
        add_units=added / size,
        median_ms=statistics.median(seconds) * 1000,
        median_units=statistics.median(units),
        largest_units=max(units),
        requests=statistics.fmean(requests),
    )


def _word(chance: random.Random) -> str:
    """Some words are said far more often than others."""
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
