"""The caller's own event loop as an executor, without another thread.

A block (`async with account`) says how long the loop can be used. Calls from other loops go to the
I/O thread: this loop may be blocked until they return.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, TypeVar

from cosmosservice.hosting.executor import Work
from cosmosservice.hosting.resources import CLOSE_TIMEOUT, Phase, Resources

T = TypeVar("T")


class LoopExecutor:
    """The running loop, until `close`."""

    def __init__(self, resources: Resources[Any]) -> None:
        self.loop = asyncio.get_running_loop()
        self._resources = resources
        self._running: set[asyncio.Task[Any]] = set()  # a loop has only weak references to them

    @property
    def phase(self) -> Phase:
        return Phase.CLOSED if self.loop.is_closed() else self._resources.phase

    @property
    def is_here(self) -> bool:
        """Whether the caller runs on this loop and may use it."""
        return self.loop is asyncio.get_running_loop() and not self._resources.phase.ended

    def start(self, work: Work[T]) -> asyncio.Task[T]:
        task = self.loop.create_task(work(self._resources))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def close(self) -> None:
        if self.phase.ended:
            return
        if asyncio.get_running_loop() is self.loop:
            await self._resources.close()
        elif self.loop.is_running():
            closing = asyncio.run_coroutine_threadsafe(self._resources.close(), self.loop)
            with contextlib.suppress(TimeoutError):  # the loop is blocked
                await asyncio.wait_for(asyncio.wrap_future(closing), 2 * CLOSE_TIMEOUT)
