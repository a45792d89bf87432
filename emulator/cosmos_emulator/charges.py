"""Request units, interpolated between the figures that Microsoft publishes."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from .documents import path_parts

# Size in KB, charge of a point read, charge of a create with little indexing.
_PUBLISHED = [
    (1, 1.00, 4.95), (2, 1.04, 6.29), (4, 1.14, 6.67), (8, 1.33, 7.04), (16, 1.67, 9.52),
    (32, 2.19, 11.23), (64, 4.76, 22.67), (128, 9.95, 48.19), (256, 20.28, 98.29),
    (512, 40.95, 184.57), (1024, 145.90, 625.00), (2048, 291.80, 1250.00),
]  # fmt: skip
_SIZES = [size for size, _, _ in _PUBLISHED]
_READS = [read for _, read, _ in _PUBLISHED]
_CREATES = [create for _, _, create in _PUBLISHED]

TERM = 0.2  # per indexed term written
PATCHED_PROPERTY = 0.4
MISS = 1.0  # a point read that finds nothing, or answers 304
# Estimates: Microsoft publishes no formula for queries. One that finds nothing costs a little less
# than 3 RU, a page of some documents a few more.
EMPTY_QUERY = 2.8
QUERIED_DOCUMENT = 0.03
METADATA_READ = 1.0
METADATA_WRITE = 4.95


def _interpolate(size: int, charges: list[float]) -> float:
    kilobytes = size / 1024
    if kilobytes <= 1:
        return charges[0]
    after = min(bisect_left(_SIZES, kilobytes), len(_SIZES) - 1)
    low, high = _SIZES[after - 1], _SIZES[after]
    share = (kilobytes - low) / (high - low)
    return charges[after - 1] + share * (charges[after] - charges[after - 1])


def read(size: int) -> float:
    return _interpolate(size, _READS)


def write(size: int, terms: int) -> float:
    """A create or a delete; a replace is one of each."""
    return _interpolate(size, _CREATES) + TERM * terms


def query(documents: int, size: int) -> float:
    return EMPTY_QUERY + QUERIED_DOCUMENT * documents + read(size) - 1


class IndexedTerms:
    """Counts the values of a document that an indexing policy puts into the index."""

    def __init__(self, policy: dict[str, Any]) -> None:
        self._off = policy.get("indexingMode", "consistent") == "none"
        # A tree of path parts; "?" and "*" hold whether the path that ends there is included.
        self._tree: dict[str, Any] = {}
        for name, include in (("includedPaths", True), ("excludedPaths", False)):
            for entry in policy.get(name, []):
                self._add(entry["path"], include)

    def _add(self, path: str, include: bool) -> None:
        parts = [part for part in path_parts(path) if part != "?"] if path != "/" else []
        below = bool(parts) and parts[-1] == "*"
        node = self._tree
        for part in parts[:-1] if below else parts:
            node = node.setdefault(part, {})
        node["*" if below else "?"] = include

    def count(self, document: dict[str, Any]) -> int:
        if self._off:
            return 0
        return _count(document, self._tree, False)


_LEAF: dict[str, Any] = {}


def _count(value: Any, node: dict[str, Any], inherited: bool) -> int:
    """Terms under a value; ``inherited`` is the setting of the nearest ``*`` above it."""
    inherited = node.get("*", inherited)
    if isinstance(value, dict):
        if not inherited and not node:
            return 0
        total = 0
        for name, child in value.items():
            below = node.get(name, _LEAF)
            if isinstance(child, (dict, list)):
                total += _count(child, below if isinstance(below, dict) else _LEAF, inherited)
            elif below is _LEAF:
                total += inherited
            else:
                total += _leaf(below, inherited)
        return total
    if isinstance(value, list):
        below = node.get("[]", node)
        return sum(_count(child, below, inherited) for child in value)
    return _leaf(node, inherited)


def _leaf(node: dict[str, Any], inherited: bool) -> int:
    return int(node.get("?", node.get("*", inherited)))
