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
import time
from collections.abc import Callable
from typing import Any, TypeVar

from cosmosservice.errors import UnavailableError
from cosmosservice.hosting.executor import Work
from cosmosservice.hosting.forks import ForkSafeLock
from cosmosservice.hosting.resources import CLOSE_TIMEOUT, Phase, Resources

T = TypeVar("T")

logger = logging.getLogger("cosmosservice")

NAME = "cosmosservice-io"


class ThreadExecutor:
    """Starts a thread at the first call and ends it with `close`. The next call starts another one.
    A forked child starts its own."""

    def __init__(self, new_resources: Callable[[], Resources[Any]]) -> None:
        self.new_resources = new_resources
        self.current: Worker | None = None
        self._guard = ForkSafeLock()

    @property
    def phase(self) -> Phase:
        worker = self.current
        if worker is None or worker.pid != os.getpid():
            return Phase.NOT_OPENED
        return worker.resources.phase

    @property
    def running(self) -> bool:
        worker = self.current
        return worker is not None and worker.pid == os.getpid()

    def start(self, work: Work[T]) -> asyncio.Future[T]:
        """May be called from any loop."""
        call: _Call[T] = _Call(work)
        while not (worker := self.worker()).accept(call):
            with self._guard:  # it has just ended
                if self.current is worker:
                    self.current = None
        return call

    def worker(self) -> Worker:
        worker = self.current
        if worker is not None and worker.pid == os.getpid():
            return worker
        with self._guard:
            if not self.running:
                self.current = Worker(self.new_resources())
            assert self.current is not None
            return self.current

    async def close(self) -> None:
        worker = self._leave()
        if worker is not None:
            await asyncio.to_thread(worker.stop)

    def abandon(self) -> None:
        """Closes without waiting: a garbage collection may call this on any thread, in the middle
        of anything. The end of the process waits for what is still being written."""
        worker = self._leave()
        if worker is not None:
            worker.request_stop()

    def _leave(self) -> Worker | None:
        # Without the lock: the garbage collector may run on the thread that holds it.
        worker = self.current if self.running else None
        self.current = None
        return worker


class Worker:
    """One thread with one loop and its resources, from its start to its end."""

    def __init__(self, resources: Resources[Any]) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.resources = resources
        self.calls: set[asyncio.Task[Any]] = set()
        self._guard = threading.Lock()
        self._ending: asyncio.Task[None] | None = None
        self._ends: float | None = None  # when the process stops waiting for this thread
        self._thread = threading.Thread(target=self._serve, name=NAME, daemon=True)
        _running.add(self)
        self._thread.start()

    def accept(self, call: _Call[Any]) -> bool:
        """Whether the call will be answered here."""
        with self._guard:
            ended = self.resources.phase.ended
            if not ended:
                call.worker = self
                self.loop.call_soon_threadsafe(call.begin)
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

    def end_by(self, moment: float) -> None:
        """The process ends: the steps of the shutdown share the time until then."""
        self._ends = moment
        self.request_stop()

    def wait(self, moment: float) -> None:
        self._thread.join(max(0.0, moment - time.monotonic()))

    def _time_for_step(self) -> float:
        if self._ends is None:
            return CLOSE_TIMEOUT
        return max(0.0, self._ends - time.monotonic()) * 2 / 3

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
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.resources.drain(), self._time_for_step())
        with self._guard:
            if self.resources.phase.ended:
                return
            self.resources.phase = Phase.CLOSING
        await asyncio.sleep(0)  # lets calls start that were submitted before
        try:
            if self.calls:
                await asyncio.wait(self.calls, timeout=self._time_for_step())
            await asyncio.wait_for(self.resources.close(), self._time_for_step())
        except Exception as problem:
            logger.warning("Closing was cut short (%s). Nothing is lost.", type(problem).__name__)
        while rest := asyncio.all_tasks() - {asyncio.current_task()}:  # they may start others
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)
        self.loop.stop()


_running: set[Worker] = set()


@atexit.register
def _stop_all() -> None:
    """ADK never calls close(), so the end of the process finishes the background writes. Daemon
    threads may go on calling, so this takes a limited time, for all threads together."""
    moment = time.monotonic() + CLOSE_TIMEOUT
    threads = [thread for thread in _running.copy() if thread.pid == os.getpid()]
    for thread in threads:
        thread.end_by(moment)
    for thread in threads:
        thread.wait(moment)


class _Call(asyncio.Future[T]):
    """Work for the thread. As a future of the caller's loop, it is what the caller waits for.

    The way there is `call_soon_threadsafe(call.begin)`, the way back is
    `call_soon_threadsafe(call._deliver)`: one wake-up of a loop for each.
    """

    def __init__(self, work: Work[T]) -> None:
        super().__init__(loop=asyncio.get_running_loop())
        self.worker: Worker | None = None
        self._work = work
        self._task: asyncio.Task[T] | None = None

    # --- on the thread's loop

    def begin(self) -> None:
        worker = self.worker
        assert worker is not None
        self._task = task = worker.loop.create_task(self._work(worker.resources))
        worker.calls.add(task)
        task.add_done_callback(worker.calls.discard)
        task.add_done_callback(self._report)

    def _withdraw(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _report(self, task: asyncio.Task[T]) -> None:
        error = None if task.cancelled() else task.exception()
        with contextlib.suppress(RuntimeError):  # the caller's loop may be closed by now
            self.get_loop().call_soon_threadsafe(self._deliver, task, error)

    # --- on the caller's loop

    def cancel(self, msg: Any | None = None) -> bool:
        if self.worker is not None and not self.done():
            with contextlib.suppress(RuntimeError):  # that loop has ended, and the call with it
                self.worker.loop.call_soon_threadsafe(self._withdraw)
        return super().cancel(msg)

    def _deliver(self, task: asyncio.Task[T], error: BaseException | None) -> None:
        if self.done():
            return
        if task.cancelled():  # not by the caller, which is still waiting
            self.set_exception(
                UnavailableError(
                    "The service was closed while this call was under way. Whether it was stored"
                    " is not known; sending it again is safe."
                )
            )
        elif error is not None:
            self.set_exception(error)
        else:
            self.set_result(task.result())
