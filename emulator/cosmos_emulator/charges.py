"""Request units: fitted to the charges that were recorded on an account.

What follows from size is interpolated between the figures that Microsoft publishes. The recorded
charges of small documents are multiples of `TERM`: 26 of them for the document, and one for each
term that enters or leaves the index. A value has two terms, its path and itself.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import zip_longest
from typing import Any

from cosmos_emulator.documents import UNDEFINED, path_parts

TERM = 4 / 21

# Size in KB, charge of a point read, charge of a create without an index.
_PUBLISHED = [
    (1, 1.00, 26 * TERM), (2, 1.04, 6.29), (4, 1.14, 6.67), (8, 1.33, 7.04), (16, 1.67, 9.52),
    (32, 2.19, 11.23), (64, 4.76, 22.67), (128, 9.95, 48.19), (256, 20.28, 98.29),
    (512, 40.95, 184.57), (1024, 145.90, 625.00), (2048, 291.80, 1250.00),
]  # fmt: skip
_SIZES = [size for size, _, _ in _PUBLISHED]
_READS = [read for _, read, _ in _PUBLISHED]
_CREATES = [create for _, _, create in _PUBLISHED]

UNIQUE_KEYS = 1.2  # times as much for a write to a container that has them
REFUSED = 1 / 4  # of what the write would have cost: it exists, or the condition is not met
REFUSED_WRITE = REFUSED * 26 * TERM  # of no document in particular
MISS = 1.0  # a point read that finds nothing, or answers 304
PLAIN_QUERY = 2.25  # without a filter
INDEX_LOOKUP = 0.55  # for a filter, an aggregate, or one partition key
QUERIED_DOCUMENT = 0.0138  # of up to 1 KB; above that, as much more as a point read
METADATA_READ = 2.0
CREATED = 1.0  # a database or a container
METADATA_WRITE = 4.95


def _interpolate(size: float, charges: list[float]) -> float:
    kilobytes = size / 1024
    if kilobytes <= 1:
        return charges[0]
    after = min(bisect_left(_SIZES, kilobytes), len(_SIZES) - 1)
    low, high = _SIZES[after - 1], _SIZES[after]
    share = (kilobytes - low) / (high - low)
    return charges[after - 1] + share * (charges[after] - charges[after - 1])


def read(size: float) -> float:
    return _interpolate(size, _READS)


def write(size: int, terms: int) -> float:
    """A create or a delete."""
    return _interpolate(size, _CREATES) + TERM * terms


def replace(old_size: int, new_size: int, changed_terms: int) -> float:
    """What a delete and a create cost by size, and the terms that leave and enter the index."""
    return write(old_size, 0) + write(new_size, changed_terms)


def query(documents: int, size: int, *, looks_up: bool) -> float:
    lookup = INDEX_LOOKUP if looks_up else 0
    return PLAIN_QUERY + lookup + feed(documents, size)


def feed(documents: int, size: int) -> float:
    """What reading some documents adds to a query or a look into the change feed."""
    if not documents:
        return 0.0
    return documents * (QUERIED_DOCUMENT + read(size / documents) - 1)


class IndexedTerms:
    """Counts the terms of a document that an indexing policy puts into the index."""

    def __init__(self, policy: dict[str, Any]) -> None:
        self._off = policy.get("indexingMode", "consistent") == "none"
        # A tree of path parts; "?" and "*" hold whether the path that ends there is included.
        self._tree: dict[str, Any] = {}
        for name, include in (("includedPaths", True), ("excludedPaths", False)):
            for entry in policy.get(name, []):
                self._add(entry["path"], include)
        # The service indexes `id` and `_ts` whatever the policy says.
        id_is_counted = _leaf(self._tree.get("id", _LEAF), self._tree.get("*", False))
        self._system = _TIMESTAMP + (0 if id_is_counted else 2)

    def _add(self, path: str, include: bool) -> None:
        # An old form: the root, and everything below it.
        parts = [part for part in path_parts("/*" if path == "/" else path) if part != "?"]
        below = bool(parts) and parts[-1] == "*"
        node = self._tree
        for part in parts[:-1] if below else parts:
            node = node.setdefault(part, {})
        node["*" if below else "?"] = include

    def includes(self, path: tuple[str, ...]) -> bool:
        """Whether the value at a path is indexed. `id` and `_ts` always are."""
        if self._off:
            return False
        if path in (("id",), ("_ts",)):
            return True
        node, inherited = self._tree, False
        for part in path:
            inherited = node.get("*", inherited)
            node = node.get(part, _LEAF)
        return bool(_leaf(node, inherited))

    def count(self, document: dict[str, Any]) -> int:
        """The terms of a document."""
        return 0 if self._off else self._system + _count(document, self._tree, False, root=True)

    def changed(self, old: dict[str, Any], new: dict[str, Any]) -> int:
        """The terms that leave the index and enter it when a document replaces another."""
        return 0 if self._off else 2 * _TIMESTAMP + _changed(old, new, self._tree, False)


_LEAF: dict[str, Any] = {}
_TIMESTAMP = 1  # the term of `_ts`, which every write changes


def _count(value: Any, node: dict[str, Any], inherited: bool, *, root: bool = False) -> int:
    """Terms under a value; `inherited` is the setting of the nearest `*` above it."""
    if not value or not isinstance(value, (dict, list)):
        return 2 * _leaf(node, inherited)
    inherited = node.get("*", inherited)
    if not inherited and not node:
        return 0
    total = int(inherited and not root)
    if isinstance(value, dict):
        for name, child in value.items():
            total += _count(child, node.get(name, _LEAF), inherited)
    else:
        below = node.get("[]", node)
        for child in value:
            total += _count(child, below, inherited)
    return total


def _changed(old: Any, new: Any, node: dict[str, Any], inherited: bool) -> int:
    if old is UNDEFINED or new is UNDEFINED:
        return _count(new if old is UNDEFINED else old, node, inherited)
    if type(old) is type(new) and old == new:
        return 0
    below = node.get("*", inherited)
    if isinstance(old, dict) and isinstance(new, dict):
        return sum(
            _changed(
                old.get(name, UNDEFINED), new.get(name, UNDEFINED), node.get(name, _LEAF), below
            )
            for name in old.keys() | new.keys()
        )
    if isinstance(old, list) and isinstance(new, list):
        items = zip_longest(old, new, fillvalue=UNDEFINED)
        return sum(_changed(*pair, node.get("[]", node), below) for pair in items)
    before, after = _count(old, node, inherited), _count(new, node, inherited)
    return before + after - 2 if before and after else before + after  # The path stays.


def _leaf(node: dict[str, Any], inherited: bool) -> int:
    return int(node.get("?", node.get("*", inherited)))
