"""The caller's own event loop as the home of a host, without another thread.

A block (`async with account`) says how long the loop can be used. Calls from other loops go to the
I/O thread: this loop may be blocked until they return.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from cosmosservice.hosting.host import CLOSE_TIMEOUT, Host
from cosmosservice.hosting.life import Life

T = TypeVar("T")


class HomeLoop:
    """The running loop, until `close`."""

    def __init__(self, host: Host[Any]) -> None:
        self.loop = asyncio.get_running_loop()
        self._host = host

    @property
    def life(self) -> Life:
        return Life.CLOSED if self.loop.is_closed() else self._host.life

    @property
    def is_here(self) -> bool:
        """Whether the caller runs on this loop and may use it."""
        return self.loop is asyncio.get_running_loop() and not self._host.life.ended

    async def run(
        self, work: Callable[[Host[Any]], Coroutine[Any, Any, T]], *, grace: float | None = None
    ) -> T:
        """In the caller's own task: cancelling the caller always cancels the work, which
        itself handles what was already sent. So `grace` is not used here."""
        del grace
        return await work(self._host)

    async def close(self) -> None:
        if self.life.ended:
            return
        if asyncio.get_running_loop() is self.loop:
            await self._host.close()
        elif self.loop.is_running():
            closing = asyncio.run_coroutine_threadsafe(self._host.close(), self.loop)
            with contextlib.suppress(TimeoutError):  # the loop is blocked
                await asyncio.wait_for(asyncio.wrap_future(closing), 2 * CLOSE_TIMEOUT)
