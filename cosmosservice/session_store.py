"""The protocol: create, read, append and delete sessions in Cosmos DB. Knows nothing of ADK.

Appending is creating the next id of the log: one request that stores the event with all its
state changes, decides between concurrent writers and is safe to send twice. The session, user
and app documents are projections of the log.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cosmosservice.cache import Cache
from cosmosservice.concurrency import Locks, together
from cosmosservice.connection import Connection
from cosmosservice.cosmos_client import Conflict, NotFound, PreconditionFailed
from cosmosservice.data_converters import to_json
from cosmosservice.documents import (
    ACTIVE,
    APP_STATE,
    DELETED,
    ITEM_LIMIT,
    PURGED,
    PURGING,
    RESTORING,
    STUB,
    USER_STATE,
    Document,
    Marker,
    SessionKey,
    StateKey,
    event_ttl,
    new_incarnation,
    session_document,
)
from cosmosservice.errors import (
    STALE_MESSAGE,
    AlreadyExistsError,
    EventIdReusedError,
    SessionNotFoundError,
    StaleSessionError,
    StateUpdatePendingError,
    StorageError,
    TooLargeError,
    UnavailableError,
)
from cosmosservice.event_log import EventLog, HybridClock, Record, is_deleted
from cosmosservice.lifecycle import Lifecycle
from cosmosservice.listing import Listing
from cosmosservice.log_view import LogView
from cosmosservice.projector import Projector, report_holes
from cosmosservice.retention import must_renew
from cosmosservice.session_documents import SessionDocument, SessionDocuments, fold
from cosmosservice.snapshot import Snapshot
from cosmosservice.state_documents import StateDocuments, changes_of, newest
from cosmosservice.state_scopes import Scoped, plain

logger = logging.getLogger("cosmosservice")

_READ_ATTEMPTS = 12
_HOLE_ATTEMPTS = 3
_CREATE_ATTEMPTS = 50


class MarkerCell:
    """Where the caller's session object keeps its marker: read and written under the lock."""

    def __init__(self, get: Callable[[], str | None], put: Callable[[str], None]) -> None:
        self._get, self._put = get, put

    def read(self) -> Marker | None:
        return Marker.parse(self._get())

    def write(self, marker: Marker) -> None:
        self._put(str(marker))


@dataclass
class Appended:
    """What an append did: the session object takes `newer` and then the event, unless known."""

    newer: list[Record] = field(default_factory=list)
    already_held: bool = False
    problem: StorageError | None = None


