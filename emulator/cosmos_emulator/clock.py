"""The server's time, by which documents are stamped and expire; a test can move it."""

from __future__ import annotations

import time


class Clock:
    """Wall-clock time plus an offset: TTL without sleeping, and a server whose clock is wrong."""

    def __init__(self) -> None:
        self._offset = 0.0
        self._advanced = 0.0

    @property
    def offset(self) -> float:
        """Seconds by which the server is ahead of this machine."""
        return self._offset

    def now(self) -> int:
        """Seconds since 1970, whole, as ``_ts`` and ``Date`` count them."""
        return int(time.time() + self._offset)

    def elapsed(self) -> float:
        """Seconds since some moment in the past; never goes back. Lag is measured by it."""
        return time.monotonic() + self._advanced

    def advance(self, seconds: float) -> None:
        """Let time pass; with a negative number, set the clock back."""
        self._offset += seconds
        self._advanced += max(0.0, seconds)

    def set_offset(self, seconds: float) -> None:
        """Set the clock this many seconds ahead of this machine, or back if negative. No time
        passes: replicas do not catch up by it."""
        self._offset = seconds
