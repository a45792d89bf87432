"""What the service and the store hand each other when an event is appended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cosmosservice.documents import Marker, SessionKey
from cosmosservice.errors import StorageError
from cosmosservice.event_log import Record


class MarkerCell:
    """Where the caller's session object keeps its marker: read and written under the lock."""

    def __init__(self, get: Callable[[], str | None], put: Callable[[str], None]) -> None:
        self._get, self._put = get, put

    def read(self, key: SessionKey) -> Marker | None:
        return Marker.parse(self._get(), key)

    def write(self, key: SessionKey, marker: Marker) -> None:
        self._put(marker.text(key))


@dataclass
class Appended:
    """What an append did: the session object takes `newer` and then the event, unless known."""

    newer: list[Record] = field(default_factory=list)
    already_held: bool = False
    problem: StorageError | None = None
