"""The server's time. A local clock that is wrong by a day changes nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

# On Linux, the other monotonic clocks stop while the machine is suspended. The server's clock
# does not.
_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", None)


def _elapsed() -> float:
    """Seconds since some moment in the past. It never goes back."""
    return time.monotonic() if _SINCE_BOOT is None else time.clock_gettime(_SINCE_BOOT)


class ServerClock:
    """The local wall clock, as far as the `Date` of the answers agrees with it.

    A `Date` has whole seconds, and its answer took some time to arrive, so it gives an interval
    that contains the server's time. Between answers, the local monotonic clock moves this interval
    forward. If the local wall clock is outside the interval, it is wrong, and the nearest end of
    the interval is used instead. Until the first answer, and with a server that sends no `Date`,
    the local wall clock is used.
    """

    def __init__(self) -> None:
        # The offset of the server's time from the monotonic clock: its lower and upper bound.
        self._low, self._high = float("-inf"), float("inf")
        self._last = ""

    def now(self) -> float:
        """Seconds since 1970."""
        elapsed = _elapsed()
        return min(max(time.time(), elapsed + self._low), elapsed + self._high)

    def microseconds(self) -> int:
        return int(self.now() * 1_000_000)

    def answered(self, headers: Mapping[str, str], seconds: float = 1.0) -> None:
        """Takes the server's time from an answer, given how long the request took. A second that
        was seen before adds nothing."""
        date = headers.get("Date") or headers.get("date")
        if not date or date == self._last:
            return
        self._last = date
        try:
            server_time = parsedate_to_datetime(date).timestamp()
        except (ValueError, TypeError):
            return
        received = _elapsed()
        low, high = server_time - received, server_time + 1 - (received - seconds)
        if low > self._high or high < self._low:  # the server's clock was set
            self._low, self._high = low, high
        else:
            self._low, self._high = max(low, self._low), min(high, self._high)
