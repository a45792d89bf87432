"""What takes the events of sessions, so that they are stored elsewhere, too."""

from __future__ import annotations

from typing import Protocol

from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.records import Record


class Sink(Protocol):
    """Where the records go."""

    def hold(self) -> object:
        """Keeps the memory service alive as long as the answer is held."""

    async def add(
        self, key: SessionKey, records: list[Record], *, beginning: bool, others: bool
    ) -> None:
        """Stores their content. `beginning`: these are all records of the session so far.
        `others`: another process has appended some of them."""

    async def erase(self, key: SessionKey, incarnation: str) -> None:
        """Erases the memories of this incarnation of the session."""
