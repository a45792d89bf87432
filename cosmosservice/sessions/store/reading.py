"""Reading a session: its documents and records are read in parallel, and combined consistently.

The parts may be read from replicas of different age. They are accepted only if the records reach
the document's revision without a gap; else the log is read again, as `EventLog.read_whole` says.
"""

from __future__ import annotations

import math
from typing import Any

from cosmosservice.account.charges import current_operation
from cosmosservice.account.failures import NotFound
from cosmosservice.account.retries import VISIBILITY
from cosmosservice.data_converters.state_scopes import Scoped, plain
from cosmosservice.errors import UnavailableError
from cosmosservice.hosting.concurrency import together
from cosmosservice.scopes import Pair
from cosmosservice.sessions.store.compaction import fits
from cosmosservice.sessions.store.documents import ACTIVE, FORKING, RESTORING
from cosmosservice.sessions.store.event_log import Plan
from cosmosservice.sessions.store.keys import Marker, SessionKey, StateKey
from cosmosservice.sessions.store.large_values import DamagedValueError
from cosmosservice.sessions.store.lifecycle import Lifecycle
from cosmosservice.sessions.store.log_view import LogView
from cosmosservice.sessions.store.parts import Part, Parts
from cosmosservice.sessions.store.projector import Projector
from cosmosservice.sessions.store.records import Record, after, is_deleted, of_incarnation
from cosmosservice.sessions.store.retention import expired, must_renew
from cosmosservice.sessions.store.session_documents import SessionDocument, fold
from cosmosservice.sessions.store.snapshot import Snapshot
from cosmosservice.sessions.store.state_documents import StateDocument, newest

_ALIVE = (ACTIVE, RESTORING, FORKING)


class SessionReader(Part):
    """Reads sessions whole, and has late documents projected."""

    def __init__(self, parts: Parts, lifecycle: Lifecycle, projector: Projector) -> None:
        super().__init__(parts)
        self._lifecycle = lifecycle
        self._projector = projector

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
        misses = 0  # of large values
        if confirmed:
            await self.confirm(key)
        for attempt in VISIBILITY:
            await VISIBILITY.pause(attempt)
            expected = await self._expected(key) if since_compaction else None
            view = self._views.of(key)
            document, user, app, found = await together(
                self._documents.read(key),
                *map(self._states.read, key.shared),
                self._fetch(key, view, newest_events, expected),
            )
            if document is None or not self._is_readable(document):
                self._views.drop(key)
                return None
            if document.status != ACTIVE:
                await self._lifecycle.complete(document)
                continue
            begin = document.first_seq if expected is None else document.loading.begin
            plan = Plan(begin, document.revision, newest=newest_events)
            given = self._joined(document, view, found, plan)
            if expected is not None and expected.loading.begin > begin:
                given = None
            records, _ = await self._log.read_whole(key, document.incarnation, plan, given)
            if begin > document.first_seq and not fits(records):
                since_compaction = False
                continue
            if is_deleted(after(records, document.revision)):
                await self._projector.projection.project(key, document.incarnation)
                return None
            try:
                return await self._snapshot(
                    document, Pair(user, app), records, newest_events, misses > 2
                )
            except (NotFound, DamagedValueError):  # a large value has been replaced, or is lost
                misses += 1
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
        without_lost: bool,
    ) -> Snapshot:
        """Raises NotFound if a large value is not found, and DamagedValueError if it is damaged.
        After several attempts, each with the newest document, the value counts as lost."""
        key, new = document.key, after(records, document.revision)
        known = self._views.take(key, document.incarnation, document.first_seq, records)
        initial = await self._documents.initial_changes(document)
        changes = initial.map(newest, known.changes)
        state = await self._values.whole(key, fold(document.state, new), without_lost=without_lost)
        of_both = await self._states.whole_shared(shared, changes)
        late = (
            new
            or any(shared.map(StateDocument.missing, changes))
            or _loading_may_have_changed(document, known)
        )
        if must_renew(document.body, self._clock.now()):
            self._projector.schedule(key, document.incarnation, at_once=True)
        elif late:
            self._projector.schedule(key, document.incarnation)
        times = [r.timestamp for r in new if r.is_event and math.isfinite(r.timestamp)]
        # Not from the view: an append of this process may have extended it since.
        last = records[-1].seq if records else 0
        return Snapshot(
            key,
            Marker(
                document.incarnation,
                max(last, document.revision),
                is_new=_is_new(document, records),
            ),
            _newest_events(known, records, count),
            Scoped(state, of_both),
            times[-1] if times else document.last_update_time,
            created=document.created,
        )

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
    ) -> list[Record]:
        """Reads the records that the view lacks."""
        begin = 0 if view is None else view.first_seq
        if expected is not None:
            begin = max(begin, expected.loading.begin)
        if view is None or not view.records:
            newest_ones = None if count is None else max(count, 1)
            return await self._log.read(key, after=begin - 1, newest=newest_ones)
        newer = self._log.read(key, after=view.last)
        lacking = None if count is None else count - len(view.records)
        if view.first <= begin or (lacking is not None and lacking <= 0):
            return await newer
        older = self._log.read(key, after=begin - 1, before=view.first, newest=lacking)
        return [record for found in await together(older, newer) for record in found]

    def _joined(
        self, document: SessionDocument, view: LogView | None, found: list[Record], plan: Plan
    ) -> list[Record] | None:
        """The records of the view and those found, of the document's incarnation, in order; None
        if they must be read again."""
        if view is not None and view.incarnation != document.incarnation:
            self._views.drop(document.key)
            return None
        mine = of_incarnation(found, document.incarnation, plan.begin)
        # Appends of this process may have extended the view while the rest was read.
        middle = _in_hand(view, plan)
        if not middle:
            # The newest records may be those of another incarnation.
            return mine if mine or plan.newest is None or not found else None
        first, last = middle[0].seq, middle[-1].seq
        before = [record for record in mine if record.seq < first]
        following = [record for record in mine if record.seq > last]
        return before + middle + following if before or following else middle


def _is_new(document: SessionDocument, records: list[Record]) -> bool:
    """Whether the session has no events yet, as far as these records show."""
    last = max(records[-1].seq if records else 0, document.revision)
    whole = last - document.first_seq + 1 == len(records)
    return whole and not any(record.is_event for record in records)


def _loading_may_have_changed(document: SessionDocument, view: LogView) -> bool:
    """Whether records other than those that the document names may have to be loaded."""
    loading = document.loading
    return (
        loading.at < view.last_loading_change <= document.revision and view.first <= loading.begin
    )


def _in_hand(view: LogView | None, plan: Plan) -> list[Record]:
    """The records of the plan that the view has."""
    if view is None:
        return []
    records = view.after(plan.begin - 1)
    records = list(view.records if records is None else records)
    if plan.newest is None:
        return records
    newest_ones = records[-max(view.last - plan.end, plan.newest, 1) :]
    if sum(record.is_event for record in newest_ones) < plan.newest:  # marks are among them
        return records
    return newest_ones


def _newest_events(view: LogView, records: list[Record], count: int | None) -> list[Record]:
    events = records if view.only_events else [record for record in records if record.is_event]
    if count is None:
        return events
    return events[-count:] if count else []
