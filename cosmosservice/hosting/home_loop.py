"""The caller's own event loop as the home of a store: no thread, no hand-over.

A block (`async with service`) says how long the loop is there. Calls of other loops go to the
I/O thread all the same: this loop may be waiting for just them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from cosmosservice.hosting.io_thread import CLOSE_TIMEOUT, Resident

T = TypeVar("T")


class HomeLoop:
    """The running loop, until `close`."""

    def __init__(self, resident: Resident) -> None:
        self.loop = asyncio.get_running_loop()
        self._resident = resident
        self._calls = 0
        self._idle = asyncio.Event()

    async def run(
        self, work: Callable[[Any], Coroutine[Any, Any, T]], *, grace: float | None = None
    ) -> T:
        """Like IoThread.run, from this loop; but cancelling the caller always cancels the work,
        which has to see to what was sent."""
        del grace
        self._calls += 1
        try:
            return await work(self._resident)
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    async def close(self) -> None:
        """Waits for the calls under way, and closes what lives here. From any loop."""
        if asyncio.get_running_loop() is self.loop:
            await self._close()
        elif self.loop.is_running():
            elsewhere = asyncio.run_coroutine_threadsafe(self._close(), self.loop)
            with contextlib.suppress(TimeoutError):  # it is blocked
                await asyncio.wait_for(asyncio.wrap_future(elsewhere), 2 * CLOSE_TIMEOUT)

    async def _close(self) -> None:
        if self._calls:
            self._idle.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), CLOSE_TIMEOUT)
        await self._resident.close()
