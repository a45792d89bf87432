"""The server's time, which stamps and expires documents. Tests can change it."""

from __future__ import annotations

import time


class Clock:
    """Wall-clock time plus an offset: for tests of TTL without sleeping, and of a wrong clock."""

    def __init__(self) -> None:
        self._offset = 0.0
        self._advanced = 0.0

    @property
    def offset(self) -> float:
        """Seconds by which the server is ahead of this machine."""
        return self._offset

    def now(self) -> int:
        """Whole seconds since 1970, as in ``_ts`` and ``Date``."""
        return int(time.time() + self._offset)

    def elapsed(self) -> float:
        """Seconds since some moment in the past; never goes back. Used to measure lag."""
        return time.monotonic() + self._advanced

    def advance(self, seconds: float) -> None:
        """Let time pass; with a negative number, set the clock back."""
        self._offset += seconds
        self._advanced += max(0.0, seconds)

    def set_offset(self, seconds: float) -> None:
        """Set the clock this many seconds ahead of this machine, or behind it if negative. No time
        passes, so replicas do not catch up."""
        self._offset = seconds
