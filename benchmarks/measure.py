"""Timing: lanes that run in turn, the medians of their runs, and of their ratios."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import selectors
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass

# Does the work once and says how many seconds of it count.
Lane = Callable[[], Awaitable[float]]
clock = time.perf_counter


@dataclass(frozen=True)
class Timing:
    """The samples of several runs."""

    runs: list[list[float]]

    @property
    def seconds(self) -> float:
        """The median of the runs, each of them the median of its samples."""
        return statistics.median(statistics.median(run) for run in self.runs)

    def by(self, other: Timing) -> float:
        """How many times as long as the other: the median over samples that were taken next to one
        another. A processor that is fast now and slow then changes both of them alike."""
        pairs = zip(itertools.chain(*self.runs), itertools.chain(*other.runs), strict=True)
        return statistics.median(mine / its for mine, its in pairs)


@dataclass(frozen=True)
class Effort:
    """How often a workload is repeated."""

    runs: int
    samples: int

    @property
    def total(self) -> int:
        """Samples of one lane, the discarded first one included."""
        return self.runs * self.samples + 1


def precise_loop() -> asyncio.AbstractEventLoop:
    """With timers, which are the latency of proxy and emulator, to the microsecond: select() takes
    such timeouts; epoll and poll round up to a millisecond."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


def freeze() -> None:
    """From now on the collector does not walk what the benchmark itself holds."""
    gc.collect()
    gc.freeze()


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """The same, inside."""
    freeze()
    try:
        yield
    finally:
        gc.unfreeze()


async def compare(lanes: Mapping[str, Lane], effort: Effort) -> dict[str, Timing]:
    """Times the lanes in turn, so that what disturbs the machine disturbs all alike."""
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
    return {name: Timing(runs) for name, runs in samples.items()}
