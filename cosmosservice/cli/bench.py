"""Measures the time and request units of a conversation's turns on the configured store."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
import uuid
from collections import defaultdict
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, TypeVar

from google.adk.events import Event, EventActions
from google.genai import types

from cosmosservice import CosmosSessionService, RequestCharge
from cosmosservice.cli.console import Problem

APP = "cosmosservice-bench"
EVENTS_PER_TURN = 4  # user, tool call, tool result, answer

REPOSITORY = Path(__file__).parent.parent.parent

T = TypeVar("T")


def beside_peers(*, as_json: bool) -> int:
    """Runs the repository's benchmarks, which write docs/benchmarks.md."""
    if not (REPOSITORY / "benchmarks" / "__main__.py").exists():
        raise Problem(
            "The comparison with other session services is part of the repository, not of the"
            " installed package: run `make bench` in a clone."
        )
    options = ["--json"] if as_json else []
    return subprocess.call([sys.executable, "-m", "benchmarks", *options], cwd=REPOSITORY)


class Bench:
    """Runs one session turn by turn, as ADK's runner does: a get, then four appends."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.request_units: dict[str, float] = defaultdict(float)

    def charged(self, charge: RequestCharge) -> None:
        self.request_units[charge.operation] += charge.request_units

    async def run(self, service: CosmosSessionService, turns: int) -> None:
        """Erases its sessions at the end, also after a failure."""
        where: dict[str, Any] = {"app_name": APP, "user_id": uuid.uuid4().hex}
        await self._conversation(service, where, turns=1)  # connects, and loads what is needed
        self.seconds.clear()
        self.request_units.clear()
        await self._conversation(service, where, turns)

    async def _conversation(
        self, service: CosmosSessionService, where: dict[str, Any], turns: int
    ) -> None:
        created = await self._timed("create_session", service.create_session(**where))
        try:
            for turn in range(turns):
                await self._turn(service, where | {"session_id": created.id}, turn)
            await service.flush()
        finally:
            await service.purge_session(**where, session_id=created.id)

    async def _turn(self, service: CosmosSessionService, where: dict[str, Any], turn: int) -> None:
        session = await self._timed("get_session", service.get_session(**where))
        assert session is not None
        for number in range(EVENTS_PER_TURN):
            text = f"Turn {turn}, event {number}. " + "x" * 500
            event = Event(
                author="user" if number == 0 else APP,
                invocation_id=f"turn-{turn}",
                content=types.Content(role="user", parts=[types.Part(text=text)]),
                actions=EventActions(state_delta={"turn": turn} if number == 3 else {}),
            )
            await self._timed("append_event", service.append_event(session, event))

    async def _timed(self, operation: str, work: Awaitable[T]) -> T:
        started = time.perf_counter()
        result = await work
        self.seconds[operation].append(time.perf_counter() - started)
        return result

    def rows(self) -> list[dict[str, Any]]:
        """Figures per operation. The request units of an append include the session document."""
        return [
            {
                "operation": operation,
                "count": len(seconds),
                "p50_ms": round(statistics.median(seconds) * 1000, 2),
                "max_ms": round(max(seconds) * 1000, 2),
                "request_units": round(self.request_units[operation] / len(seconds), 2),
            }
            for operation, seconds in self.seconds.items()
        ]
