"""What operations cost and how long they take here, beside the figures of the documentation."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, TypeVar

from google.adk.events import Event
from google.genai import types

from cosmosservice.selftest.scratch import Client, Meter, Scratch

T = TypeVar("T")

# Request units, from docs/cost.md, which `make docs` writes. A test compares.
DOCUMENTED = {
    "create a session": 10.4,
    "append an event": 5.8,
    "get a session that this process has seen, of any length": 5.8,
    "delete a session": 20.0,
}
TRIES = 10
PATIENCE = 10.0  # seconds to wait until another client sees an event


@dataclass(frozen=True)
class Figure:
    operation: str
    request_units: float
    documented: float
    milliseconds: float  # the median


class _Stand:
    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    async def measured(self, operation: str, *calls: Awaitable[Any]) -> Figure:
        units, seconds = [], []
        for call in calls:
            before, started = self._meter.units, time.perf_counter()
            await call
            seconds.append(time.perf_counter() - started)
            units.append(self._meter.units - before)
        return Figure(
            operation,
            round(statistics.median(units), 1),
            DOCUMENTED[operation],
            round(statistics.median(seconds) * 1000, 1),
        )


async def measure(scratch: Scratch) -> list[Figure]:
    """Events of 1 KB, as in the documentation."""
    meter = Meter()
    async with scratch.client(meter) as client:
        stand = _Stand(meter)
        names = [scratch.session(f"cost{number}") for number in range(TRIES + 1)]
        await client.sessions.create_session(**names.pop())  # connects
        creates = [client.sessions.create_session(**name) for name in names]
        figures = [await stand.measured("create a session", *creates)]
        session = await client.sessions.get_session(**names[0])
        assert session is not None
        content = types.Content(role="user", parts=[types.Part(text="x" * 850)])
        appends = [
            client.sessions.append_event(session, Event(author="user", content=content))
            for _ in range(TRIES)
        ]
        figures.append(await stand.measured("append an event", *appends))
        await client.sessions.flush()
        gets = [client.sessions.get_session(**names[0]) for _ in range(TRIES)]
        known = "get a session that this process has seen, of any length"
        figures.append(await stand.measured(known, *gets))
        deletes = [client.sessions.delete_session(**name) for name in names[1:]]
        figures.append(await stand.measured("delete a session", *deletes))
    return figures


async def lag(scratch: Scratch, one: Client, other: Client) -> list[float]:
    """Milliseconds until another client sees an event that was acknowledged."""
    where = scratch.session("lag")
    session = await one.sessions.create_session(**where)
    waited = []
    for number in range(TRIES):
        await one.sessions.append_event(session, Event(author="user"))
        started = time.monotonic()
        while time.monotonic() - started < PATIENCE:
            seen = await other.sessions.get_session(**where)
            if seen is not None and len(seen.events) == number + 1:
                break
            await asyncio.sleep(0.02)
        waited.append((time.monotonic() - started) * 1000)
    return waited
