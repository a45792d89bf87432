"""Timing: lanes that run in turn, and the medians of their runs."""

from __future__ import annotations

import contextlib
import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass

# Does the work once and says how many seconds of it count.
Lane = Callable[[], Awaitable[float]]
clock = time.perf_counter


@dataclass(frozen=True)
class Timing:
    """The median of several runs, each of them the median of its samples; and the runs' range."""

    seconds: float
    low: float
    high: float

    @classmethod
    def of(cls, runs: list[list[float]]) -> Timing:
        medians = [statistics.median(run) for run in runs]
        return cls(statistics.median(medians), min(medians), max(medians))


@dataclass(frozen=True)
class Effort:
    """How often a workload is repeated."""

    runs: int
    samples: int

    @property
    def total(self) -> int:
        """Samples of one lane, the discarded first one included."""
        return self.runs * self.samples + 1


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Inside, the collector does not walk what the benchmark itself holds."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


async def compare(lanes: Mapping[str, Lane], effort: Effort) -> dict[str, Timing]:
    """Times the lanes turn and turn about, so that what disturbs the machine disturbs all alike."""
    for lane in lanes.values():
        await lane()
    samples: dict[str, list[list[float]]] = {name: [] for name in lanes}
    with uncollected():
        for _ in range(effort.runs):
            for name in lanes:
                samples[name].append([])
            for _ in range(effort.samples):
                for name, lane in lanes.items():
                    samples[name][-1].append(await lane())
    return {name: Timing.of(runs) for name, runs in samples.items()}
