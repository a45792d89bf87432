"""What a session object has seen of the log: its marker says it, or what it holds proves it.

Session objects come from elsewhere, too: as JSON, which keeps no marker, from a list, from another
process, or from another store.
"""

from __future__ import annotations

from cosmosservice.errors import (
    PAST_MESSAGE,
    STALE_MESSAGE,
    SessionNotFoundError,
    StaleSessionError,
)
from cosmosservice.sessions.store.held import Seen
from cosmosservice.sessions.store.keys import LISTED, PAST, Marker, SessionKey
from cosmosservice.sessions.store.parts import Part, Parts
from cosmosservice.sessions.store.reading import SessionReader
from cosmosservice.sessions.store.records import Record
from cosmosservice.sessions.store.session_documents import SessionDocument
from cosmosservice.sessions.store.snapshot import Snapshot


class Provenance(Part):
    """Finds the markers of session objects."""

    def __init__(self, parts: Parts, reader: SessionReader) -> None:
        super().__init__(parts)
        self._reader = reader
        self._incarnations = parts.options.incarnations

    async def marker(self, key: SessionKey, seen: Seen, event_id: str) -> Marker:
        """What the session object has seen, so that the event may follow. Takes no request if this
        service gave the object. Raises StaleSessionError or SessionNotFoundError."""
        marker = seen.marker
        if marker is None or marker.use == LISTED:
            return await self._proved(key, marker, seen, event_id)
        if marker.use == PAST:
            raise StaleSessionError(PAST_MESSAGE)
        if marker.incarnation not in self._incarnations:  # perhaps it is of another store
            if await self.document(key, marker) is None:
                raise SessionNotFoundError(
                    f"Session {key.session_id} not found: the session object was loaded from"
                    " another store, or its session was deleted since. Nothing was stored."
                )
            self._incarnations.add(marker.incarnation)
        return marker

    async def document(
        self, key: SessionKey, marker: Marker, known: SessionDocument | None = None
    ) -> SessionDocument | None:
        """The document of the marker's incarnation; None if this store has none."""
        document = known or await self._documents.read(key)
        if document is None or document.incarnation != marker.incarnation:  # perhaps a stale read
            document = await self._documents.read_confirmed(key)
        if document is None or document.incarnation != marker.incarnation:
            return None
        return document

    async def _proved(
        self, key: SessionKey, listed: Marker | None, seen: Seen, event_id: str
    ) -> Marker:
        # Only all events tell which of them the time of an object without events belongs to.
        count = None if listed is None and seen.last_event is None else 2
        now: Snapshot | None = None
        for confirmed in (False, True):
            now = await self._reader.read(key, count, confirmed=confirmed)
            if now is None:
                continue
            if _has_seen(now.marker, now.records, now, listed, seen):
                return now.marker
            if now.records and now.records[-1].event_id == event_id:  # stored by an earlier call
                before = Marker(now.marker.incarnation, now.records[-1].seq - 1)
                if _has_seen(before, now.records[:-1], now, listed, seen):
                    return before
        if now is None:
            raise SessionNotFoundError(f"Session {key.session_id} not found.")
        raise StaleSessionError(STALE_MESSAGE)


def _has_seen(
    marker: Marker, events: list[Record], now: Snapshot, listed: Marker | None, seen: Seen
) -> bool:
    """Whether a session object has seen everything up to the marker. These are the last events up
    to there."""
    if listed is not None:
        return (listed.incarnation, listed.seq) == (marker.incarnation, marker.seq)
    if seen.last_event is not None:
        return bool(events) and events[-1].event_id == seen.last_event
    time = seen.last_update_time
    if not events:  # an object from before the session was created belongs to a predecessor
        return not 0 < time < now.created - 0.001
    last = [event for event in events if event.timestamp == time]
    return len(last) == 1 and last[0] is events[-1] and abs(time - now.created) > 0.001
