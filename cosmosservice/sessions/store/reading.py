"""Reading a session: its documents and its records side by side, put together consistently.

The parts may be read from replicas of different age. They are accepted only if the records reach
the document's revision without a gap. A gap is lag or damage, and a probe tells which.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from cosmosservice.account.charges import current_operation
from cosmosservice.account.failures import NotFound
from cosmosservice.account.retries import VISIBILITY
from cosmosservice.data_converters.state_scopes import Scoped, plain
from cosmosservice.errors import UnavailableError
from cosmosservice.hosting.concurrency import together
from cosmosservice.scopes import Pair
from cosmosservice.sessions.store.clock import HybridClock
from cosmosservice.sessions.store.documents import ACTIVE, FORKING, RESTORING
from cosmosservice.sessions.store.event_log import EventLog
from cosmosservice.sessions.store.keys import Marker, SessionKey, StateKey
from cosmosservice.sessions.store.large_values import LargeValues
from cosmosservice.sessions.store.lifecycle import Lifecycle
from cosmosservice.sessions.store.log_view import LogView, LogViews
from cosmosservice.sessions.store.projector import Projector, report_damage
from cosmosservice.sessions.store.records import (
    Record,
    after,
    is_deleted,
    missing_places,
    of_incarnation,
)
from cosmosservice.sessions.store.retention import expired, must_renew
from cosmosservice.sessions.store.session_documents import SessionDocument, SessionDocuments, fold
from cosmosservice.sessions.store.snapshot import Snapshot
from cosmosservice.sessions.store.state_documents import StateDocument, StateDocuments, newest

_ALIVE = (ACTIVE, RESTORING, FORKING)


@dataclass
class _Call:
    """What one call has learnt of the log while it was read again."""

    lost_up_to: int = 0  # records that are missing up to this place are known to be lost


class SessionReader:
    """Lives on one event loop."""

    def __init__(
        self,
        documents: SessionDocuments,
        states: StateDocuments,
        values: LargeValues,
        log: EventLog,
        views: LogViews,
        projector: Projector,
        lifecycle: Lifecycle,
        clock: HybridClock,
    ) -> None:
        self._documents = documents
        self._states = states
        self._values = values
        self._log = log
        self._views = views
        self._projector = projector
        self._lifecycle = lifecycle
        self._clock = clock

    async def read(
        self, key: SessionKey, newest_events: int | None = None, *, confirmed: bool = False
    ) -> Snapshot | None:
        """One round trip deep: session, user and app document and the records side by side.

        A state that the session really had, whole. With `confirmed`, the newest one.
        """
        call = _Call()
        if confirmed:
            await self.confirm(key)
        for attempt in VISIBILITY:
            await VISIBILITY.pause(attempt)
            view = self._views.of(key)
            document, user, app, fetched = await together(
                self._documents.read(key),
                *map(self._states.read, key.shared),
                self._fetch(key, view, newest_events),
            )
            if document is None or not self._is_readable(document):
                self._views.drop(key)
                return None
            if document.status != ACTIVE:
                await self._lifecycle.complete(document)
                continue
            records = await self._assemble(document, view, fetched, newest_events, call)
            if records is None:
                continue
            if is_deleted(after(records, document.revision)):
                await self._projector.project(key, document.incarnation)
                return None
            try:
                return await self._snapshot(document, Pair(user, app), records, newest_events)
            except NotFound:  # a large value was replaced since
                await self._documents.probe(key)
        raise UnavailableError(
            f"{current_operation.get()}: the documents of session {key.session_id!r} were read"
            " from replicas that are too far apart. Nothing was changed."
        )

    async def confirm(self, key: SessionKey) -> None:
        """After this, no read of this client of the session is older than now."""
        await together(self._documents.probe(key), self._log.probe(key, 0, "probe"))

    async def current(self, key: SessionKey) -> SessionDocument | None:
        """The document of a living session, in its newest version."""
        for attempt in VISIBILITY:
            await VISIBILITY.pause(attempt)
            document = await self._documents.read(key)
            if document is None or not self._is_readable(document):
                return None
            if document.status == ACTIVE:
                return document
            await self._lifecycle.complete(document)
        return None

    def _is_readable(self, document: SessionDocument) -> bool:
        return document.status in _ALIVE and not expired(document.body, self._clock.now())

    async def _snapshot(
        self,
        document: SessionDocument,
        shared: Pair[StateDocument],
        records: list[Record],
        count: int | None,
    ) -> Snapshot:
        """Raises NotFound if a large value is gone."""
        key, new = document.key, after(records, document.revision)
        known = self._views.take(key, document.incarnation, document.first_seq, records)
        initial = await self._documents.initial_changes(document)
        changes = initial.map(newest, known.changes)
        state = await self._values.whole(key, fold(document.state, new))
        of_user = await self._states.whole(shared.user, changes.user)
        of_app = await self._states.whole(shared.app, changes.app)
        late = new or any(shared.map(StateDocument.missing, changes))
        self._schedule(document, late=bool(late))
        times = [r.timestamp for r in new if r.is_event and math.isfinite(r.timestamp)]
        # Not what the view has: an append of this process may have made it longer since.
        last = records[-1].seq if records else 0
        return Snapshot(
            key,
            Marker(
                document.incarnation,
                max(last, document.revision),
                is_new=_is_new(document, records),
            ),
            _newest_events(known, records, count),
            Scoped(state, Pair(of_user, of_app)),
            times[-1] if times else document.last_update_time,
        )

    def _schedule(self, document: SessionDocument, *, late: bool) -> None:
        """A late document, or one that would expire otherwise, will be written."""
        key, incarnation = document.key, document.incarnation
        if must_renew(document.body, self._clock.now()):
            self._projector.schedule(key, incarnation, at_once=True)
        elif late:
            self._projector.schedule(key, incarnation)

    async def user_state(self, key: StateKey) -> dict[str, Any]:
        return plain(await self._states.whole(await self._states.read(key), {}))

    async def _fetch(
        self, key: SessionKey, view: LogView | None, count: int | None
    ) -> tuple[list[Record], list[Record]]:
        """What is not in hand: (older than the view, newer than the view)."""
        if view is None:
            if count is None:
                return [], await self._log.read(key)
            return [], await self._log.read(key, newest=max(count, 1))
        newer = self._log.read(key, after=view.last)
        missing = None if count is None else count - len(view.records)
        if view.whole or (missing is not None and missing <= 0):
            return [], await newer
        older = self._log.read(key, after=view.first_seq - 1, before=view.first, newest=missing)
        found = await together(older, newer)
        return found[0], found[1]

    async def _assemble(
        self,
        document: SessionDocument,
        view: LogView | None,
        fetched: tuple[list[Record], list[Record]],
        count: int | None,
        call: _Call,
    ) -> list[Record] | None:
        """The records in hand, without a gap and at least up to the document's revision; None if
        the parts must be read again."""
        key, incarnation = document.key, document.incarnation
        if view is not None and view.incarnation != incarnation:
            self._views.drop(key)
            return None
        records = _joined(document, view, fetched, count)
        begin = document.first_seq
        if count is not None:
            hidden = view is None and not records and any(fetched)
            records, begin = await self._extended(document, records, count, hidden=hidden)
        missing = missing_places(records, begin, document.revision)
        if not missing:
            return records
        end = max(document.revision, records[-1].seq if records else 0)
        if end > call.lost_up_to:
            if await self._log.are_lost(key, incarnation, missing):
                call.lost_up_to = end
            return None
        report_damage(key, missing)
        return records

    async def _extended(
        self, document: SessionDocument, records: list[Record], count: int, *, hidden: bool
    ) -> tuple[list[Record], int]:
        """With enough records before the newest ones, and the place where they begin: all that the
        document has not followed yet, and `count` events. With `hidden`, the newest records are
        those of other incarnations, and this one's are before them."""
        enough = sum(record.is_event for record in records) >= count
        begin = document.revision + 1 if enough else document.first_seq
        if hidden:
            begin = max(min(begin, document.revision), document.first_seq)
        end = records[0].seq if records else None
        if hidden or (end is not None and end > begin):
            earlier = await self._log.read(
                document.key, document.incarnation, after=begin - 1, before=end
            )
            records = earlier + records
        return records, min(begin, records[0].seq) if records else begin


