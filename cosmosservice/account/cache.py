"""What this process has seen of the store, within a bound of bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Protocol


class Sized(Protocol):
    @property
    def size(self) -> int: ...


class Cache:
    """Least recently used entries go first. An entry tells its own size."""

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
        """Adds or, after the value has grown, counts again. Too large for the cache: not kept."""
        size = value.size
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
