"""What goes wrong while the service works: single faults of every kind, and bursts of 429."""

from __future__ import annotations

import collections
import random
import time
from collections.abc import Callable
from functools import partial

from cosmos_emulator import Faults
from cosmos_emulator.requests_log import RequestRecord

STORM = "429 in a storm"


class Weather:
    """Draws faults for requests to documents: a given share at random, and most of them in a
    storm."""

    def __init__(self, faults: Faults, rng: random.Random, *, share: float, every: float) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.requests = 0
        self._faults = faults
        self._rng = rng
        self._every = every  # seconds from one storm to the next
        self._began = time.monotonic()
        self._drawn: tuple[int, str] = (-1, "")  # the last request, and its fault
        kinds: dict[str, Callable[..., object]] = {
            "connection lost before": faults.drop_before,
            "answer lost": faults.drop_after,
            "408 timeout": partial(faults.fail, 408),
            "449 retry with": partial(faults.fail, 449),
            "500 error": partial(faults.fail, 500),
            "503 unavailable": partial(faults.fail, 503),
            "429 throttled": partial(faults.throttle, retry_after_ms=5),
            "late by 50 ms": partial(faults.delay, 0.05),
        }
        self._kinds = list(kinds)
        self._share = share
        kinds[STORM] = partial(faults.throttle, retry_after_ms=20)
        for name, add in kinds.items():
            add(times=None, resource="docs", where=partial(self._befalls, name))

    def clear(self) -> None:
        self._faults.clear()

    @property
    def storms(self) -> int:
        return int(self._elapsed() // self._every)

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _befalls(self, name: str, record: RequestRecord) -> bool:
        """Whether the request gets this fault. The first rule that asks draws for all rules."""
        if self._drawn[0] != record.sequence:
            self._drawn = record.sequence, self._draw()
        return self._drawn[1] == name

    def _draw(self) -> str:
        self.requests += 1
        drawn = ""
        # In the last tenth of every period, nine of ten requests are refused.
        if self._elapsed() % self._every > 0.9 * self._every and self._rng.random() < 0.9:
            drawn = STORM
        elif self._rng.random() < self._share:
            drawn = self._rng.choice(self._kinds)
        self.counts[drawn] += bool(drawn)
        return drawn
