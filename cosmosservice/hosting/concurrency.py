"""Small asyncio tools that the standard library of Python 3.11 lacks."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Literal, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from cosmosservice.errors import UnavailableError

GRACE = 2.0  # seconds that a cancelled caller waits for the outcome of what was sent

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Runs long computations on another thread; at the end of a process, when no thread can start
    and nobody else needs the loop, on this one."""
    call = functools.partial(work, *args, **options)
    try:
        running = asyncio.get_running_loop().run_in_executor(None, call)
    except RuntimeError:
        return call()
    return await running


async def together(*work: Coroutine[Any, Any, Any]) -> list[Any]:
    """Runs all concurrently. The first failure cancels the others and is raised unchanged."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


class Locks:
    """A lock per key, which exists while it is held or waited for."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, _KeyLock] = {}

    def of(self, key: Hashable) -> asyncio.Lock:
        """To be acquired at once."""
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = _KeyLock(self._locks, key)
        return lock


class LoopLocks:
    """A lock per event loop and key."""

    def __init__(self) -> None:
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, Locks] = WeakKeyDictionary()

    def of(self, key: Hashable) -> asyncio.Lock:
        """To be acquired at once, on this loop."""
        loop = asyncio.get_running_loop()
        locks = self._locks.get(loop)
        if locks is None:
            locks = self._locks[loop] = Locks()
        return locks.of(key)


class _KeyLock(asyncio.Lock):
    """Removes itself when nobody holds it or waits for it."""

    def __init__(self, locks: dict[Hashable, _KeyLock], key: Hashable) -> None:
        super().__init__()
        self._entry = locks, key
        self._wanted = 0

    async def acquire(self) -> Literal[True]:
        self._wanted += 1
        try:
            return await super().acquire()
        except BaseException:
            self._leave()
            raise

    def release(self) -> None:
        super().release()
        self._leave()

    def _leave(self) -> None:
        self._wanted -= 1
        if not self._wanted:
            locks, key = self._entry
            del locks[key]


async def acquire_in_time(lock: asyncio.Lock, seconds: float, otherwise: str) -> float:
    """Returns how long it took. Raises UnavailableError with this text after so many seconds."""
    if not lock.locked():
        await lock.acquire()
        return 0.0
    clock = asyncio.get_running_loop().time
    started = clock()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(None if seconds == math.inf else seconds):
            await lock.acquire()
            return clock() - started
    raise UnavailableError(otherwise)


async def outlast(work: asyncio.Future[T]) -> T:
    """Waits for work that continues when the waiter is cancelled. The waiter then still waits for
    a moment, before the cancellation is passed on."""
    # Cancelled with the waiter, unlike the work. (A shield does the same at twice the cost.)
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end(_: object) -> None:
        if not ended.done():
            ended.set_result(None)

    work.add_done_callback(end)
    try:
        await ended
    except asyncio.CancelledError:
        work.add_done_callback(retrieve)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([work], timeout=GRACE)
        raise
    return work.result()


def retrieve(work: asyncio.Future[Any]) -> None:
    """For work whose waiters may all be cancelled, so that nobody else retrieves its failure."""
    if not work.cancelled():
        work.exception()
