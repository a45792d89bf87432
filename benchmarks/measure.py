"""Timing: lanes run in turn. Reports the medians of their runs and of their ratios."""

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

# Does the work once and returns how many seconds of it count.
Lane = Callable[[], Awaitable[float]]
clock = time.perf_counter


@dataclass(frozen=True)
class Timing:
    """The samples of several runs."""

    runs: list[list[float]]

    @property
    def seconds(self) -> float:
        """The median over the runs of the median of their samples."""
        return statistics.median(statistics.median(run) for run in self.runs)

    def by(self, other: Timing) -> float:
        """How many times as long as the other: the median over adjacent samples. If the processor's
        speed varies, both samples of a pair are affected equally."""
        pairs = zip(itertools.chain(*self.runs), itertools.chain(*other.runs), strict=True)
        return statistics.median(mine / its for mine, its in pairs)


@dataclass(frozen=True)
class Effort:
    """How often a workload is repeated."""

    runs: int
    samples: int

    @property
    def total(self) -> int:
        """The samples of one lane, including the first one, which is discarded."""
        return self.runs * self.samples + 1


def precise_loop() -> asyncio.AbstractEventLoop:
    """An event loop whose timers are precise to the microsecond: they simulate the latency of proxy
    and emulator. select() takes such timeouts; epoll and poll round up to a millisecond."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


def freeze() -> None:
    """From now on the garbage collector skips the objects of the benchmark itself."""
    gc.collect()
    gc.freeze()


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """`freeze` for the duration of a block."""
    freeze()
    try:
        yield
    finally:
        gc.unfreeze()


async def compare(lanes: Mapping[str, Lane], effort: Effort) -> dict[str, Timing]:
    """Times the lanes in turn, so that disturbances affect all of them equally."""
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
