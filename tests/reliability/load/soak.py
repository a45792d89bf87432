"""Many sessions under faults, for minutes: nothing is lost, duplicated or out of order.

    make soak                                   three minutes, 200 sessions, over HTTP
    python -m tests.reliability.load --seconds 600 --sessions 500 --json figures.json

Three services stand for three processes. Any of them may take a turn of a conversation, as behind a
load balancer: it loads the session, compares it with what was acknowledged, and appends. Failed
calls are repeated with the same event, as the errors say. A conversation that is long enough is
checked and purged, and a new one replaces it, so that the amount of stored data stays about the
same.

With `lag`, replicas lag by up to that many seconds: a loaded session may be in an older state. The
session must have had that state, and an append to it must be refused.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import ctypes
import gc
import itertools
import pathlib
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psutil

from cosmos_emulator import Emulator, Replicas
from cosmos_emulator.serving import serving
from cosmosservice import CosmosSessionService
from cosmosservice.errors import (
    AlreadyExistsError,
    StaleSessionError,
    StateUpdatePendingError,
    StorageError,
)
from tests.reliability.load.weather import STORM, Weather
from tests.support.adk import event, texts
from tests.support.raw import raw_store

T = TypeVar("T")

APP = "soak"
DATABASE = "soak"
SESSIONS_PER_USER = 4
LENGTHS = (3, 9)  # events after which a conversation is over
AT_ONCE = 24
CACHE_BYTES = 512 * 1024  # small, so that it is full long before the end


@dataclass
class Figures:
    """What a run did and found."""

    seconds: float = 0.0
    sessions: int = 0
    finished_sessions: int = 0
    events: int = 0
    large_events: int = 0
    lag: float = 0.0
    late_reads: int = 0  # that showed an older state
    refused: int = 0  # appends to an older state
    reads: int = 0
    requests: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    storms: int = 0
    fault_share: float = 0.0  # outside storms
    seen_by_callers: dict[str, int] = field(default_factory=dict)
    append_ms_median: float = 0.0
    append_ms_99: float = 0.0
    lost: int = 0
    duplicated: int = 0
    out_of_order: int = 0
    wrong_states: int = 0
    unexpected: list[str] = field(default_factory=list)
    rss_mb_after_warm_up: float = 0.0
    rss_mb_at_end: float = 0.0
    leaked_tasks: int = 0
    leaked_threads: int = 0
    leaked_connections: int = 0

    @property
    def memory_flat(self) -> bool | None:
        """None if the run was too short to decide."""
        if not self.rss_mb_at_end:
            return None
        return self.rss_mb_at_end <= 1.1 * self.rss_mb_after_warm_up + 10

    @property
    def sound(self) -> bool:
        """Everything except memory, which a short run cannot judge."""
        wrong = self.lost + self.duplicated + self.out_of_order + self.wrong_states
        leaked = self.leaked_tasks + self.leaked_threads + self.leaked_connections
        return not wrong and not leaked and not self.unexpected


@dataclass
class Conversation:
    """One session, and what was acknowledged of it."""

    slot: int
    session_id: str
    length: int
    said: list[str] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    held: Any = None  # the session object of the last turn
    service: CosmosSessionService | None = None

    @property
    def user(self) -> str:
        return f"user {self.slot // SESSIONS_PER_USER}"

    @property
    def who(self) -> dict[str, str]:
        return {"app_name": APP, "user_id": self.user, "session_id": self.session_id}


class Soak:
    """One run."""

    def __init__(
        self,
        *,
        seconds: float,
        sessions: int,
        seed: int,
        fault_share: float = 0.05,
        storm_every: float = 15.0,
        lag: float = 0.0,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.figures = Figures(sessions=sessions, lag=lag)
        self._replicas = Replicas((0.0, lag), seed=seed) if lag else None
        self._seconds, self._sessions = seconds, sessions
        self._fault_share, self._storm_every = fault_share, storm_every
        self._rng = random.Random(seed)
        self._progress = progress
        self._numbers = itertools.count()
        self._seen: collections.Counter[str] = collections.Counter()
        self._append_times: list[float] = []
        self._rss: list[tuple[int, float]] = []
        self._users: dict[str, dict[str, Any]] = {}
        self._services: list[CosmosSessionService] = []

    def run(self) -> Figures:
        process = psutil.Process()
        sockets, threads = len(process.net_connections()), set(threading.enumerate())
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "soak.db"
            with (
                Emulator(path, replicas=self._replicas) as emulator,
                serving(emulator, patience=90) as endpoint,
            ):
                asyncio.run(self._run(emulator, endpoint))
        gc.collect()
        # The plain SDK's client, which reads the raw documents, keeps a connection pool.
        left = [each.name for each in threading.enumerate() if each not in threads]
        self.figures.leaked_threads = sum("ThreadPoolExecutor" not in name for name in left)
        self.figures.leaked_connections = max(0, len(process.net_connections()) - sockets)
        return self.figures

    async def _run(self, emulator: Emulator, endpoint: str) -> None:
        options: dict[str, Any] = {
            "endpoint": endpoint,
            "credential": emulator.key,
            "database": DATABASE,
            "cache_bytes": CACHE_BYTES,
        }
        self._services = [CosmosSessionService(**options) for _ in range(3)]
        await self._services[0].list_sessions(app_name=APP)  # creates the containers without faults
        weather = Weather(
            emulator.faults, self._rng, share=self._fault_share, every=self._storm_every
        )
        conversations = [self._new(slot) for slot in range(self._sessions)]
        waiting: asyncio.Queue[Conversation] = asyncio.Queue()
        for each in conversations:
            waiting.put_nowait(each)
        began = time.monotonic()
        watch = asyncio.create_task(self._watch(began, weather, emulator))
        await asyncio.gather(*(self._work(waiting, began + self._seconds) for _ in range(AT_ONCE)))
        watch.cancel()
        self._take_weather(weather, time.monotonic() - began)
        weather.clear()
        await self._judge(options, [waiting.get_nowait() for _ in range(waiting.qsize())], emulator)
        for service in self._services:
            await service.close()
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        self.figures.leaked_tasks = len([task for task in left if not task.done()])

    # --- the work

    def _new(self, slot: int) -> Conversation:
        return Conversation(slot, f"session {next(self._numbers)}", self._rng.randint(*LENGTHS))

    async def _work(self, waiting: asyncio.Queue[Conversation], until: float) -> None:
        while time.monotonic() < until:
            current = await waiting.get()
            try:
                await self._turn(current)
                if len(current.said) >= current.length:
                    await self._finish(current)
                    current = self._new(current.slot)
            except Exception as problem:
                self.figures.unexpected.append(f"{type(problem).__name__}: {problem}"[:300])
                return
            waiting.put_nowait(current)

    async def _turn(self, talk: Conversation) -> None:
        service = self._rng.choice(self._services)
        if not talk.said and talk.held is None:
            await self._patiently(self._create(service, talk))
        if talk.service is not service:
            talk.held = await self._load(service, talk)
            talk.service = service
        for _ in range(self._rng.randint(1, 4)):
            await self._say(service, talk)

    async def _load(self, service: CosmosSessionService, talk: Conversation) -> Any:
        """Loads the session with everything that was acknowledged."""
        while True:
            found = await self._patiently(lambda: service.get_session(**talk.who))
            self.figures.reads += 1
            shown = [(text or "").strip() for text in texts(found)] if found else []
            if not self.figures.lag or shown == talk.said or shown != talk.said[: len(shown)]:
                self._compare(talk, shown)
                return found
            self.figures.late_reads += 1
            state = found.state.get("turn") if found else None
            self.figures.wrong_states += state != (len(shown) - 1 if shown else None)
            if found and self._rng.random() < 0.2:
                await self._be_refused(service, found)
            await asyncio.sleep(0.02)

    async def _be_refused(self, service: CosmosSessionService, old: Any) -> None:
        said = event("too late")
        try:
            await self._patiently(lambda: service.append_event(old, said))
        except StaleSessionError:
            self.figures.refused += 1
        else:
            self.figures.unexpected.append("an append to an older state was accepted")

    def _create(
        self, service: CosmosSessionService, talk: Conversation
    ) -> Callable[[], Awaitable[None]]:
        async def create() -> None:
            # If a failed attempt was stored after all, it is visible now.
            talk.held = await service.get_session(**talk.who)
            try:
                if talk.held is None:
                    talk.held = await service.create_session(**talk.who)
            except AlreadyExistsError:  # the get was older than the session
                talk.held = await service.get_session(**talk.who)
                assert talk.held is not None  # the refusal brought the token up to date
            talk.service = service

        return create

    async def _say(self, service: CosmosSessionService, talk: Conversation) -> None:
        text = f"{talk.session_id} says {len(talk.said)}"
        delta: dict[str, Any] = {"turn": len(talk.said)}
        chance = self._rng.random()
        if chance < 0.2:
            delta[f"user:{talk.slot}"] = len(talk.said)
        if chance < 0.05:
            delta[f"app:{talk.user}"] = text
        if chance > 0.997:
            text += " " * 2_100_000
            self.figures.large_events += 1
        said = event(text, delta=delta)
        started = time.perf_counter()
        await self._patiently(lambda: service.append_event(talk.held, said))
        self._append_times.append(time.perf_counter() - started)
        self.figures.events += 1
        talk.said.append(text.strip())
        talk.state["turn"] = delta["turn"]
        of_user = self._users.setdefault(talk.user, {})
        of_user |= {key[5:]: value for key, value in delta.items() if key.startswith("user:")}

    async def _finish(self, talk: Conversation) -> None:
        other = self._rng.choice(self._services)
        found = await self._load(other, talk)
        self.figures.wrong_states += found.state.get("turn") != talk.state["turn"]
        await self._patiently(lambda: other.purge_session(**talk.who))
        self.figures.finished_sessions += 1

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Acts like a caller who trusts the errors: sending again is safe."""
        for attempt in range(100):
            try:
                return await call()
            except StateUpdatePendingError as problem:  # it is stored
                self._seen[type(problem).__name__] += 1
                return None  # type: ignore[return-value]
            except StorageError as problem:
                self._seen[type(problem).__name__] += 1
                await asyncio.sleep(0.05 * min(attempt + 1, 10))
        raise TimeoutError("the service did not come through in a hundred attempts")

    # --- the verdict

    def _compare(self, talk: Conversation, found: list[str | None]) -> None:
        shown = [(text or "").strip() for text in found]
        if shown == talk.said:
            return
        counts = collections.Counter(shown)
        self.figures.lost += sum(text not in counts for text in talk.said)
        self.figures.duplicated += sum(count - 1 for count in counts.values())
        known = [text for text in shown if text in set(talk.said)]
        self.figures.out_of_order += known != [text for text in talk.said if text in counts]
        self.figures.unexpected += [f"a stranger: {t}" for t in shown if t not in set(talk.said)]

    async def _judge(
        self, options: dict[str, Any], talks: list[Conversation], emulator: Emulator
    ) -> None:
        """Checked by a process that took no part, and on the raw documents."""
        for service in self._services:
            await service.flush()
        if self._replicas is not None:
            self._replicas.catch_up()
        async with CosmosSessionService(**options) as fresh:
            begun = [talk for talk in talks if talk.said]
            for talk in begun:
                found = await fresh.get_session(**talk.who)
                self._compare(talk, texts(found) if found else [])
                self.figures.wrong_states += not found or found.state["turn"] != talk.state["turn"]
            for user, expected in self._users.items():
                state = await fresh.get_user_state(app_name=APP, user_id=user)
                self.figures.wrong_states += state != expected
        if self._replicas is not None:
            self._replicas.catch_up()
        with raw_store(emulator, DATABASE) as raw:
            numbers: dict[tuple[str, str], list[int]] = {}
            for body in raw.events.all(document_type="adk_event"):
                numbers.setdefault((body["user_id"], body["session_id"]), []).append(body["seq"])
        for talk in begun:
            found_numbers = numbers.pop((talk.user, talk.session_id), [])
            self.figures.out_of_order += found_numbers != list(range(1, len(talk.said) + 1))
        self.figures.unexpected += [f"events of a purged session: {key}" for key in numbers]
        self._sum_up()

    def _sum_up(self) -> None:
        figures = self.figures
        figures.seen_by_callers = dict(self._seen)
        if len(self._append_times) > 1:
            figures.append_ms_median = 1000 * statistics.median(self._append_times)
            figures.append_ms_99 = 1000 * statistics.quantiles(self._append_times, n=100)[98]
        # The warm-up ends when as many conversations have ended as run at a time.
        warm = [rss for finished, rss in self._rss if finished >= self._sessions]
        if len(warm) >= 4:
            figures.rss_mb_after_warm_up = statistics.median(warm[: len(warm) // 4 + 1])
            figures.rss_mb_at_end = statistics.median(warm[-(len(warm) // 4 + 1) :])

    def _take_weather(self, weather: Weather, seconds: float) -> None:
        figures = self.figures
        figures.seconds = seconds
        figures.requests = weather.requests
        figures.faults = dict(+weather.counts)
        figures.storms = weather.storms
        stormy = weather.counts[STORM]
        single = sum(weather.counts.values()) - stormy
        figures.fault_share = single / max(1, weather.requests - stormy)

    async def _watch(self, began: float, weather: Weather, emulator: Emulator) -> None:
        while True:
            await asyncio.sleep(5)
            emulator.clear_requests()  # clears a log that would only grow
            elapsed, rss = time.monotonic() - began, rss_in_use()
            self._rss.append((self.figures.finished_sessions, rss))
            self._progress(
                f"{elapsed:5.0f} s  {self.figures.events:7,} events"
                f"  {self.figures.finished_sessions:5,} sessions done"
                f"  {sum(weather.counts.values()):6,} faults  {rss:4.0f} MB"
            )


def rss_in_use() -> float:
    """Megabytes in use, without free memory that the allocator keeps: large events leave much of
    it."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # glibc only
        ctypes.CDLL(None).malloc_trim(0)
    return float(psutil.Process().memory_info().rss / 1e6)
