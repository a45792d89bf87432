"""A session as it was at a point of its log."""

from __future__ import annotations

import datetime
import math
from dataclasses import replace

from cosmosservice.account.charges import current_operation
from cosmosservice.account.container import Document
from cosmosservice.data_converters.state_scopes import Scoped
from cosmosservice.errors import SessionNotFoundError
from cosmosservice.sessions.store.documents import STUB
from cosmosservice.sessions.store.event_log import Plan
from cosmosservice.sessions.store.keys import PAST, Marker, SessionKey
from cosmosservice.sessions.store.parts import Part, Parts
from cosmosservice.sessions.store.reading import SessionReader
from cosmosservice.sessions.store.records import Record
from cosmosservice.sessions.store.session_documents import fold
from cosmosservice.sessions.store.snapshot import Past, Snapshot
from cosmosservice.sessions.store.state import State

_FAR = 200  # events

Point = int | str | datetime.datetime  # a revision, the id of an event, or a time


class UnknownPoint(ValueError):
    """The session has no such point. `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{current_operation.get()}: there is no such point: {reason}.")
        self.reason = reason


class History(Part):
    """Finds a session as it was at a revision, an event or a time."""

    def __init__(self, parts: Parts, reader: SessionReader) -> None:
        super().__init__(parts)
        self._reader = reader

    async def at(self, key: SessionKey, point: Point | None) -> Past:
        """The session at a point; None: as it is now. Raises ValueError if there is no such
        point."""
        await self._reader.confirm(key)
        if type(point) is int and await self._is_far(key, point):
            past = await self._up_to(key, point)
            if past is not None:
                return past
        now = await self._reader.read(key)
        if now is None:
            raise SessionNotFoundError(f"Session {key.session_id} not found.")
        seq = now.marker.seq if point is None else _seq_at(now, point)
        records = [record for record in now.records if record.seq <= seq]
        past = _past(now, seq, records, initial_state(now))
        if point is None:
            return replace(past, time=math.inf)
        if isinstance(point, datetime.datetime):
            return replace(past, time=point.timestamp())
        return past

    async def _is_far(self, key: SessionKey, revision: int) -> bool:
        """Whether so much follows a revision that it is worth a request not to read it."""
        view = self._views.of(key)
        if revision <= 0 or (view is not None and view.whole):
            return False
        document = self._documents.known(key) or await self._documents.read(key)
        return document is not None and document.revision - revision > _FAR

    async def _up_to(self, key: SessionKey, revision: int) -> Past | None:
        """The same without reading later events, if the log has that revision and still knows what
        the session was created with."""
        now = await self._reader.read(key, 0)
        document = self._documents.known(key)
        if now is None or document is None or document.incarnation != now.marker.incarnation:
            return None
        if not document.first_seq <= revision <= now.marker.seq:
            return None
        plan = Plan(document.first_seq, revision, before=revision + 1)
        found, _ = await self._log.read_whole(key, document.incarnation, plan)
        events = [record for record in found if record.is_event]
        if not events or events[0].initial is None or any(each.kind == STUB for each in found):
            return None  # a purge may be under way
        return _past(now, revision, events, events[0].initial)


def _past(now: Snapshot, seq: int, records: list[Record], initial: Document) -> Past:
    last = records[-1].timestamp if records else 0.0
    past = replace(
        now,
        marker=Marker(now.marker.incarnation, seq, use=PAST),
        records=records,
        state=Scoped(fold(State(initial), records).inline),
        last_update_time=last if records else now.created,
    )
    return Past(past, now.marker.incarnation, initial, seq, last)


def initial_state(now: Snapshot) -> Document:
    """The state that a session was created with. Its first event stores it. If there is no event,
    or that one is lost, it is the state that no event has changed since."""
    if now.records and now.records[0].initial is not None:
        return now.records[0].initial
    changed = fold(State(), now.records).inline
    return {key: value for key, value in now.state.session.items() if key not in changed}


def _seq_at(now: Snapshot, point: Point) -> int:
    records, last = now.records, now.marker.seq
    if isinstance(point, bool):
        raise UnknownPoint("a point is a revision, the id of an event, or a datetime")
    if isinstance(point, int):
        first = records[0].seq - 1 if records else last
        if point == 0:  # also where earlier numbers belong to a session that had the same id
            return first
        if not first <= point <= last:
            raise UnknownPoint(f"revision {point} is not one of the session's: {first} to {last}")
        return point
    if isinstance(point, str):
        for record in records:
            if record.event_id == point:
                return record.seq
        raise UnknownPoint(f"no event has the id {point!r}")
    if not isinstance(point, datetime.datetime):
        raise UnknownPoint("a point is a revision, the id of an event, or a datetime")
    if point.tzinfo is None:
        raise UnknownPoint("a datetime needs a time zone, such as datetime.UTC")
    return _seq_at_time(records, point.timestamp(), last)


def _seq_at_time(records: list[Record], time: float, last: int) -> int:
    """The end of the log as it was at a time: up to the last event that is not later."""
    seq = records[0].seq - 1 if records else last
    for record in records:
        if record.timestamp <= time:
            seq = record.seq
    return seq
