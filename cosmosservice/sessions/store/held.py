"""What a session object has seen, and what a service knows of the objects that it gave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from google.adk.events.event import Event

from cosmosservice.data_converters import fields_to_event, from_json, same_event
from cosmosservice.errors import EventIdReusedError
from cosmosservice.sessions.store.keys import Marker
from cosmosservice.sessions.store.records import Record


class Seen(NamedTuple):
    """The expected version of an append: the marker of a session object, or what proves it.

    The events are the object's own. They are read only while the session's lock is held.
    """

    marker: Marker | None
    events: Sequence[Event]
    last_update_time: float

    @property
    def last_event(self) -> str | None:
        """The id of the last event."""
        return self.events[-1].id if self.events else None

    def has(self, record: Record) -> bool:
        """Whether the event is among them. Raises EventIdReusedError if another event with its id
        is."""
        for each in self.events:
            if each.id == record.event_id:
                if not same_event(each, fields_to_event(from_json(record.raw))):
                    raise EventIdReusedError(record.event_id)
                return True
        return False


class Incarnations:
    """Those that a service has found in its store. Its stores on all event loops share them."""

    def __init__(self, most: int = 20_000) -> None:
        self._most = most
        self._known: set[str] = set()

    def add(self, incarnation: str) -> None:
        if len(self._known) >= self._most:
            self._known.clear()  # each costs one read more when it is needed
        self._known.add(incarnation)

    def __contains__(self, incarnation: str) -> bool:
        return incarnation in self._known
