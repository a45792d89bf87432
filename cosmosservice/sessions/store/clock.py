"""Stamps, which are hybrid logical clock timestamps: the order in which writers change shared
state."""

from __future__ import annotations

from cosmosservice.account.server_clock import ServerClock


class HybridClock:
    """Gives stamps by the server's time, but always above every stamp that it has seen."""

    def __init__(self, server: ServerClock) -> None:
        self._server = server
        self._latest = 0

    def now(self) -> float:
        """The server's time, in seconds since 1970."""
        return self._server.now()

    def next(self) -> int:
        self._latest = max(self._server.microseconds(), self._latest + 1)
        return self._latest

    def observe(self, stamp: int) -> None:
        self._latest = max(self._latest, stamp)
