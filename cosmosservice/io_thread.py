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
from typing import Any, TypeVar

T = TypeVar("T")

logger = logging.getLogger("cosmosservice")

_CLOSE_TIMEOUT = 10.0


class IoThread:
    """Starts at the first call, ends with `stop`. A forked child starts its own."""

    def __init__(self, name: str = "cosmosservice-io") -> None:
        self._name = name
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0

    @property
    def running(self) -> bool:
        return self._loop is not None and self._pid == os.getpid()

    def loop(self) -> asyncio.AbstractEventLoop:
        loop = self._loop
        if loop is not None and self._pid == os.getpid():
            return loop
        with self._guard:
            if not self.running:
                self._start()
            assert self._loop is not None
            return self._loop

    def _start(self) -> None:
        loop = asyncio.new_event_loop()

        def serve() -> None:
            asyncio.set_event_loop(loop)
            try:
                loop.run_forever()
            finally:
                loop.run_until_complete(loop.shutdown_asyncgens())
                loop.run_until_complete(loop.shutdown_default_executor())
                loop.close()

        self._thread = threading.Thread(target=serve, name=self._name, daemon=True)
        self._thread.start()
        self._loop, self._pid = loop, os.getpid()

    async def run(self, work: Coroutine[Any, Any, T], *, grace: float | None = None) -> T:
        """Awaits `work` on the I/O loop, from any loop; context variables go along.

        Cancelling the caller cancels the work. With a `grace` it does not: what was sent cannot
        be taken back, so the work goes on, and the caller waits up to that many seconds for its
        end before the cancellation is passed on.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        call = _Call(work, loop, done)
        io_loop = self.loop()
        io_loop.call_soon_threadsafe(call.start)
        if grace is None:
            try:
                return await done
            except asyncio.CancelledError:
                io_loop.call_soon_threadsafe(call.cancel)
                raise
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            done.add_done_callback(_retrieve)
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([done], timeout=grace)
            raise

    def stop(self, last: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        """Runs `last`, cancels what is left and ends the thread.

        May be called by a garbage collection on any thread, this one included.
        """
        with self._guard:
            loop, thread = self._loop, self._thread
            owned = self.running
            self._loop = self._thread = None
        if loop is None or thread is None or not owned:
            return
        loop.call_soon_threadsafe(lambda: loop.create_task(_wind_up(loop, last)))
        if thread is not threading.current_thread():
            thread.join(_CLOSE_TIMEOUT)


class _Call:
    """One coroutine handed over, and the future of the caller's loop that waits for it."""

    __slots__ = ("_done", "_loop", "_task", "_work")

    def __init__(
        self,
        work: Coroutine[Any, Any, Any],
        loop: asyncio.AbstractEventLoop,
        done: asyncio.Future[Any],
    ) -> None:
        self._work, self._loop, self._done = work, loop, done
        self._task: asyncio.Task[Any] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._work)
        self._task.add_done_callback(self._report)

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
        if task.cancelled():
            self._done.cancel()
        elif error is not None:
            self._done.set_exception(error)
        else:
            self._done.set_result(task.result())


def _retrieve(done: asyncio.Future[Any]) -> None:
    """A failure whose caller was cancelled: nobody is left to be told."""
    if not done.cancelled():
        done.exception()


async def _wind_up(
    loop: asyncio.AbstractEventLoop, last: Callable[[], Coroutine[Any, Any, None]] | None
) -> None:
    try:
        if last is not None:
            await asyncio.wait_for(last(), _CLOSE_TIMEOUT)
    except Exception as problem:
        logger.warning("Closing was cut short (%s). Nothing is lost.", type(problem).__name__)
    rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    loop.stop()
