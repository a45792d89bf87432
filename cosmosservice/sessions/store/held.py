"""What a session object holds, and what a service knows of the objects that it gave."""

from __future__ import annotations

from typing import NamedTuple


class Held(NamedTuple):
    """What a session object holds."""

    marker: str | None
    last_event: str | None  # the id of its last event
    last_update_time: float


class Incarnations:
    """Those that a service has found in its store. Its stores on all event loops share them."""

    def __init__(self, most: int = 20_000) -> None:
        self._most = most
        self._known: set[str] = set()

    def add(self, incarnation: str) -> None:
        if len(self._known) >= self._most:
            self._known.clear()  # each costs one read more when it is needed
        self._known.add(incarnation)

    def __contains__(self, incarnation: str) -> bool:
        return incarnation in self._known
