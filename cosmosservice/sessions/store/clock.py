"""Stamps: the order in which writers change shared state."""

from __future__ import annotations

import time


class HybridClock:
    """Stamps that never fall behind a stamp this process has seen: other hosts' clocks differ."""

    def __init__(self) -> None:
        self._latest = 0

    def next(self) -> int:
        self._latest = max(time.time_ns() // 1000, self._latest + 1)
        return self._latest

    def observe(self, stamp: int) -> None:
        self._latest = max(self._latest, stamp)
