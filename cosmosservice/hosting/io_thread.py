"""An event loop on its own thread, which every other loop and thread may call.

The asynchronous Cosmos client belongs to one event loop, while ADK applications have many
(`Runner.run()` makes one per call) or none yet when the service is built. So the client, its
caches and its background work live here, and callers submit a coroutine and wait.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from cosmosservice.errors import UnavailableError
from cosmosservice.hosting.concurrency import finish
from cosmosservice.hosting.forks import ForkSafeLock
from cosmosservice.hosting.host import CLOSE_TIMEOUT, Host
from cosmosservice.hosting.life import Life

T = TypeVar("T")
Work = Callable[[Host[Any]], Coroutine[Any, Any, T]]

logger = logging.getLogger("cosmosservice")

NAME = "cosmosservice-io"


class IoThread:
    """Starts at the first call and ends with `close`. The next call starts another one. A forked
    child starts its own."""

    def __init__(self, new_host: Callable[[], Host[Any]]) -> None:
        self._new_host = new_host
        self._guard = ForkSafeLock()
        self._current: _Thread | None = None

    @property
    def life(self) -> Life:
        thread = self._current
        if thread is None or thread.pid != os.getpid():
            return Life.NOT_OPENED
        return thread.host.life

    @property
    def running(self) -> bool:
        thread = self._current
        return thread is not None and thread.pid == os.getpid()

    async def run(self, work: Work[T], *, grace: float | None = None) -> T:
        """May be called from any loop. The work gets the caller's context variables."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        call = _Call(work, loop, done)
        thread = self._submit(call)
        if grace is not None:
            return await finish(done, grace)
        try:
            return await done
        except asyncio.CancelledError:
            with contextlib.suppress(RuntimeError):  # that loop has ended, and the call with it
                thread.loop.call_soon_threadsafe(call.cancel)
            raise

    def _submit(self, call: _Call) -> _Thread:
        while True:
            thread = self._thread()
            if thread.take(call):
                return thread
            with self._guard:  # it has just ended
                if self._current is thread:
                    self._current = None

    def _thread(self) -> _Thread:
        thread = self._current
        if thread is not None and thread.pid == os.getpid():
            return thread
        with self._guard:
            if not self.running:
                self._current = _Thread(self._new_host())
            assert self._current is not None
            return self._current

    async def close(self) -> None:
        thread = self._leave()
        if thread is not None:
            await asyncio.to_thread(thread.stop)

    def abandon(self) -> None:
        """Closes without waiting: a garbage collection may call this on any thread, in the middle
        of anything. The end of the process waits for what is still being written."""
        thread = self._leave()
        if thread is not None:
            thread.request_stop()

    def _leave(self) -> _Thread | None:
        # Without the lock: the garbage collector may run on the thread that holds it.
        thread = self._current if self.running else None
        self._current = None
        return thread


class _Thread:
    """One thread with one loop and one host, from its start to its end."""

    def __init__(self, host: Host[Any]) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.host = host
        self.calls: set[asyncio.Task[Any]] = set()
        self._guard = threading.Lock()
        self._ending: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._serve, name=NAME, daemon=True)
        _running.add(self)
        self._thread.start()

    def take(self, call: _Call) -> bool:
        """Whether the call will be answered here."""
        with self._guard:
            ended = self.host.life.ended
            if not ended:
                self.loop.call_soon_threadsafe(call.start, self)
            return not ended

    def request_stop(self) -> None:
        with contextlib.suppress(RuntimeError):  # it has ended already
            self.loop.call_soon_threadsafe(self._begin_shutdown)

    def _begin_shutdown(self) -> None:
        # Only once: a second request while the loop ends would leave a task that never runs.
        if self._ending is None:
            self._ending = self.loop.create_task(self._shut_down())

    def stop(self) -> None:
        self.request_stop()
        if self._thread is not threading.current_thread():
            self._thread.join(3 * CLOSE_TIMEOUT)

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            with contextlib.suppress(RuntimeError):  # at the end of a process no thread can start
                self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()
            _running.discard(self)

    async def _shut_down(self) -> None:
        # While all stores are open: at the end of the process, none may be able to reopen.
        await self.host.settle()
        with self._guard:
            if self.host.life.ended:
                return
            self.host.life = Life.CLOSING
        await asyncio.sleep(0)  # lets calls start that were submitted before
        try:
            if self.calls:
                await asyncio.wait(self.calls, timeout=CLOSE_TIMEOUT)
            await asyncio.wait_for(self.host.close(), CLOSE_TIMEOUT)
        except Exception as problem:
            logger.warning("Closing was cut short (%s). Nothing is lost.", type(problem).__name__)
        while rest := asyncio.all_tasks() - {asyncio.current_task()}:  # they may start others
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)
        self.loop.stop()


_running: set[_Thread] = set()


@atexit.register
def _stop_all() -> None:
    """ADK never calls close(), so the end of the process finishes the background writes."""
    threads = [thread for thread in _running.copy() if thread.pid == os.getpid()]
    for thread in threads:
        thread.request_stop()
    for thread in threads:
        thread.stop()


class _Call:
    """Work for this thread, and the future on the caller's loop that waits for it."""

    __slots__ = ("_done", "_loop", "_task", "_work")

    def __init__(
        self, work: Work[Any], loop: asyncio.AbstractEventLoop, done: asyncio.Future[Any]
    ) -> None:
        self._work, self._loop, self._done = work, loop, done
        self._task: asyncio.Task[Any] | None = None

    def start(self, thread: _Thread) -> None:
        self._task = task = thread.loop.create_task(self._work(thread.host))
        thread.calls.add(task)
        task.add_done_callback(thread.calls.discard)
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
        if task.cancelled():  # not by the caller, which is still waiting
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
