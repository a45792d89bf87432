"""The parts of which the session service's methods are made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from google.adk.sessions.session import Session

    from cosmosservice.sessions.store.snapshot import Snapshot
    from cosmosservice.sessions.store.store import SessionStore

T = TypeVar("T")


class Face(ABC):
    """Methods that do their work in the session store."""

    @abstractmethod
    async def in_store(
        self, operation: str, work: Callable[[SessionStore], Coroutine[Any, Any, T]]
    ) -> T: ...

    @abstractmethod
    def session_object(self, snapshot: Snapshot) -> Session:
        """What the service returns for a snapshot."""
