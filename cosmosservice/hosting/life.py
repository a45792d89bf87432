"""The life of what is opened at its first use and closed once."""

from __future__ import annotations

from enum import Enum


class Life(Enum):
    """Goes forward only. What is closed stays closed."""

    NOT_OPENED = "not opened"
    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"

    @property
    def ended(self) -> bool:
        """Whether no new call may begin."""
        return self in (Life.CLOSING, Life.CLOSED)
