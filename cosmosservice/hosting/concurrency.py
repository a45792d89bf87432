"""Small asyncio tools that the standard library of Python 3.11 lacks."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Literal, ParamSpec, TypeVar

from cosmosservice.errors import UnavailableError
from cosmosservice.hosting.deadline import remaining

GRACE = 2.0  # seconds that a cancelled append waits for the outcome of what was sent

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


async def acquire_in_time(lock: asyncio.Lock, otherwise: str) -> None:
    """Raises UnavailableError with this text at the deadline of the operation."""
    if not lock.locked():
        await lock.acquire()
        return
    left = remaining()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(None if left == math.inf else left):
            await lock.acquire()
            return
    raise UnavailableError(otherwise)


async def finish(work: asyncio.Future[T], grace: float) -> T:
    """Waits for work that continues when the waiter is cancelled. The waiter then still waits, for
    at most `grace` seconds, before the cancellation is passed on."""
    # Cancelled with the waiter, unlike the work. (A shield does the same at twice the cost.)
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end(_: object) -> None:
        if not ended.done():
            ended.set_result(None)

    work.add_done_callback(end)
    try:
        await ended
    except asyncio.CancelledError:
        await _wait(work, grace)
        raise
    return work.result()


async def outlast(work: Coroutine[Any, Any, None], grace: float) -> None:
    """Starts background work, and waits for its end for at most this many seconds."""
    task = asyncio.create_task(work)
    _outlasting.add(task)
    task.add_done_callback(_outlasting.discard)
    await _wait(task, grace)


_outlasting: set[asyncio.Task[None]] = set()  # a loop has only weak references to its tasks


async def _wait(work: asyncio.Future[Any], grace: float) -> None:
    work.add_done_callback(retrieve)
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.wait([work], timeout=grace)


def retrieve(work: asyncio.Future[Any]) -> None:
    """For work whose waiters may all be cancelled, so that nobody else retrieves its failure."""
    if not work.cancelled():
        work.exception()
