"""Physical partitions: how many a container has, and which part of the keys each one holds.

They exist only as numbers: all items of a container are in one table. But the SDK reads by range,
and keeps a session token for each.

Ranges are numbered so that a split gives new numbers: those of a container with n ranges are n - 1
to 2n - 2, and range r becomes 2r + 1 and 2r + 2. So the number of a range that was split is not
used any more, and each range knows its parents.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from cosmos_emulator.partition_keys import MAX_EPK, binary_v1

# The service gives one partition up to 10,000 RU/s, and above that one for each 6,000.
ONE_PARTITION = 10_000
PER_PARTITION = 6_000


@dataclass(frozen=True, slots=True)
class Range:
    """Keys from `low` to below `high`."""

    id: str
    low: str
    high: str

    @property
    def parents(self) -> list[str]:
        """The ranges that were split into this one, the latest first."""
        found = []
        number = int(self.id)
        while number:
            number = (number - 1) // 2
            found.append(str(number))
        return found


def count_for(throughput: int) -> int:
    return 1 if throughput <= ONE_PARTITION else -(-throughput // PER_PARTITION)


@lru_cache(maxsize=256)
def split(count: int, version: int) -> tuple[Range, ...]:
    """`count` ranges of equal size, in the order of the keys."""
    bounds = ["", *(_bound(number, count, version) for number in range(1, count)), MAX_EPK]
    return tuple(
        Range(str(count - 1 + number), *bounds[number : number + 2]) for number in range(count)
    )


def _bound(number: int, count: int, version: int) -> str:
    if version == 1:
        return binary_v1(float((2**32 - 1) * number // count)).hex().upper()
    # A multiple of one step, as the service has them; a split keeps the bounds that are there.
    halvings = (count & -count).bit_length() - 1
    step = 2**126 // (count >> halvings)
    return f"{number * step >> halvings:032X}"


def overlapping(ranges: tuple[Range, ...], low: str, high: str) -> tuple[Range, ...]:
    """The ranges that hold keys from `low` to below `high`; at least one."""
    return tuple(r for r in ranges if r.low < high and low < r.high) or ranges[:1]
