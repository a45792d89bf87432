"""How long an operation may take, whatever the server does."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Iterator
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


class Deadline:
    """The moment at which an operation ends.

    A deadline that `renews` is for work of any length: every answer restarts it, so
    that the work ends only if there is no answer.
    """

    __slots__ = ("_at", "_renews", "seconds")

    def __init__(self, seconds: float, *, renews: bool = False) -> None:
        self.seconds = seconds
        self._renews = renews
        self._at = asyncio.get_running_loop().time() + seconds

    @property
    def remaining(self) -> float:
        return max(0.0, self._at - asyncio.get_running_loop().time())

    def answered(self) -> None:
        if self._renews:
            self._at = asyncio.get_running_loop().time() + self.seconds


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


def time_for_attempt(*, last: bool) -> float | None:
    """Seconds for one of several attempts: half of the remaining time, so that a silent connection
    does not use it up, and all of it for the last attempt."""
    left = remaining()
    if left == math.inf:
        return None
    return left if last else left / 2


async def in_time(work: Awaitable[T]) -> T:
    """Waits for background work. Raises TimeoutError at the deadline."""
    left = remaining()
    if left == math.inf:
        return await work
    return await asyncio.wait_for(asyncio.shield(work), left)