class SessionStore:
    """Lives on one event loop, with one connection."""

    def __init__(self, connection: Connection, *, cache_bytes: int, rebase: bool) -> None:
        self._cache = Cache(cache_bytes)
        self._rebase = rebase
        self._locks = Locks()
        self.connection = connection
        self.clock = HybridClock()
        self.log = EventLog(connection.events, self.clock)
        self.states = StateDocuments(connection.sessions, self._cache, self.clock)
        self.documents = SessionDocuments(connection.sessions, self._cache, self.clock)
        self.projector = Projector(self.documents, self.states, self.log, self._view)
        self.lifecycle = Lifecycle(
            self.documents, self.log, self.projector, self.clock, connection.sessions, self._extend
        )
        self.listing = Listing(connection.sessions, self.states, self.projector)

    # --- create

    async def create(self, key: SessionKey, state: Scoped, ttl: int | None) -> Snapshot:
        self._check_sizes(key, state, "create_session")
        mine: set[str] = set()

        def attempt(first_seq: int) -> Document:
            incarnation = new_incarnation(ttl)
            mine.add(incarnation)
            return session_document(
                key,
                incarnation=incarnation,
                first_seq=first_seq,
                state=state.session,
                now=time.time(),
                pending=self._pending(state),
            )

        document, user, app = await together(
            self._create(key, attempt, mine), self.states.read(key.user), self.states.read(key.app)
        )
        changes = {kind: document.pending_changes(kind) for kind in (USER_STATE, APP_STATE)}
        try:
            await self.projector.merge(key, changes[USER_STATE], changes[APP_STATE])
        except StorageError as problem:
            raise StateUpdatePendingError(
                f"create_session: the session {key.session_id!r} IS created, but its user: or app:"
                f" state is not yet visible to other sessions: {problem} Whoever reads the session"
                " next repairs that.",
                status=problem.status,
            ) from None
        return Snapshot(
            key,
            Marker(document.incarnation, document.revision),
            [],
            Scoped(
                document.state,
                user.overlaid(changes[USER_STATE]),
                app.overlaid(changes[APP_STATE]),
            ),
            document.last_update_time,
        )

    async def _create(
        self, key: SessionKey, attempt: Callable[[int], Document], mine: set[str]
    ) -> SessionDocument:
        body = attempt(1)
        for _ in range(_CREATE_ATTEMPTS):
            try:
                await self.documents.create(key, body)
            except Conflict:
                self.documents.forget(key)
            else:
                return self._created(key, body)
            current = await self.documents.read(key)
            if current is None:
                continue
            if current.incarnation in mine:  # the answer to our write was lost
                return current
            if await self.lifecycle.complete(current):
                continue
            if current.status == ACTIVE:
                raise AlreadyExistsError(f"Session with id {key.session_id} already exists.")
            body = attempt(current.revision + 1)
            try:
                await self.documents.replace(current, body)
            except (PreconditionFailed, NotFound):
                body = attempt(1)
                continue
            return self._created(key, body)
        raise UnavailableError(
            f"create_session: session {key.session_id!r} is created and deleted by others all the"
            " time. Nothing was stored."
        )

    def _created(self, key: SessionKey, body: Document) -> SessionDocument:
        document = SessionDocument(key, body, "")
        self._remember(key, LogView(document.incarnation, document.first_seq, []))
        return document

    def _pending(self, state: Scoped) -> Document | None:
        """Initial user and app state stays in the session document until it is merged: a creator
        that dies in between must not have dropped it."""
        if not state.shared:
            return None
        scopes = {"user": state.user, "app": state.app}
        return {"stamp": self.clock.next()} | {k: v for k, v in scopes.items() if v}

    # --- read

    async def read(self, key: SessionKey, newest_events: int | None = None) -> Snapshot | None:
        """One round trip deep: session, user and app document and the events side by side."""
        for attempt in range(_READ_ATTEMPTS):
            if attempt > 1:
                await asyncio.sleep(0.01 * 2 ** min(attempt, 6))
            view = self._view(key)
            document, user, app, fetched = await together(
                self.documents.read(key),
                self.states.read(key.user),
                self.states.read(key.app),
                self._fetch(key, view, newest_events),
            )
            if document is None or document.status in (DELETED, PURGING, PURGED):
                self._cache.drop(_log(key))
                return None
            if document.status == RESTORING:
                await self.lifecycle.complete(document)
                continue
            records = await self._assemble(document, view, fetched, newest_events, attempt)
            if records is None:
                continue
            behind = [record for record in records if record.seq > document.revision]
            if is_deleted(behind):
                await self.projector.project(key, document.incarnation)
                return None
            known = self._remember_records(document, records)
            pending = {kind: document.pending_changes(kind) for kind in (USER_STATE, APP_STATE)}
            user_changes = newest((pending[USER_STATE], known.changes[USER_STATE]))
            app_changes = newest((pending[APP_STATE], known.changes[APP_STATE]))
            behind_documents = user.pending(user_changes) or app.pending(app_changes)
            if behind or behind_documents or must_renew(document.body):
                self.projector.schedule(key, document.incarnation)
            times = [record.timestamp for record in behind if record.is_event]
            return Snapshot(
                key,
                Marker(document.incarnation, max(known.last, document.revision)),
                _newest_events(records, newest_events),
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
        return plain((await self.states.read(key)).state)

    async def events_after(self, key: SessionKey, seq: int | None, count: int) -> list[Record]:
        """The next `count` records of the log, straight from the store."""
        document = await self.documents.read(key)
        if document is None or document.status != ACTIVE:
            return []
        first = document.first_seq if seq is None else seq + 1
        found = await self.log.next(key, first, count)
        return [record for record in found if record.incarnation == document.incarnation]

    async def _fetch(
        self, key: SessionKey, view: LogView | None, count: int | None
    ) -> tuple[list[Record], list[Record]]:
        """What is not in hand: (older than the view, newer than the view)."""
        if view is None:
            if count is None:
                return [], await self.log.later(key, 0)
            return [], await self.log.newest(key, max(count, 1))
        newer = self.log.later(key, view.last + 1)
        missing = None if count is None else count - len(view.records)
        if view.whole or (missing is not None and missing <= 0):
            return [], await newer
        if missing is None:
            older = self.log.later(key, view.first_seq, view.first)
        else:
            older = self.log.newest(key, missing, view.first_seq, view.first)
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
            self._cache.drop(_log(key))
            return None
        older, newer = fetched
        middle = list(view.records) if view is not None else []
        found = [*older, *middle, *newer]
        records = [r for r in found if r.incarnation == incarnation and r.seq >= first_seq]
        if count is not None:
            enough = sum(record.is_event for record in records) >= count
            wanted = document.revision + 1 if enough else first_seq
            if records and records[0].seq > wanted:
                records = await self._between(document, wanted, records[0].seq) + records
            elif not records and (found or document.revision >= first_seq):
                records = await self._between(document, wanted, None)
        last = records[-1].seq if records else first_seq - 1
        if last < document.revision or _has_hole(records):
            if attempt < _HOLE_ATTEMPTS:
                return None
            # Not a matter of time: documents were removed by other hands.
            report_holes(document, records)
        return records

    async def _between(
        self, document: SessionDocument, first: int, before: int | None
    ) -> list[Record]:
        found = await self.log.later(document.key, first, before)
        return [record for record in found if record.incarnation == document.incarnation]

    # --- append

    async def append(
        self, key: SessionKey, cell: MarkerCell, record: Record, last_update_time: float
    ) -> Appended:
        self._check_sizes(key, record.deltas, "append_event")
        async with self._locks.of(key):
            marker = cell.read() or await self._adopt(key, last_update_time)
            view = self._view(key)
            if view is not None and view.incarnation == marker.incarnation:
                held = view.ids.get(record.event_id)
                if held is not None and held.seq <= marker.seq:
                    _must_be_same(held, record)
                    return Appended(already_held=True)
            newer, stored = await self._append(key, marker, record)
            cell.write(Marker(stored.incarnation, stored.seq))
            self._extend(key, [*newer, stored])
        result = Appended(newer)
        if stored.deltas.shared:
            try:
                await self._merge(key, stored)
            except StorageError as problem:
                result.problem = StateUpdatePendingError(
                    f"append_event: the event {stored.event_id!r} IS stored and the session object"
                    " holds it, but its user: or app: state is not yet visible to other sessions:"
                    f" {problem} It is tried again in the background; do not append it again.",
                    status=problem.status,
                )
        self.projector.schedule(key, stored.incarnation)
        return result

    async def _append(
        self, key: SessionKey, marker: Marker, record: Record
    ) -> tuple[list[Record], Record]:
        newer: list[Record] = []
        while True:
            record.incarnation, record.seq = marker.incarnation, marker.seq + 1
            record.stamp = self.clock.next()
            try:
                await self.log.append(key, record, event_ttl(record.incarnation))
            except Conflict:
                pass
            else:
                return newer, record
            found = await self._behind_marker(key, marker)
            own = next((r for r in found if r.event_id == record.event_id and r.is_event), None)
            if own is not None:
                _must_be_same(own, record)
                return newer + found[: found.index(own)], own
            if is_deleted(found) or any(r.kind == STUB for r in found):
                raise SessionNotFoundError(f"Session {key.session_id} not found.")
            if not self._rebase or any(not r.is_event for r in found):
                # Also in rebase mode: what was deleted and restored is not silently continued.
                raise StaleSessionError(STALE_MESSAGE)
            newer += found
            marker = Marker(marker.incarnation, found[-1].seq)

    async def _behind_marker(self, key: SessionKey, marker: Marker) -> list[Record]:
        """What took the place behind the marker, and what followed it."""
        for attempt in range(_READ_ATTEMPTS):
            await asyncio.sleep(0.01 * 2 ** min(attempt, 6) if attempt else 0)
            found = await self.log.later(key, marker.seq + 1)
            mine = [record for record in found if record.incarnation == marker.incarnation]
            if mine and mine[0].seq == marker.seq + 1:
                return mine
        raise UnavailableError(
            f"append_event: another event is stored behind the end of session {key.session_id!r}"
            " as it was loaded, but cannot be read yet. The event was not stored."
        )

    async def _adopt(self, key: SessionKey, last_update_time: float) -> Marker:
        """The marker of a session object that has none: listed, or built by hand."""
        snapshot = await self.read(key, 0)
        if snapshot is None:
            raise SessionNotFoundError(f"Session {key.session_id} not found.")
        if snapshot.last_update_time > last_update_time:
            raise StaleSessionError(STALE_MESSAGE)
        assert snapshot.marker is not None
        return snapshot.marker

    async def _merge(self, key: SessionKey, record: Record) -> None:
        stamp = record.stamp, record.event_id
        await self.projector.merge(
            key,
            changes_of(record.deltas, USER_STATE, stamp),
            changes_of(record.deltas, APP_STATE, stamp),
        )
        record.settled = True

    # --- what is known

    def _view(self, key: SessionKey) -> LogView | None:
        found: LogView | None = self._cache.get(_log(key))
        return found

    def _remember(self, key: SessionKey, view: LogView) -> LogView:
        self._cache.put(_log(key), view)
        return view

    def _remember_records(self, document: SessionDocument, records: list[Record]) -> LogView:
        key = document.key
        view = self._view(key)
        if view is None or view.incarnation != document.incarnation:
            return self._remember(key, LogView(document.incarnation, document.first_seq, records))
        if records and (records[0].seq < view.first or not view.records):
            newer = [record for record in view.records if record.seq > records[-1].seq]
            return self._remember(
                key, LogView(document.incarnation, document.first_seq, records + newer)
            )
        view.first_seq = document.first_seq
        view.extend(records)
        return self._remember(key, view)

    def _extend(self, key: SessionKey, records: list[Record]) -> None:
        view = self._view(key)
        first = records[0]
        if (
            view is None
            or view.incarnation != first.incarnation
            or not view.first <= first.seq <= view.last + 1
        ):
            # Of the beginning nothing is known here; 0 makes a reader of everything look for it.
            view = LogView(first.incarnation, 0, list(records))
        else:
            view.extend(records)
        self._remember(key, view)

    def _check_sizes(self, key: SessionKey, deltas: Scoped, operation: str) -> None:
        """State that cannot be kept in one document is refused before anything is stored."""
        self.states.check_size(key.user, deltas.user, operation)
        self.states.check_size(key.app, deltas.app, operation)
        if not deltas.session:
            return
        known = self.documents.known(key)
        size = len(to_json(deltas.session)) + (known.size if known is not None else 0)
        if size > ITEM_LIMIT:
            raise TooLargeError(
                f"{operation}: the state of session {key.session_id!r} would have about {size:,}"
                f" bytes; one Cosmos DB document takes {ITEM_LIMIT:,}. Nothing was stored."
            )

    async def flush(self) -> None:
        await self.projector.flush()
        await self.states.settle()


def _log(key: SessionKey) -> tuple[str, SessionKey]:
    return "log", key


def _has_hole(records: list[Record]) -> bool:
    return bool(records) and records[-1].seq - records[0].seq + 1 != len(records)


def _newest_events(records: list[Record], count: int | None) -> list[Record]:
    events = [record for record in records if record.is_event]
    if count is None:
        return events
    return events[-count:] if count else []


def _must_be_same(held: Record, record: Record) -> None:
    if not held.same_event(record):
        raise EventIdReusedError(
            f"append_event: the session already holds a different event with the id"
            f" {record.event_id!r}. Nothing was stored."
        )
