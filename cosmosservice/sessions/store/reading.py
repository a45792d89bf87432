"""Reading a session: its documents and records are read in parallel, and combined consistently.

The parts may be read from replicas of different age. They are accepted only if the records reach
the document's revision without a gap. A gap is lag or damage, and a probe tells which.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from cosmosservice.account.charges import current_operation
from cosmosservice.account.failures import NotFound
from cosmosservice.account.retries import VISIBILITY
from cosmosservice.data_converters.state_scopes import Scoped, plain
from cosmosservice.errors import UnavailableError
from cosmosservice.hosting.concurrency import together
from cosmosservice.scopes import Pair
from cosmosservice.sessions.store.clock import HybridClock
from cosmosservice.sessions.store.compaction import Loading, fits
from cosmosservice.sessions.store.documents import ACTIVE, FORKING, RESTORING
from cosmosservice.sessions.store.event_log import EventLog
from cosmosservice.sessions.store.keys import Marker, SessionKey, StateKey
from cosmosservice.sessions.store.large_values import DamagedValueError, LargeValues
from cosmosservice.sessions.store.lifecycle import Lifecycle
from cosmosservice.sessions.store.log_view import LogView, LogViews
from cosmosservice.sessions.store.projection import Projection, report_damage
from cosmosservice.sessions.store.projector import Projector
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
    """What one call has learnt about the log over repeated reads."""

    lost_up_to: int = 0  # missing records up to this place are known to be lost
    since_compaction: bool = False
    misses: int = 0  # of large values
    has_lost_apart: bool = False  # single records missing before the run are lost


class _Fetched(NamedTuple):
    """Records that the view lacked."""

    older: list[Record]  # than the view
    newer: list[Record]
    apart: list[Record]  # before all others

    @property
    def records(self) -> list[Record]:
        return self.older + self.newer


class SessionReader:
    """Lives on one event loop."""

    def __init__(
        self,
        documents: SessionDocuments,
        states: StateDocuments,
        values: LargeValues,
        log: EventLog,
        views: LogViews,
        projection: Projection,
        projector: Projector,
        lifecycle: Lifecycle,
        clock: HybridClock,
    ) -> None:
        self._documents = documents
        self._states = states
        self._values = values
        self._log = log
        self._views = views
        self._projection = projection
        self._projector = projector
        self._lifecycle = lifecycle
        self._clock = clock

    async def read(
        self,
        key: SessionKey,
        newest_events: int | None = None,
        *,
        confirmed: bool = False,
        since_compaction: bool = False,
    ) -> Snapshot | None:
        """Takes one round trip: session, user and app document and the records in parallel.

        Returns a complete state that the session really had. With `confirmed`, the newest one. With
        `since_compaction`, without the events that summaries cover; that takes a second round trip
        if it is not yet known which those are.
        """
        call = _Call(since_compaction=since_compaction)
        if confirmed:
            await self.confirm(key)
        for attempt in VISIBILITY:
            await VISIBILITY.pause(attempt)
            expected = await self._expected(key) if call.since_compaction else None
            view = self._views.of(key)
            document, user, app, fetched = await together(
                self._documents.read(key),
                *map(self._states.read, key.shared),
                self._fetch(key, view, newest_events, expected),
            )
            if document is None or not self._is_readable(document):
                self._views.drop(key)
                return None
            if self._lifecycle.is_unfinished(document):
                await self._lifecycle.complete(document)
                continue
            loading = None
            if expected is not None:
                loading = document.loading
                if not _agree(expected, document):
                    continue
            records = await self._assemble(document, view, fetched, newest_events, loading, call)
            if records is None:
                continue
            apart = await self._apart(document, view, fetched.apart, loading, call)
            if apart is None:
                continue
            if loading is not None and not fits(loading, apart + records):
                call.since_compaction = False
                continue
            if is_deleted(after(records, document.revision)):
                await self._projection.project(key, document.incarnation)
                return None
            try:
                return await self._snapshot(
                    document, Pair(user, app), records, newest_events, apart, call
                )
            except (NotFound, DamagedValueError):  # a large value has been replaced, or is lost
                call.misses += 1
                await self._documents.probe(key)
        raise UnavailableError(
            f"{current_operation.get()}: the documents of session {key.session_id!r} were read"
            " from replicas that are too far apart. Nothing was changed."
        )

    async def confirm(self, key: SessionKey) -> None:
        """After this, no read of the session by this client is older than now."""
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
        apart: list[Record],
        call: _Call,
    ) -> Snapshot:
        """Raises NotFound if a large value is not found, and DamagedValueError if it is damaged.
        After several attempts, each with the newest document, the value counts as lost."""
        key, new = document.key, after(records, document.revision)
        known = self._views.take(key, document.incarnation, document.first_seq, records, apart)
        initial = await self._documents.initial_changes(document)
        changes = initial.map(newest, known.changes)
        state = await self._values.whole(
            key, fold(document.state, new), without_lost=call.misses > 2
        )
        of_both = await self._states.whole_shared(shared, changes)
        late = new or any(shared.map(StateDocument.missing, changes)) or _turned(document, known)
        new_session = _is_new(document, records)
        self._schedule(document, late=bool(late), new=new_session and not known.has_origin)
        times = [r.timestamp for r in new if r.is_event and math.isfinite(r.timestamp)]
        # Not from the view: an append of this process may have extended it since.
        last = records[-1].seq if records else 0
        return Snapshot(
            key,
            Marker(
                document.incarnation,
                max(last, document.revision),
                is_new=new_session,
            ),
            apart + _newest_events(known, records, count),
            Scoped(state, of_both),
            times[-1] if times else document.last_update_time,
            created=document.created,
        )

    def _schedule(self, document: SessionDocument, *, late: bool, new: bool) -> None:
        """Schedules the write of a late document, of one that would otherwise expire, or of the
        origin of a session without events."""
        key, incarnation = document.key, document.incarnation
        if must_renew(document.body, self._clock.now()):
            self._projector.schedule(key, incarnation, at_once=True)
        elif late:
            self._projector.schedule(key, incarnation)
        if new and self._views.of(key) is not None:  # without a view, it would be tried each time
            self._projector.schedule(key, incarnation, new=True)

    async def user_state(self, key: StateKey) -> dict[str, Any]:
        return plain(await self._states.whole(await self._states.read(key), {}))

    async def _expected(self, key: SessionKey) -> SessionDocument | None:
        """The document that probably says which records to load."""
        return self._documents.known(key) or await self._documents.read(key)

    async def _fetch(
        self,
        key: SessionKey,
        view: LogView | None,
        count: int | None,
        expected: SessionDocument | None,
    ) -> _Fetched:
        """Reads the records that the view lacks."""
        if expected is not None and expected.loading.begin > expected.first_seq:
            return await self._fetch_since(key, view, expected)
        if view is None:
            if count is None:
                return _Fetched([], await self._log.read(key), [])
            return _Fetched([], await self._log.read(key, newest=max(count, 1)), [])
        newer = self._log.read(key, after=view.last)
        missing = None if count is None else count - len(view.records)
        if view.whole or (missing is not None and missing <= 0):
            return _Fetched([], await newer, [])
        older = self._log.read(key, after=view.first_seq - 1, before=view.first, newest=missing)
        found = await together(older, newer)
        return _Fetched(found[0], found[1], [])

    async def _fetch_since(
        self, key: SessionKey, view: LogView | None, expected: SessionDocument
    ) -> _Fetched:
        """Like `_fetch`, for the records that the document says to load."""
        loading, incarnation = expected.loading, expected.incarnation
        before = loading.begin - 1
        if view is None or not view.records or view.incarnation != incarnation:
            places = list(loading.apart)
            reads = [self._log.read(key, after=before)]
        else:
            in_hand = {record.seq for record in view.of_places(loading.apart)}
            places = [seq for seq in loading.apart if seq not in in_hand]
            reads = [self._log.read(key, after=view.last)]
            if view.first > loading.begin:
                reads.append(self._log.read(key, after=before, before=view.first))
        newer, *older = await together(*reads, self._log.read_places(key, incarnation, places))
        apart = older.pop()
        return _Fetched(older[0] if older else [], newer, apart)

    async def _apart(
        self,
        document: SessionDocument,
        view: LogView | None,
        fetched: list[Record],
        loading: Loading | None,
        call: _Call,
    ) -> list[Record] | None:
        """The records before the run, loaded one by one; None if they must be read again."""
        if loading is None or not loading.apart:
            return []
        in_hand = fetched if view is None else fetched + view.of_places(loading.apart)
        found = {record.seq: record for record in in_hand}
        missing = [seq for seq in loading.apart if seq not in found]
        if missing and not call.has_lost_apart:
            call.has_lost_apart = await self._log.are_lost(
                document.key, document.incarnation, missing
            )
            return None
        report_damage(document.key, missing)
        return [found[seq] for seq in loading.apart if seq in found]

    async def _assemble(
        self,
        document: SessionDocument,
        view: LogView | None,
        fetched: _Fetched,
        count: int | None,
        loading: Loading | None,
        call: _Call,
    ) -> list[Record] | None:
        """The records without a gap, at least up to the document's revision; None if the parts
        must be read again."""
        key, incarnation = document.key, document.incarnation
        if view is not None and view.incarnation != incarnation:
            self._views.drop(key)
            return None
        records = _joined(document, view, fetched, count)
        begin = document.first_seq
        if loading is not None:
            begin = loading.begin
            records = [record for record in records if record.seq >= begin]
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
        """Adds earlier records until all pending ones and `count` events are included. Returns them
        and the place where they begin. With `hidden`, the newest records belong to other
        incarnations, and this one's are before them."""
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
    """Whether the session has no events yet, as far as these records show."""
    last = max(records[-1].seq if records else 0, document.revision)
    whole = last - document.first_seq + 1 == len(records)
    return whole and not any(record.is_event for record in records)


def _agree(expected: SessionDocument, document: SessionDocument) -> bool:
    """Whether both documents say to load the same records."""
    return (
        expected.incarnation == document.incarnation
        and expected.loading.begin == document.loading.begin
        and expected.loading.apart == document.loading.apart
    )


def _turned(document: SessionDocument, view: LogView) -> bool:
    """Whether records other than those that the document names may have to be loaded."""
    loading = document.loading
    return loading.at < view.turning <= document.revision and view.named(loading) is not None


def _joined(
    document: SessionDocument,
    view: LogView | None,
    fetched: _Fetched,
    count: int | None,
) -> list[Record]:
    """The records of the view and those fetched, of the document's incarnation, in order."""
    found = of_incarnation(fetched.records, document.incarnation, document.first_seq)
    # Appends of this process may have extended the view while the rest was read.
    middle = _in_hand(view, document.revision, count)
    if not middle:
        return found
    first, last = middle[0].seq, middle[-1].seq
    before = [record for record in found if record.seq < first]
    following = [record for record in found if record.seq > last]
    return before + middle + following if before or following else middle


def _in_hand(view: LogView | None, revision: int, count: int | None) -> list[Record]:
    """The needed records that the view has: the `count` newest, and all after the revision."""
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
