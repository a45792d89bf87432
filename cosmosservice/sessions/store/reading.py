"""Reading a session: its documents and its events side by side, put together consistently."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import Any

from cosmosservice.data_converters.state_scopes import Scoped, plain
from cosmosservice.errors import SessionNotFoundError, UnavailableError
from cosmosservice.hosting.concurrency import together
from cosmosservice.sessions.store.documents import ACTIVE, DELETED, PURGED, PURGING, RESTORING
from cosmosservice.sessions.store.event_log import EventLog, Record, is_deleted
from cosmosservice.sessions.store.keys import APP_STATE, USER_STATE, Marker, SessionKey, StateKey
from cosmosservice.sessions.store.lifecycle import Lifecycle
from cosmosservice.sessions.store.log_view import LogView, LogViews
from cosmosservice.sessions.store.projector import Projector, report_holes
from cosmosservice.sessions.store.retention import must_renew
from cosmosservice.sessions.store.session_documents import SessionDocument, SessionDocuments, fold
from cosmosservice.sessions.store.snapshot import Snapshot
from cosmosservice.sessions.store.state_documents import StateDocuments, newest

_ATTEMPTS = 12
_HOLE_ATTEMPTS = 3


@dataclass(frozen=True)
class Position:
    """Where a reading of a log, page by page, goes on."""

    incarnation: str
    after: str  # the id of the last document that was read


class SessionReader:
    """Lives on one event loop."""

    def __init__(
        self,
        documents: SessionDocuments,
        states: StateDocuments,
        log: EventLog,
        views: LogViews,
        projector: Projector,
        lifecycle: Lifecycle,
    ) -> None:
        self._documents = documents
        self._states = states
        self._log = log
        self._views = views
        self._projector = projector
        self._lifecycle = lifecycle

    async def read(self, key: SessionKey, newest_events: int | None = None) -> Snapshot | None:
        """One round trip deep: session, user and app document and the events side by side."""
        for attempt in range(_ATTEMPTS):
            if attempt > 1:
                await asyncio.sleep(0.01 * 2 ** min(attempt, 6))
            view = await self._views.seen_again(key, self._log)
            document, user, app, fetched = await together(
                self._documents.read(key),
                self._states.read(key.user),
                self._states.read(key.app),
                self._fetch(key, view, newest_events),
            )
            if document is None or document.status in (DELETED, PURGING, PURGED):
                self._views.drop(key)
                return None
            if document.status == RESTORING:
                await self._lifecycle.complete(document)
                continue
            records = await self._assemble(document, view, fetched, newest_events, attempt)
            if records is None:
                continue
            behind = _after(records, document.revision)
            if is_deleted(behind):
                await self._projector.project(key, document.incarnation)
                return None
            known = self._views.take(key, document.incarnation, document.first_seq, records)
            pending = {kind: document.pending_changes(kind) for kind in (USER_STATE, APP_STATE)}
            user_changes = newest((pending[USER_STATE], known.changes[USER_STATE]))
            app_changes = newest((pending[APP_STATE], known.changes[APP_STATE]))
            behind_documents = user.pending(user_changes) or app.pending(app_changes)
            unmerged = document.unmerged is not None
            if behind or behind_documents or unmerged or must_renew(document.body):
                self._projector.schedule(key, document.incarnation)
            times = [r.timestamp for r in behind if r.is_event and math.isfinite(r.timestamp)]
            # Not what the view has: an append of this process may have made it longer meanwhile.
            last = records[-1].seq if records else 0
            return Snapshot(
                key,
                Marker(document.incarnation, max(last, document.revision)),
                _newest_events(known, records, newest_events),
                Scoped(
                    fold(document.state, behind),
                    user.overlaid(user_changes),
                    app.overlaid(app_changes),
                ),
                times[-1] if times else document.last_update_time,
            )
        raise UnavailableError(
            f"get_session: the documents of session {key.session_id!r} do not fit together, again"
            " and again: the store's replicas are far apart. Nothing was changed."
        )

    async def user_state(self, key: StateKey) -> dict[str, Any]:
        return plain((await self._states.read(key)).state)

    async def events_after(
        self, key: SessionKey, position: Position | None, count: int
    ) -> tuple[list[Record], Position | None]:
        """Up to `count` records, straight from the store, and where to go on."""
        document = await self._documents.read(key)
        if document is not None and document.status != ACTIVE:
            document = None
        if position is None:
            if document is None:
                return [], None
            position = Position(document.incarnation, key.first_id(document.first_seq))
        elif document is None or document.incarnation != position.incarnation:
            raise SessionNotFoundError(
                f"iter_events: session {key.session_id!r} was deleted while its events were read."
            )
        found, following = await self._log.next(key, position.after, count)
        mine = [record for record in found if record.incarnation == position.incarnation]
        return mine, Position(position.incarnation, following) if following else None

    async def _fetch(
        self, key: SessionKey, view: LogView | None, count: int | None
    ) -> tuple[list[Record], list[Record]]:
        """What is not in hand: (older than the view, newer than the view)."""
        if view is None:
            if count is None:
                return [], await self._log.later(key, 0)
            return [], await self._log.newest(key, max(count, 1))
        newer = self._log.later(key, view.last + 1)
        missing = None if count is None else count - len(view.records)
        if view.whole or (missing is not None and missing <= 0):
            return [], await newer
        if missing is None:
            older = self._log.later(key, view.first_seq, view.first)
        else:
            older = self._log.newest(key, missing, view.first_seq, view.first)
        found = await together(older, newer)
        return found[0], found[1]

    async def _assemble(
        self,
        document: SessionDocument,
        view: LogView | None,
        fetched: tuple[list[Record], list[Record]],
        count: int | None,
        attempt: int,
    ) -> list[Record] | None:
        """The records in hand, without a gap and at least up to the document's revision; None if
        the parts were read at moments that do not fit, so that they must be read again."""
        key, incarnation, first_seq = document.key, document.incarnation, document.first_seq
        if view is not None and view.incarnation != incarnation:
            self._views.drop(key)
            return None
        older, newer = fetched
        # Appends of this process may have made the view longer while the rest was read.
        middle = _in_hand(view, document.revision, count)
        found = older + newer
        mine = [r for r in found if r.incarnation == incarnation and r.seq >= first_seq]
        records = mine
        if middle:
            first, last = middle[0].seq, middle[-1].seq
            before, after = (
                [r for r in mine if r.seq < first],
                [r for r in mine if r.seq > last],
            )
            records = before + middle + after if before or after else middle
        if count is not None:
            enough = sum(record.is_event for record in records) >= count
            wanted = document.revision + 1 if enough else first_seq
            if records and records[0].seq > wanted:
                records = await self._between(document, wanted, records[0].seq) + records
            elif not records and not view and (found or document.revision >= first_seq):
                # Events of an expired session, whose places went further, hid this one's end.
                records = await self._between(document, min(wanted, document.revision), None)
        last = records[-1].seq if records else first_seq - 1
        begin = records[0].seq if records and count is not None else first_seq
        if last < document.revision or _has_hole(records, begin):
            if attempt < _HOLE_ATTEMPTS:
                return None
            # Not a matter of time: documents were removed by other hands.
            report_holes(document, records, begin)
        return records

    async def _between(
        self, document: SessionDocument, first: int, before: int | None
    ) -> list[Record]:
        found = await self._log.later(document.key, first, before)
        return [record for record in found if record.incarnation == document.incarnation]


def _in_hand(view: LogView | None, revision: int, count: int | None) -> list[Record]:
    """What the view has of what is needed: the `count` newest, and all behind the revision."""
    if view is None:
        return []
    if count is None:
        return list(view.records)
    needed = max(view.last - revision, count, 1)
    newest_ones = view.records[-needed:]
    if sum(record.is_event for record in newest_ones) < count:  # tombstones are among them
        return list(view.records)
    return newest_ones


def _after(records: list[Record], seq: int) -> list[Record]:
    """The records behind `seq`, which are usually few."""
    start = len(records)
    while start and records[start - 1].seq > seq:
        start -= 1
    return records[start:]


def _has_hole(records: list[Record], begin: int) -> bool:
    return bool(records) and records[-1].seq - begin + 1 != len(records)


def _newest_events(view: LogView, records: list[Record], count: int | None) -> list[Record]:
    events = records if view.only_events else [record for record in records if record.is_event]
    if count is None:
        return events
    return events[-count:] if count else []
