"""The server's time. A local clock that is wrong by a day changes nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

# Linux: the other monotonic clocks stand still while the machine is suspended, and the server's
# does not.
_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", None)


def _elapsed() -> float:
    """Seconds since some moment in the past; never goes back."""
    return time.monotonic() if _SINCE_BOOT is None else time.clock_gettime(_SINCE_BOOT)


class ServerClock:
    """The local wall clock, as far as the `Date` of the answers agrees with it.

    A `Date` counts whole seconds, and its answer was on its way for a moment: it gives an interval
    in which the server's time is. The local monotonic clock carries that on between answers. A
    local wall clock outside of it is wrong, and the interval's nearest end is taken instead. Until
    the first answer, and with a server that tells no time, it is the local wall clock.
    """

    def __init__(self) -> None:
        # Of the server's time to the monotonic clock: at least, and at most.
        self._low, self._high = float("-inf"), float("inf")
        self._last = ""

    def now(self) -> float:
        """Seconds since 1970."""
        elapsed = _elapsed()
        return min(max(time.time(), elapsed + self._low), elapsed + self._high)

    def microseconds(self) -> int:
        return int(self.now() * 1_000_000)

    def answered(self, headers: Mapping[str, str], seconds: float = 1.0) -> None:
        """Takes the time from an answer to a request that took so long. The same second again
        says nothing new."""
        date = headers.get("Date") or headers.get("date")
        if not date or date == self._last:
            return
        self._last = date
        try:
            told = parsedate_to_datetime(date).timestamp()
        except (ValueError, TypeError):
            return
        received = _elapsed()
        low, high = told - received, told + 1 - (received - seconds)
        if low > self._high or high < self._low:  # the server's clock was set
            self._low, self._high = low, high
        else:
            self._low, self._high = max(low, self._low), min(high, self._high)
