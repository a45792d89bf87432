"""Retries: how many, and how long the pauses are."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass

from cosmosservice.hosting.deadline import remaining


@dataclass(frozen=True, slots=True)
class Retry:
    """A number of attempts, with jittered pauses that double, so that several processes
    that failed together do not try again together.

        for attempt in CONTENTION:
            await CONTENTION.pause(attempt)
            …
    """

    attempts: int
    first_pause: float  # seconds of the first pause
    longest_pause: float
    without_pause: int = 1  # the number of attempts before the first pause

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.attempts))

    def is_last(self, attempt: int) -> bool:
        return attempt >= self.attempts - 1

    def seconds(self, attempt: int) -> float:
        """The longest that `pause` may take before this attempt."""
        paused = attempt - self.without_pause
        if paused < 0:
            return 0.0
        # The exponent is bounded: an attempt may have any number.
        return min(self.longest_pause, self.first_pause * 2.0 ** min(paused, 30))

    async def pause(self, attempt: int) -> None:
        """Waits before this attempt, but never beyond the deadline of the operation."""
        seconds = self.seconds(attempt)
        if seconds:
            await asyncio.sleep(min(seconds * random.uniform(0.5, 1), remaining()))


# A request that was not answered, or that Cosmos DB or Blob Storage could not serve at that time.
REQUEST = Retry(attempts=4, first_pause=0.2, longest_pause=2.0)

# A document with concurrent writers: read it, change it, write it with If-Match.
CONTENTION = Retry(attempts=60, first_pause=0.005, longest_pause=0.1, without_pause=2)

# The same, where several attempts are normal even without contention.
STEPS = Retry(attempts=60, first_pause=0.005, longest_pause=0.1, without_pause=5)

# Documents that do not fit together because they were read from different replicas.
VISIBILITY = Retry(attempts=12, first_pause=0.01, longest_pause=0.64, without_pause=2)

# Background work that failed.
BACKGROUND = Retry(attempts=6, first_pause=4.0, longest_pause=64.0)

# Checks of a copy that runs in Blob Storage.
COPY = Retry(attempts=4, first_pause=1.0, longest_pause=1.0)
