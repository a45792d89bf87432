"""Queries that take long run aside: in a thread, on a connection of their own.

A query first runs where its request arrived. After `BRIEF` seconds it is given up there, and begins
again aside; the next time it begins there at once. There it works in slices and rests between them
while other requests are answered, so that these hardly notice it. It ends early if nobody waits for
its answer any more.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from cosmos_emulator.messages import Request, Response
from cosmos_emulator.query.deadline import Deadline

BRIEF: Final = 0.02  # seconds of the processor
LONG_TEXT: Final = 4096  # characters: a longer query takes a while before its first row

_REMEMBERED: Final = 64  # queries that took long

_SLICE: Final = 0.0005  # seconds of work, after which others are let in
_PAUSE: Final = 0.002  # seconds for which a query rests when it has met another request
_SWITCHING: Final = 0.0001  # Python's own 5 ms are ten times as long as a point read takes


class TakesLong(Exception):
    """The request must be answered aside."""


def brief() -> Deadline:
    """For a query that others wait for: TakesLong after a while, counted from its first rows."""
    # The clock of the thread is slow to read, but it knows nothing of a busy machine.
    began: tuple[float, float] | None = None

    def rest() -> bool:
        nonlocal began
        if began is None:
            began = time.perf_counter(), time.thread_time()
        elif time.perf_counter() - began[0] > BRIEF and time.thread_time() - began[1] > BRIEF:
            raise TakesLong
        return True

    return Deadline(rest=rest)


class Aside:
    """Where the long queries of one emulator run."""

    def __init__(self) -> None:
        self.met = 0.0  # when a request was last in the gateway
        self._long: dict[int, None] = {}  # the latest queries that took long, the oldest first

    def expects(self, request: Request) -> bool:
        """Whether this query took long the last time."""
        return bool(self._long) and hash((request.path, request.body)) in self._long

    def took(self, request: Request, seconds: float) -> None:
        """How long a query has worked aside, from its first rows to the last."""
        number = hash((request.path, request.body))
        self._long.pop(number, None)
        if seconds > BRIEF / 4:
            self._long[number] = None
            if len(self._long) > _REMEMBERED:
                self._long.pop(next(iter(self._long)), None)

    def run(self, request: Request, handle: Callable[[], Response]) -> Response:
        """In the thread of the caller, who does not leave."""
        return _LongQuery(self, threading.Event()).answer(request, handle)

    async def run_in_thread(self, request: Request, handle: Callable[[], Response]) -> Response:
        """In a thread; the query is given up if the caller is cancelled."""
        left = threading.Event()
        try:
            return await _in_thread(partial(_LongQuery(self, left).answer, request, handle))
        finally:
            left.set()


class _LongQuery:
    """One query that takes long."""

    def __init__(self, owner: Aside, left: threading.Event) -> None:
        self._owner = owner
        self._left = left
        self._awaited: Callable[[], bool] = lambda: True
        self._slice_began = 0.0
        self._first_rest: float | None = None
        self._worked = 0.0

    def answer(self, request: Request, handle: Callable[[], Response]) -> Response:
        self._awaited = request.awaited
        request.deadline = Deadline(rest=self._rest)
        _turns.enter()
        try:
            self._slice_began = time.monotonic()
            return handle()
        finally:
            _turns.leave()
            self._owner.took(request, self._worked)

    def _rest(self) -> bool:
        # Not before its first rows or after the last ones: in memory the connection is a copy of
        # everything, which takes long to make and to drop.
        if self._first_rest is None:
            self._first_rest = time.thread_time()
        self._worked = time.thread_time() - self._first_rest
        now = time.monotonic()
        if now - self._slice_began >= _SLICE:
            met = now - self._owner.met < _PAUSE
            if met or _turns.queries > 1:
                _turns.pass_on(_PAUSE if met else 0)
            self._slice_began = time.monotonic()
        return not self._left.is_set() and self._awaited()


class _Turns:
    """Of all long queries in this process one works at a time."""

    def __init__(self) -> None:
        self.queries = 0
        self._turn = threading.Lock()
        self._counting = threading.Lock()
        self.usual = 0.0

    def enter(self) -> None:
        with self._counting:
            self.queries += 1
            if self.queries == 1:
                self.usual = sys.getswitchinterval()
                sys.setswitchinterval(_SWITCHING)
        self._turn.acquire()

    def leave(self) -> None:
        self._turn.release()
        with self._counting:
            self.queries -= 1
            if not self.queries:
                sys.setswitchinterval(self.usual)

    def pass_on(self, seconds: float) -> None:
        self._turn.release()
        try:
            time.sleep(seconds or _SLICE / 10)
        finally:
            self._turn.acquire()


_turns = _Turns()


def _begin_anew() -> None:
    """In a forked child, which has none of the threads."""
    global _turns
    if _turns.queries:
        sys.setswitchinterval(_turns.usual)
    _turns = _Turns()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_begin_anew)


async def _in_thread(work: Callable[[], Response]) -> Response:
    """Not in the loop's executor: a query may take a minute, and others need its threads."""
    import asyncio  # whoever calls this has loaded it; others need not

    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Response] = loop.create_future()

    def finish(how: Callable[[Any], None], result: Any) -> None:
        if not answer.done():
            how(result)

    def body() -> None:
        try:
            outcome: tuple[Any, Any] = answer.set_result, work()
        except BaseException as error:
            outcome = answer.set_exception, error
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(finish, *outcome)

    threading.Thread(target=body, name="emulator-query", daemon=True).start()
    return await answer
