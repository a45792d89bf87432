"""An event loop in a thread of its own, which every other loop and thread may call.

The asynchronous Cosmos client belongs to one event loop, while ADK applications have many
(`Runner.run()` makes one per call) or none yet when the service is built. So the client, its
caches and its background work live here, and callers only hand over a coroutine and wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from cosmosservice.errors import UnavailableError
from cosmosservice.hosting.concurrency import finish

T = TypeVar("T")

logger = logging.getLogger("cosmosservice")

CLOSE_TIMEOUT = 10.0


class Resident(Protocol):
    """What lives on the thread's loop, and ends with it."""

    async def close(self) -> None: ...


class IoThread:
    """Starts at the first call, ends with `stop`. A forked child starts its own."""

    def __init__(self, move_in: Callable[[], Resident], name: str = "cosmosservice-io") -> None:
        self._move_in = move_in
        self._name = name
        self._guard = threading.Lock()
        self._current: _Lane | None = None

    @property
    def running(self) -> bool:
        lane = self._current
        return lane is not None and lane.pid == os.getpid()

    async def run(
        self, work: Callable[[Any], Coroutine[Any, Any, T]], *, grace: float | None = None
    ) -> T:
        """Awaits `work(resident)` on the I/O loop, from any loop; context variables go along.

        Cancelling the caller cancels the work. With a `grace` it does not: what was sent cannot
        be taken back, so the work goes on, and the caller waits up to that many seconds for its
        end before the cancellation is passed on.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        call = _Call(work, loop, done)
        lane = self._hand_over(call)
        if grace is not None:
            return await finish(done, grace)
        try:
            return await done
        except asyncio.CancelledError:
            with contextlib.suppress(RuntimeError):  # that loop has ended, and the call with it
                lane.loop.call_soon_threadsafe(call.cancel)
            raise

    def _hand_over(self, call: _Call) -> _Lane:
        while True:
            lane = self._lane()
            if lane.take(call):
                return lane
            with self._guard:  # it ended just now
                if self._current is lane:
                    self._current = None

    def _lane(self) -> _Lane:
        lane = self._current
        if lane is not None and lane.pid == os.getpid():
            return lane
        with self._guard:
            if not self.running:
                self._current = _Lane(self._move_in(), self._name)
            assert self._current is not None
            return self._current

    async def close(self) -> None:
        """Like `stop`, without blocking the caller's loop."""
        if self.running:
            await asyncio.to_thread(self.stop)

    def stop(self) -> None:
        """Waits for the calls under way, lets the resident close, and ends the thread.

        May be called by a garbage collection on any thread, this one included.
        """
        with self._guard:
            lane = self._current if self.running else None
            self._current = None
        if lane is not None:
            lane.stop()


class _Lane:
    """One loop in one thread, from its start to its end."""

    def __init__(self, resident: Resident, name: str) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.resident = resident
        self.calls: set[asyncio.Task[Any]] = set()
        self._guard = threading.Lock()
        self._ended = False
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def take(self, call: _Call) -> bool:
        """Whether the call will be answered here."""
        with self._guard:
            if not self._ended:
                self.loop.call_soon_threadsafe(call.start, self)
            return not self._ended

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(lambda: self.loop.create_task(self._wind_up()))
        if self._thread is not threading.current_thread():
            self._thread.join(2 * CLOSE_TIMEOUT)

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()

    async def _wind_up(self) -> None:
        with self._guard:
            self._ended = True
        await asyncio.sleep(0)  # what was handed over before begins
        try:
            if self.calls:
                await asyncio.wait(self.calls, timeout=CLOSE_TIMEOUT)
            await asyncio.wait_for(self.resident.close(), CLOSE_TIMEOUT)
        except Exception as problem:
            logger.warning("Closing was cut short (%s). Nothing is lost.", type(problem).__name__)
        while rest := asyncio.all_tasks() - {asyncio.current_task()}:  # they may leave others
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)
        self.loop.stop()


class _Call:
    """Work handed over, and the future of the caller's loop that waits for it."""

    __slots__ = ("_done", "_loop", "_task", "_work")

    def __init__(
        self,
        work: Callable[[Any], Coroutine[Any, Any, Any]],
        loop: asyncio.AbstractEventLoop,
        done: asyncio.Future[Any],
    ) -> None:
        self._work, self._loop, self._done = work, loop, done
        self._task: asyncio.Task[Any] | None = None

    def start(self, lane: _Lane) -> None:
        self._task = task = lane.loop.create_task(self._work(lane.resident))
        lane.calls.add(task)
        task.add_done_callback(lane.calls.discard)
        task.add_done_callback(self._report)

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _report(self, task: asyncio.Task[Any]) -> None:
        error = None if task.cancelled() else task.exception()
        with contextlib.suppress(RuntimeError):  # the caller's loop may be closed by now
            self._loop.call_soon_threadsafe(self._deliver, task, error)

    def _deliver(self, task: asyncio.Task[Any], error: BaseException | None) -> None:
        if self._done.done():
            return
        if task.cancelled():  # and not by the caller, who is still waiting
            self._done.set_exception(
                UnavailableError(
                    "The service was closed while this call was under way. Whether it was stored"
                    " is not known; sending it again is safe."
                )
            )
        elif error is not None:
            self._done.set_exception(error)
        else:
            self._done.set_result(task.result())
