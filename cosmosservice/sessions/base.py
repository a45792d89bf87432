"""The base of the session service's methods beyond ADK's interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from google.adk.sessions.session import Session

    from cosmosservice.hosting.operation import Operation
    from cosmosservice.sessions.store.snapshot import Snapshot
    from cosmosservice.sessions.store.store import SessionStore

T = TypeVar("T")


class StoreMethods(ABC):
    """Methods that do their work in the session store."""

    @abstractmethod
    async def in_store(
        self, operation: Operation, work: Callable[[SessionStore], Coroutine[Any, Any, T]]
    ) -> T: ...

    @abstractmethod
    def _session_object(self, snapshot: Snapshot) -> Session:
        """What the service returns for a snapshot."""
