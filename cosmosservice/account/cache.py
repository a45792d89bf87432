"""A cache of what this process has read from the store, bounded in bytes."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from typing import Any, Protocol

_SAMPLE = 32  # items of one dict or list that are measured
_RECORD = 8  # smaller dicts usually share their keys with others, so the keys are not counted
_ENTRY = 150  # bytes that the cache itself needs for an entry


class Sized(Protocol):
    @property
    def size(self) -> int:
        """The approximate number of bytes that it takes in memory."""


def footprint(value: Any) -> int:
    """The approximate number of bytes that a JSON value takes in memory. Long lists and dicts are
    sampled."""
    if value is None or isinstance(value, bool) or (type(value) is int and -5 <= value <= 256):
        return 0  # shared by all
    size = sys.getsizeof(value)
    if isinstance(value, dict):
        items = _some(value.items(), len(value))
        inner = sum(footprint(each) for _, each in items)
        if len(value) > _RECORD:
            inner += sum(sys.getsizeof(key) for key, _ in items)
    elif isinstance(value, list | tuple):
        items = _some(value, len(value))
        inner = sum(map(footprint, items))
    else:
        return size
    return size + inner * len(value) // max(1, len(items))


def _some(items: Iterable[Any], count: int) -> list[Any]:
    return list(items if count <= _SAMPLE else islice(items, 0, None, -(-count // _SAMPLE)))


class Cache:
    """Removes the least recently used entries first. An entry knows its own size."""

    def __init__(
        self, max_bytes: int, on_lookup: Callable[[bool], None] = lambda hit: None
    ) -> None:
        self._max_bytes = max_bytes
        self._on_lookup = on_lookup
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self.bytes = 0

    def get(self, key: Hashable) -> Any:
        entry = self._entries.get(key)
        self._on_lookup(entry is not None)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: Hashable, value: Sized) -> None:
        """Adds a value, or counts it again after it has grown. Values too large are not kept."""
        size = value.size + _ENTRY
        known = self._entries.get(key)
        if size > self._max_bytes:
            self.drop(key)
            return
        self._entries[key] = (value, size)
        if known is None:
            self.bytes += size
        else:
            self.bytes += size - known[1]
            self._entries.move_to_end(key)
        while self.bytes > self._max_bytes:
            _, (_, gone) = self._entries.popitem(last=False)
            self.bytes -= gone

    def drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.bytes -= entry[1]

    def __len__(self) -> int:
        return len(self._entries)
