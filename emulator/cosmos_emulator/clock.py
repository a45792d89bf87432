"""The time that documents are stamped with; a test can move it."""

from __future__ import annotations

import time


class Clock:
    """Wall-clock time plus an offset that :meth:`advance` moves: TTL without sleeping."""

    def __init__(self) -> None:
        self._offset = 0.0

    def now(self) -> int:
        """Seconds since 1970, whole, as ``_ts`` counts them."""
        return int(time.time() + self._offset)

    def advance(self, seconds: float) -> None:
        self._offset += seconds
