"""Several processes on one store, in one thread, in virtual time.

Each process is a service of its own, with its own connection and its own clock. All run on one
event loop whose time jumps to the next timer when there is nothing else to do. So pauses cost
nothing, and a run depends only on its seed. Everything in the service is real except the thread of
its I/O loop: callers and I/O share the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import math
import os
import random
import selectors
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, TypeVar
from unittest import mock

from cosmos_emulator import Emulator, Replicas
from cosmos_emulator.faults import ConnectionDropped
from cosmos_emulator.messages import Request, Response
from cosmos_emulator.transports import EmulatorAsyncTransport
from cosmosservice import CosmosSessionService
from cosmosservice.hosting.thread_executor import ThreadExecutor

T = TypeVar("T")

EPOCH = 1_700_000_000  # seconds: the start of every simulation

_skew: ContextVar[float] = ContextVar("skew", default=0.0)


class Fate(enum.Enum):
    """What happens to a request."""

    ARRIVES = enum.auto()
    DROPPED_BEFORE = enum.auto()
    DROPPED_AFTER = enum.auto()
    KILLED_BEFORE = enum.auto()
    KILLED_AFTER = enum.auto()


Hold = Callable[[Request], Coroutine[Any, Any, Fate]]


class Killed(BaseException):
    """The process was killed: none of its further requests reach the store."""


class Stuck(Exception):
    """Nothing can happen any more, but something still waits."""


class _VirtualSelector(selectors.DefaultSelector):
    """Waiting moves the clock instead of taking time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise Stuck
            self.now += max(timeout, 0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time and without threads."""

    def __init__(self) -> None:
        self._virtual = _VirtualSelector()
        super().__init__(self._virtual)
        self.set_exception_handler(_tell)

    def time(self) -> float:
        return self._virtual.now

    def advance(self, seconds: float) -> None:
        """Advances the time without running anything."""
        self._virtual.now += seconds

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> Any:
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done

    @property
    def idle(self) -> bool:
        """For a task that has just yielded: whether nothing else can run."""
        return not self._ready  # type: ignore[attr-defined]


def _tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Ignores what a killed process leaves unfinished."""
    if not isinstance(context.get("exception"), Killed):
        loop.default_exception_handler(context)


class _ServerTime:
    """Replaces the module `time` with the loop's time."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def clock_gettime(self, clock: int) -> float:
        return self.monotonic()

    def time(self) -> float:
        return EPOCH + self.monotonic()


class _LocalTime(_ServerTime):
    """The same, plus the clock skew of the calling process."""

    def time(self) -> float:
        return super().time() + _skew.get()


def simulate(work: Callable[[], Coroutine[Any, Any, T]], seed: int = 0) -> T:
    """Runs `work` to its end. The same seed gives the same run."""
    names = random.Random(seed)
    loop = VirtualLoop()
    state = random.getstate()
    with contextlib.ExitStack() as patches:
        store = "cosmosservice.sessions.store"
        for module, clock in (
            ("cosmosservice.account.server_clock", _LocalTime()),
            ("cosmos_emulator.clock", _ServerTime()),
        ):
            patches.enter_context(mock.patch(f"{module}.time", clock))
        patches.enter_context(
            mock.patch(
                "secrets.token_hex", lambda size: f"{names.getrandbits(8 * size):0{2 * size}x}"
            )
        )
        # The SDK signs with the real date.
        patches.enter_context(mock.patch("cosmos_emulator.auth.MAX_SKEW", math.inf))
        # A hundredth of Cosmos DB's limit: the same requests, with less data.
        patches.enter_context(mock.patch(f"{store}.event_log.ITEM_LIMIT", 20_000))
        patches.enter_context(mock.patch("cosmosservice.account.chunks.CHUNK_BYTES", 14_000))
        random.seed(seed)  # for the jitter of pauses
        try:
            return loop.run_until_complete(work())
        finally:
            random.setstate(state)
            _end(loop)


def _end(loop: VirtualLoop) -> None:
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        with contextlib.suppress(Stuck):
            loop.run_until_complete(asyncio.wait(left))
    for task in left:
        if task.done() and not task.cancelled():
            task.exception()  # retrieved: a killed process may have left it
    loop.close()


async def all_waiting() -> None:
    """Returns when all other tasks wait for something."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    while True:
        await asyncio.sleep(0)
        if loop.idle:
            return


class SharedLoop(ThreadExecutor):
    """The real hand-over between loops, with the same loop on both sides."""

    def worker(self) -> Any:
        if self.current is None:
            self.current = _SharedWorker(self.new_resources())  # type: ignore[assignment]
        return self.current

    async def close(self) -> None:
        worker, self.current = self.current, None
        if worker is not None:
            await worker.resources.close()

    def abandon(self) -> None:
        self.current = None


class _SharedWorker:
    def __init__(self, resources: Any) -> None:
        self.loop, self.pid = asyncio.get_running_loop(), os.getpid()
        self.resources, self.calls = resources, set()

    def accept(self, call: Any) -> bool:
        call.worker = self
        self.loop.call_soon_threadsafe(call.begin)
        return True


class Wire:
    """One process's connection to the store. The service takes it for an emulator."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self.endpoint, self.key, self.path = emulator.endpoint, emulator.key, emulator.path
        self.dead = False
        self.hold: Hold | None = None  # when to release a request, and what happens to it
        self.slow = False  # whether others may run before a request arrives, and before its answer
        self.accepted: Callable[[Request], None] | None = None  # called after successful writes

    def erase_remnants(self) -> bool:
        return True

    def async_transport(self) -> EmulatorAsyncTransport:
        return EmulatorAsyncTransport(self)  # type: ignore[arg-type]

    async def exchange_async(self, request: Request, endpoint: str | None = None) -> Response:
        self._check()
        fate = await self.hold(request) if self.hold is not None else Fate.ARRIVES
        if fate is Fate.KILLED_BEFORE:
            self.dead = True
        self._check()
        if fate is Fate.DROPPED_BEFORE:
            raise ConnectionDropped
        if self.slow:
            await asyncio.sleep(0)
        response = await self._emulator.exchange_async(request, endpoint)
        if self.slow:
            await asyncio.sleep(0)
        if self.accepted is not None and request.method != "GET" and response.status in (200, 201):
            self.accepted(request)
        if fate is Fate.KILLED_AFTER:
            self.dead = True
        self._check()
        if fate is Fate.DROPPED_AFTER:
            raise ConnectionDropped
        return response

    def _check(self) -> None:
        if self.dead:
            raise Killed


def store(replicas: Replicas | None = None, content: bytes | None = None) -> Emulator:
    """An emulator with empty containers, or with this content. Lag follows virtual time."""
    return Emulator.load(content or _empty_store(), replicas=replicas)


@lru_cache(maxsize=1)
def _empty_store() -> bytes:
    async def open_containers(emulator: Emulator) -> None:
        await CosmosSessionService.embedded(emulator).list_sessions(app_name="none")

    return content_after(open_containers)


def content_after(work: Callable[[Emulator], Coroutine[Any, Any, None]]) -> bytes:
    """What an emulator holds then. Made once: every case starts with it."""
    with Emulator() as emulator:
        worker = threading.Thread(target=asyncio.run, args=(work(emulator),))
        worker.start()
        worker.join()
        return emulator.dump()


class Process:
    """A service with its own connection and clock, on an emulator made by `store`."""

    def __init__(self, emulator: Emulator, *, skew: float = 0.0, **options: Any) -> None:
        self.wire = Wire(emulator)
        self.skew = skew
        self.service = CosmosSessionService.embedded(
            self.wire,  # type: ignore[arg-type]
            ensure="never",
            **options,
        )
        account = self.service.account
        account.executor = SharedLoop(account.executor.new_resources)

    def kill(self) -> None:
        self.wire.dead = True

    @contextlib.contextmanager
    def clock(self) -> Iterator[None]:
        """Within the block, time is this process's."""
        token = _skew.set(self.skew)
        try:
            yield
        finally:
            _skew.reset(token)
