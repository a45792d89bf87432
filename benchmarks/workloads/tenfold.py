"""How each cost grows when there is ten times as much: sessions, events, state, forks, memories,
artifacts and users."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

from google.adk.events.event import Event
from google.genai import types

from benchmarks.cosmos import InProcess
from benchmarks.material import APP, event
from benchmarks.measure import uncollected
from benchmarks.results import Result, Target, ms, ratio
from benchmarks.stand import IN_PROCESS, Stand
from cosmosservice import CosmosArtifactService, CosmosMemoryService

SAMPLES = 9
KB = 1024

Work = Callable[[], Awaitable[object]]


class Cost(NamedTuple):
    seconds: float  # processor time of the service and the emulator
    units: float


class Growing:
    """Two amounts of each thing, in one emulator, and what an operation costs on each."""

    def __init__(self, stand: Stand, peer: InProcess) -> None:
        self.stand, self.peer, self.service = stand, peer, peer.service
        self.account = peer.service.account

    async def cost(self, work: Work) -> Cost:
        spent, units = [], []
        for _ in range(SAMPLES):
            self.peer.spent()
            start = time.process_time()
            await work()
            spent.append(time.process_time() - start)
            units.append(self.peer.spent())
        await self.peer.drain()
        self.peer.spent()
        return Cost(statistics.median(spent), statistics.median(units))

    # --- each makes `count` of something, and returns the operation that is measured

    async def append(self, count: int) -> Work:
        session = await self.peer.get(await self.stand.session(self.peer, count))
        return lambda: self.service.append_event(session, event())

    async def get(self, count: int) -> Work:
        session_id = await self.stand.session(self.peer, count)
        return lambda: self.peer.get(session_id)

    async def fork(self, count: int) -> Work:
        session_id = await self.stand.session(self.peer, count)
        return lambda: self.service.fork_session(
            app_name=APP, user_id="user", session_id=session_id
        )

    async def state(self, count: int) -> Work:
        made = await self.service.create_session(
            app_name=APP, user_id="user", state={"large": "x" * count * KB}
        )
        return lambda: self.service.append_event(made, event(state={"small": time.time()}))

    async def sessions(self, count: int) -> Work:
        user = f"user of {count}"
        await self.peer.seed_sessions(user, [self.stand.fresh() for _ in range(count)])
        return lambda: self.service.list_sessions(app_name=APP, user_id=user)

    async def page(self, count: int) -> Work:
        user = f"user of {count}"  # those of `sessions`
        return lambda: self.service.list_sessions_page(app_name=APP, user_id=user, limit=20)

    async def users(self, count: int) -> Work:
        app = f"app of {count}"
        for number in range(count):
            await self.service.create_session(app_name=app, user_id=f"u{number}", session_id="s")
        return lambda: self.service.get_session(app_name=app, user_id="u7", session_id="s")

    async def memories(self, count: int) -> Work:
        memory = CosmosMemoryService(account=self.account, repeat_seconds=0)
        user = f"user of {count}"
        for start in range(0, count, 50):
            await memory.add_events_to_memory(
                app_name=APP,
                user_id=user,
                session_id=f"s{start}",
                events=[_said(number) for number in range(start, start + 50)],
            )
        return lambda: memory.search_memory(app_name=APP, user_id=user, query="word7 word11")

    async def artifacts(self, count: int) -> Work:
        artifacts = CosmosArtifactService(account=self.account)
        where: dict[str, Any] = {"app_name": APP, "user_id": "u", "session_id": f"of {count}"}
        for number in range(count):
            part = types.Part(inline_data=types.Blob(data=b"x" * KB, mime_type="image/png"))
            await artifacts.save_artifact(**where, filename=f"{number}.png", artifact=part)
        return lambda: artifacts.load_artifact(**where, filename="7.png")


def _said(number: int) -> Event:
    words = " ".join(f"word{(number * step) % 997}" for step in (1, 3, 5, 7, 11, 13))
    return Event(
        author="user",
        timestamp=1.7e9 + number,
        content=types.Content(role="user", parts=[types.Part(text=words)]),
    )


async def tenfold(stand: Stand) -> Result:
    """Every operation on some, and on ten times as many."""
    result = Result(
        "tenfold",
        "How costs grow with ten times as much, in process (time: service and emulator)",
        ["", "of", "time", "RU", "ten times as much: time", "RU"],
    )
    async with AsyncExitStack() as stack:
        peer = InProcess(IN_PROCESS)
        await peer.open()
        stack.push_async_callback(peer.close)
        growing = Growing(stand, peer)
        scale = 10 if stand.quick else 1
        rows: list[tuple[str, str, Callable[[int], Awaitable[Work]], int, float]] = [
            ("append", "500 events", growing.append, 500, 1.15),
            ("get, seen before", "500 events", growing.get, 500, 10),
            ("fork", "100 events", growing.fork, 100, 10),
            ("append that changes a small value", "state of 50 KB", growing.state, 50, 10),
            ("list", "300 sessions of a user", growing.sessions, 300, 10),
            ("page of 20", "300 sessions of a user", growing.page, 300, 1.5),
            ("get", "100 users", growing.users, 100, 1.15),
            ("search", "1,000 memories of a user", growing.memories, 1_000, 2),
            ("load", "50 artifacts of a session", growing.artifacts, 50, 1.15),
        ]
        for name, of, make, count, most in rows:
            works = [await make(max(1, count // scale * times)) for times in (1, 10)]
            with uncollected():
                few, many = [await growing.cost(work) for work in works]
            by = many.seconds / few.seconds
            result.rows.append(
                [
                    name,
                    of,
                    ms(few.seconds),
                    f"{few.units:.1f}",
                    f"{ms(many.seconds)}, {ratio(by)}",
                    f"{many.units:.1f}, {ratio(many.units / few.units)}",
                ]
            )
            promise = f"{name}: ten times {of}, RU"
            result.targets.append(Target(promise, "≤", most, many.units / few.units))
    return result
