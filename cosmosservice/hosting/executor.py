"""Where an account's work runs: on a thread of its own, or on the caller's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from cosmosservice.hosting.resources import Phase, Resources

T = TypeVar("T")
Work = Callable[[Resources[Any]], Coroutine[Any, Any, T]]


class Executor(Protocol):
    """There are two: ThreadExecutor and LoopExecutor."""

    @property
    def phase(self) -> Phase:
        """That of the current resources."""

    def start(self, work: Work[T]) -> asyncio.Future[T]:
        """Starts `work(resources)` on the event loop of the resources, in the caller's context.

        The future belongs to the caller's loop. Cancelling it cancels the work; `outlast` waits
        for it without passing a cancellation on.
        """

    async def close(self) -> None:
        """Waits for running work and closes the resources. May be called from any loop."""
