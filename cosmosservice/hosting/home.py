"""Where a host lives: on its own thread, or on the caller's event loop."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from cosmosservice.hosting.host import Host
from cosmosservice.hosting.life import Life

T = TypeVar("T")


class Home(Protocol):
    """There are two homes: the I/O thread and the home loop."""

    @property
    def life(self) -> Life:
        """The life of the current host."""

    async def run(
        self, work: Callable[[Host[Any]], Coroutine[Any, Any, T]], *, grace: float | None = None
    ) -> T:
        """Awaits `work(host)` on the event loop of this home.

        Cancelling the caller cancels the work. With a `grace`, work on the I/O thread goes on
        instead, and the caller waits up to that many seconds for its end before the cancellation
        is passed on. On the home loop the work runs in the caller's own task and is cancelled
        with it.
        """

    async def close(self) -> None:
        """Waits for running calls and closes the host. May be called from any loop."""
