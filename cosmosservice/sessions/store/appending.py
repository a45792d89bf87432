"""What an append needs of the caller's session object."""

from __future__ import annotations

from typing import Protocol

from cosmosservice.sessions.store.event_log import Record


class Holder(Protocol):
    """Holds the session object and the event. Is called on the I/O thread, under the session's
    lock, so that of several appends each sees what the one before it did."""

    def marker(self) -> str | None:
        """What the session object has seen of the log."""

    def take(self, marker: str, newer: list[Record]) -> None:
        """The event is stored, behind these records that the session object did not know."""

    def holds_event(self) -> bool:
        """Whether the session object has the event already. Raises EventIdReusedError if it has
        another one under its id."""
