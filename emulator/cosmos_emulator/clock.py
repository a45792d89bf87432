"""The server's time, which stamps and expires documents. Tests can change it."""

from __future__ import annotations

import time


class Clock:
    """Wall-clock time plus an offset: for tests of TTL without sleeping, and of a wrong clock."""

    def __init__(self) -> None:
        self._offset = 0.0
        self._advanced = 0.0
        self._frozen: tuple[float, float] | None = None
        self._skew = 0.0

    @property
    def offset(self) -> float:
        """Seconds by which the server is ahead of this machine."""
        return self._offset

    def now(self) -> int:
        """Whole seconds since 1970, as in `_ts` and `Date`."""
        return int((self._frozen[0] if self._frozen else time.time()) + self._offset)

    @property
    def skew(self) -> float:
        """Seconds by which a client on this machine finds the server's clock wrong: what
        :meth:`set_offset` has set, without the time that :meth:`advance` let pass."""
        return self._skew

    def elapsed(self) -> float:
        """Seconds since some moment in the past; never goes back. Used for lag and throughput."""
        return (self._frozen[1] if self._frozen else time.monotonic()) + self._advanced

    def freeze(self) -> None:
        """Stops the clock: from now on time passes only by `advance`. A simulation of hours then
        takes as long as its requests, and gives the same figures on any machine."""
        self._frozen = time.time(), time.monotonic()

    def advance(self, seconds: float) -> None:
        """Lets time pass; with a negative number, sets the clock back."""
        self._offset += seconds
        self._advanced += max(0.0, seconds)

    def set_offset(self, seconds: float) -> None:
        """Sets the clock this many seconds ahead of this machine, or behind it if negative. No time
        passes, so replicas do not catch up."""
        self._offset = self._skew = seconds
