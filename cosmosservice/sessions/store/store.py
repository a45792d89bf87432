"""The protocol: creating sessions and appending to them. Knows nothing of ADK.

Appending is creating the next id of the log: one request that stores the event with all its
state changes, decides between concurrent writers and is safe to send twice. The session, user
and app documents are projections of the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import logging
import operator
import time
from collections.abc import Callable

from cosmosservice.account import telemetry
from cosmosservice.account.cache import Cache
from cosmosservice.account.container import Container, Document
from cosmosservice.account.failures import Conflict, NotFound, PreconditionFailed
from cosmosservice.data_converters import to_json, wire_size
from cosmosservice.data_converters.state_scopes import NOTHING, Scoped
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
from cosmosservice.hosting.concurrency import GRACE, Locks, backoff, outlast
from cosmosservice.sessions.store.appending import Holder
from cosmosservice.sessions.store.clock import HybridClock
from cosmosservice.sessions.store.documents import ACTIVE, ITEM_LIMIT, STUB, session_document
from cosmosservice.sessions.store.event_log import EventLog, Record, is_deleted
from cosmosservice.sessions.store.keys import (
    APP_STATE,
    USER_STATE,
    Marker,
    SessionKey,
    event_ttl,
    new_incarnation,
    retention_of,
)
from cosmosservice.sessions.store.lifecycle import Lifecycle
from cosmosservice.sessions.store.listing import Listing
from cosmosservice.sessions.store.log_view import LogView, LogViews
from cosmosservice.sessions.store.projector import Projector
from cosmosservice.sessions.store.reading import SessionReader
from cosmosservice.sessions.store.session_documents import SessionDocument, SessionDocuments
from cosmosservice.sessions.store.snapshot import Snapshot
from cosmosservice.sessions.store.state_documents import Changes, StateDocuments, changes_of

logger = logging.getLogger("cosmosservice")

_CREATE_ATTEMPTS = 50
_FULL = (
    f"one Cosmos DB document takes {ITEM_LIMIT:,} bytes of it, and others have filled it. Only this"
    " session shows it. Once there is room, whoever uses this session next brings it to the others."
)


class SessionStore:
    """Lives on one event loop, with one connection."""

    def __init__(
        self, *, sessions: Container, events: Container, cache_bytes: int, rebase: bool
    ) -> None:
        self.cache = cache = Cache(cache_bytes)
        self._rebase = rebase
        self._locks = Locks()
        self.sessions = sessions
        self.events = events
        self.clock = HybridClock()
        self.log = EventLog(events, self.clock)
        self.states = StateDocuments(sessions, cache, self.clock)
        self.documents = SessionDocuments(sessions, cache, self.clock)
        self.views = LogViews(cache)
        self.projector = Projector(self.documents, self.states, self.log, self.views)
        self.lifecycle = Lifecycle(
            self.documents,
            self.log,
            self.projector,
            self.clock,
            self.views,
            sessions,
        )
        self.reader = SessionReader(
            self.documents, self.states, self.log, self.views, self.projector, self.lifecycle
        )
        self.listing = Listing(sessions, self.states, self.projector)

    # --- create

    async def create(self, key: SessionKey, state: Scoped, ttl: int | None) -> Snapshot:
        self._check_sizes(key, state, "create_session")
        mine: set[str] = set()

        def attempt(first_seq: int, replaced: Document | None = None) -> Document:
            incarnation = new_incarnation(ttl)
            mine.add(incarnation)
            return session_document(
                key,
                incarnation=incarnation,
                first_seq=first_seq,
                state=state.session,
                now=time.time(),
                pending=self._pending(state),
                replaced=replaced,
            )

        reads = asyncio.gather(self.states.read(key.user), self.states.read(key.app))
        try:
            document = await self._create(key, attempt, mine)
        except BaseException:
            reads.cancel()
            with contextlib.suppress(Exception, asyncio.CancelledError):
                await reads
            raise
        changes = {kind: document.pending_changes(kind) for kind in (USER_STATE, APP_STATE)}
        try:
            user, app = await reads
            rest = await self.projector.merge(key, changes[USER_STATE], changes[APP_STATE])
        except StorageError as problem:
            raise StateUpdatePendingError(
                f"create_session: the session {key.session_id!r} IS created, but user: and app:"
                f" state could not be read or followed: {problem} Get the session to go on with"
                " it; whoever reads it next repairs the rest.",
                status=problem.status,
            ) from None
        if names := _names(rest):
            raise StateUpdatePendingError(
                f"create_session: the session {key.session_id!r} IS created, but there is no room"
                f" for {names}: {_FULL} Get the session to go on with it."
            )
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
        self, key: SessionKey, attempt: Callable[..., Document], mine: set[str]
    ) -> SessionDocument:
        body = attempt(1)
        for number in range(_CREATE_ATTEMPTS):
            await backoff(number - 2)
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
            body = attempt(current.revision + 1, current.left_behind())
            if "replaced" in body and not _outlives(body, current.incarnation):
                await self.lifecycle.announce_purge(current)
                body = attempt(1)
                continue
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
        self.views.put(key, LogView(document.incarnation, document.first_seq, []))
        return document

    def _pending(self, state: Scoped) -> Document | None:
        """Initial user and app state stays in the session document until it is merged: a creator
        that dies in between must not have dropped it."""
        if not state.shared:
            return None
        scopes = {"user": state.user, "app": state.app}
        return {"stamp": self.clock.next()} | {k: v for k, v in scopes.items() if v}

    # --- append

    async def append(
        self, key: SessionKey, holder: Holder, record: Record, last_update_time: float
    ) -> None:
        if record.deltas is not NOTHING:
            self._check_sizes(key, record.deltas, "append_event")
        lock, handed_over = self._locks.of(key), False
        await lock.acquire()
        try:
            marker = Marker.parse(holder.marker(), key) or await self._adopt(key, last_update_time)
            if self._is_held(key, marker, record, holder):
                return
            stored = await self._store(key, holder, marker, record)
        except asyncio.CancelledError:
            if record.seq:  # it may be sent, so that somebody has to find out, and has the lock
                handed_over = True
                await outlast(self._carry_on(lock, key, holder, marker, record), GRACE)
            raise
        finally:
            if not handed_over:
                lock.release()
        await self._follow(key, stored)

    async def _carry_on(
        self, lock: asyncio.Lock, key: SessionKey, holder: Holder, marker: Marker, record: Record
    ) -> None:
        """An append whose caller is gone: the same again, since what was sent cannot be taken
        back. What is stored of it is recognised."""
        try:
            stored = await self._store(key, holder, marker, record)
        finally:
            lock.release()
        await self._follow(key, stored)

    async def _store(
        self, key: SessionKey, holder: Holder, marker: Marker, record: Record
    ) -> Record:
        """Puts the event into the log, and into what this process knows of it."""
        newer, stored = await self._append(key, marker, record)
        stored.fields = None
        holder.take(Marker(stored.incarnation, stored.seq).text(key), newer)
        self.views.extend(key, [*newer, stored])
        return stored

    async def _follow(self, key: SessionKey, stored: Record) -> None:
        """Sees to it that documents follow the log: the session's soon, shared state's now."""
        self.projector.schedule(key, stored.incarnation, appended=stored.seq)
        if stored.deltas.shared:
            try:
                rest = await self._merge(key, stored)
            except StorageError as problem:
                raise StateUpdatePendingError(
                    f"append_event: the event {stored.event_id!r} IS stored and the session object"
                    " holds it, but its user: or app: state is not yet visible to other sessions:"
                    f" {problem} It is tried again in the background; do not append it again.",
                    status=problem.status,
                ) from None
            if names := _names(rest):
                raise StateUpdatePendingError(
                    f"append_event: the event {stored.event_id!r} IS stored and the session object"
                    f" holds it, but there is no room for {names}: {_FULL} Do not append it again."
                )

    def _is_held(self, key: SessionKey, marker: Marker, record: Record, holder: Holder) -> bool:
        """Whether an event is delivered again that the session has up to the marker."""
        view = self.views.of(key)
        if view is None or view.incarnation != marker.incarnation:
            return holder.holds_event()
        held = view.ids.get(record.event_id)
        if held is not None and held.seq <= marker.seq:
            _must_be_same(held, record)
            return True
        return not view.whole and holder.holds_event()

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
            found = await self.log.behind(key, marker)
            own = next((r for r in found if r.event_id == record.event_id), None)
            if own is not None and own.kind == STUB:
                return [], record  # it was ours, and purged since
            if own is not None:
                if own.chunks != record.chunks:  # of an earlier call: these here are not needed
                    await self.log.discard(key, record)
                _must_be_same(own, record)
                before = newer + found[: found.index(own)]
                if own.lost:  # to this reader, for the moment: its body is in hand
                    own = dataclasses.replace(
                        record, seq=own.seq, stamp=own.stamp, chunks=own.chunks
                    )
                return before, own
            refused = self._refusal(key, found)
            if refused is not None:
                await self.log.discard(key, record)
                raise refused
            telemetry.conflict("rebased")
            newer += found
            marker = Marker(marker.incarnation, found[-1].seq)

    def _refusal(self, key: SessionKey, found: list[Record]) -> Exception | None:
        """Why an event cannot follow these records, which stand where it should."""
        if is_deleted(found) or any(record.kind == STUB for record in found):
            return SessionNotFoundError(f"Session {key.session_id} not found.")
        if not self._rebase or any(not record.is_event for record in found):
            # Also in rebase mode: what was deleted and restored is not silently continued.
            return StaleSessionError(STALE_MESSAGE)
        return None

    async def _adopt(self, key: SessionKey, last_update_time: float) -> Marker:
        """The marker of a session object that has none: listed, or built by hand."""
        snapshot = await self.reader.read(key, 0)
        if snapshot is None:
            raise SessionNotFoundError(f"Session {key.session_id} not found.")
        if snapshot.last_update_time > last_update_time:
            raise StaleSessionError(STALE_MESSAGE)
        assert snapshot.marker is not None
        return snapshot.marker

    async def _merge(self, key: SessionKey, record: Record) -> dict[str, Changes]:
        stamp = record.stamp, record.event_id
        rest = await self.projector.merge(
            key,
            changes_of(record.deltas, USER_STATE, stamp),
            changes_of(record.deltas, APP_STATE, stamp),
        )
        record.settled = not any(rest.values())
        return rest

    def _check_sizes(self, key: SessionKey, deltas: Scoped, operation: str) -> None:
        """State that cannot be kept in one document is refused before anything is stored."""
        self.states.check_size(key.user, deltas.user, operation)
        self.states.check_size(key.app, deltas.app, operation)
        if not deltas.session:
            return
        known, view = self.documents.known(key), self.views.of(key)
        behind = view.after(known.revision) if known is not None and view is not None else None
        size = (known.size if known is not None else 0) + _size(deltas.session)
        size += sum(map(_delta_size, behind or ()))
        if size > ITEM_LIMIT and known is not None:  # much of it may replace what is there
            changes = [record.deltas.session for record in behind or ()] + [deltas.session]
            after = functools.reduce(operator.or_, changes, known.state)
            size = known.size - _size(known.state) + _size(after)
        if size > ITEM_LIMIT:
            raise TooLargeError(
                f"{operation}: the state of session {key.session_id!r} would have about {size:,}"
                f" bytes; one Cosmos DB document takes {ITEM_LIMIT:,}. Nothing was stored."
            )

    async def close(self) -> None:
        await self.flush()

    async def flush(self) -> None:
        await self.projector.flush()
        await self.states.settle()


def _names(rest: dict[str, Changes]) -> str:
    """The keys that there is no room for, as callers know them."""
    names = sorted(scope + key for scope, changes in rest.items() for key in changes)
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _outlives(body: Document, predecessor: str) -> bool:
    """Whether the document will say where its predecessor's events are as long as there are any.
    One that expires does not, if they do not."""
    return "ttl" not in body or retention_of(predecessor) is not None


def _delta_size(record: Record) -> int:
    """Of its changes to the session's state. Every later append asks, until they are projected."""
    if record.delta_size is None:
        record.delta_size = _size(record.deltas.session)
    return record.delta_size


def _size(state: Document) -> int:
    return wire_size(to_json(state)) if state else 0


def _must_be_same(held: Record, record: Record) -> None:
    if not held.same_event(record):
        raise EventIdReusedError(record.event_id)
