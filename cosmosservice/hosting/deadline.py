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

    One that `renews` is for work of any length: every answer gives it the whole time again, so
    that it ends only if there is none.
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
    """Limits what is done inside to this time. None: no limit."""
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
    """Seconds for one of several attempts: half of what is left, so that a silent connection does
    not take all of it; and all that is left for the last one."""
    left = remaining()
    if left == math.inf:
        return None
    return left if last else left / 2


async def in_time(work: Awaitable[T]) -> T:
    """Waits for work that continues by itself. Raises TimeoutError at the deadline."""
    left = remaining()
    if left == math.inf:
        return await work
    return await asyncio.wait_for(asyncio.shield(work), left)