def _is_new(document: SessionDocument, records: list[Record]) -> bool:
    """Whether the session has no events yet, as far as the records in hand tell."""
    last = max(records[-1].seq if records else 0, document.revision)
    whole = last - document.first_seq + 1 == len(records)
    return whole and not any(record.is_event for record in records)


def _joined(
    document: SessionDocument,
    view: LogView | None,
    fetched: tuple[list[Record], list[Record]],
    count: int | None,
) -> list[Record]:
    """What was in hand and what was fetched, of the document's incarnation and in order."""
    older, newer = fetched
    found = of_incarnation(older + newer, document.incarnation, document.first_seq)
    # Appends of this process may have made the view longer while the rest was read.
    middle = _in_hand(view, document.revision, count)
    if not middle:
        return found
    first, last = middle[0].seq, middle[-1].seq
    before = [record for record in found if record.seq < first]
    following = [record for record in found if record.seq > last]
    return before + middle + following if before or following else middle


def _in_hand(view: LogView | None, revision: int, count: int | None) -> list[Record]:
    """What the view has of what is needed: the `count` newest, and all after the revision."""
    if view is None:
        return []
    if count is None:
        return list(view.records)
    needed = max(view.last - revision, count, 1)
    newest_ones = view.records[-needed:]
    if sum(record.is_event for record in newest_ones) < count:  # tombstones are among them
        return list(view.records)
    return newest_ones


def _newest_events(view: LogView, records: list[Record], count: int | None) -> list[Record]:
    events = records if view.only_events else [record for record in records if record.is_event]
    if count is None:
        return events
    return events[-count:] if count else []
