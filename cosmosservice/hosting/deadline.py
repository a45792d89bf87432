"""How long an operation may take, whatever the server does."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Iterator
from contextvars import ContextVar
from typing import TypeVar

from cosmosservice.hosting.concurrency import retrieve

T = TypeVar("T")


class Deadline:
    """The moment at which an operation ends.

    A deadline that `renews` is for work of any length: every answer restarts it, so
    that the work ends only if there is no answer. So do bytes that move, until a
    request falls silent: what is sent again must not restart it again.
    """

    __slots__ = ("_at", "_renews", "_silent", "moves", "seconds")

    def __init__(self, seconds: float, *, renews: bool = False) -> None:
        self.seconds = seconds
        self._renews = renews
        self._silent = False
        self.moves = 0  # how often bytes have moved
        self._at = asyncio.get_running_loop().time() + seconds

    @property
    def remaining(self) -> float:
        return max(0.0, self._at - asyncio.get_running_loop().time())

    def answered(self) -> None:
        self._silent = False
        if self._renews:
            self._at = asyncio.get_running_loop().time() + self.seconds

    def moved(self) -> None:
        if not self._silent:
            self.moves += 1
            self.answered()

    def fell_silent(self) -> None:
        self._silent = True


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


@contextlib.contextmanager
def within(seconds: float | None, *, renews: bool = False) -> Iterator[None]:
    """Limits the time of the block. None means no limit."""
    token = _current.set(None if seconds is None else Deadline(seconds, renews=renews))
    try:
        yield
    finally:
        _current.reset(token)


def remaining() -> float:
    deadline = _current.get()
    return math.inf if deadline is None else deadline.remaining


def answered() -> None:
    """The server has answered."""
    deadline = _current.get()
    if deadline is not None:
        deadline.answered()


def moved() -> None:
    """Bytes of a long request or response have been sent or received."""
    deadline = _current.get()
    if deadline is not None:
        deadline.moved()


def time_for_attempt(*, last: bool) -> float | None:
    """Seconds for one of several attempts: half of the remaining time, so that a silent connection
    does not use it up, and all of it for the last attempt."""
    left = remaining()
    if left == math.inf:
        return None
    return left if last else left / 2


async def attempt_in_time(work: Awaitable[T], *, last: bool) -> T:
    """Waits for one of several attempts as long as bytes move. Raises TimeoutError when they have
    not for the time of an attempt."""
    deadline = _current.get()
    if deadline is None:
        return await work
    task = asyncio.ensure_future(work)
    try:
        while True:
            moves = deadline.moves
            await asyncio.wait([task], timeout=time_for_attempt(last=last))
            if task.done():
                return task.result()
            if deadline.moves == moves:
                deadline.fell_silent()
                raise TimeoutError
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def in_time(work: Awaitable[T]) -> T:
    """Waits for background work. Raises TimeoutError at the deadline."""
    left = remaining()
    if left == math.inf:
        return await work
    waited = asyncio.ensure_future(work)
    waited.add_done_callback(retrieve)
    return await asyncio.wait_for(asyncio.shield(waited), left)
