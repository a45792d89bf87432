"""Appending: creating the next id of the log.

One request stores the event with all its state changes, decides between concurrent writers, and
is safe to send twice.
"""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Protocol

from cosmosservice.account import telemetry
from cosmosservice.account.container import Document
from cosmosservice.account.failures import Conflict, NotFound
from cosmosservice.data_converters.state_scopes import NOTHING
from cosmosservice.errors import (
    STALE_MESSAGE,
    EventIdReusedError,
    SessionNotFoundError,
    StaleSessionError,
    StateUpdatePendingError,
    StorageError,
)
from cosmosservice.hosting.concurrency import GRACE, Locks, acquire_in_time, outlast
from cosmosservice.sessions.store.clock import HybridClock
from cosmosservice.sessions.store.documents import STUB
from cosmosservice.sessions.store.event_log import EventLog
from cosmosservice.sessions.store.held import Held
from cosmosservice.sessions.store.keys import Marker, SessionKey, record_ttl
from cosmosservice.sessions.store.large_values import LargeValues
from cosmosservice.sessions.store.log_view import LogViews
from cosmosservice.sessions.store.projector import Projector
from cosmosservice.sessions.store.provenance import Provenance
from cosmosservice.sessions.store.records import Record, is_deleted
from cosmosservice.sessions.store.remembering import Remembering
from cosmosservice.sessions.store.session_documents import SessionDocuments
from cosmosservice.sessions.store.sizes import Sizes
from cosmosservice.sessions.store.state_documents import StateDocuments, record_changes


class Holder(Protocol):
    """Holds the caller's session object and the event. It is called on the store's event loop,
    under the session's lock, so that each append sees the result of the one before it."""

    def held(self) -> Held:
        """What the session object holds."""

    def take(self, marker: str, newer: list[Record]) -> None:
        """The event is stored, after these records that the session object had not seen."""

    def holds_event(self) -> bool:
        """Whether the session object already has the event. Raises EventIdReusedError if it has
        a different event with the same id."""


class Appending:
    """Lives on one event loop."""

    def __init__(
        self,
        documents: SessionDocuments,
        values: LargeValues,
        log: EventLog,
        states: StateDocuments,
        views: LogViews,
        projector: Projector,
        provenance: Provenance,
        sizes: Sizes,
        clock: HybridClock,
        remembering: Remembering | None,
        *,
        rebase: bool,
    ) -> None:
        self._documents = documents
        self._values = values
        self._log = log
        self._states = states
        self._views = views
        self._projector = projector
        self._provenance = provenance
        self._sizes = sizes
        self._clock = clock
        self._remembering = remembering
        self._rebase = rebase
        self._locks = Locks()

    async def append(self, key: SessionKey, holder: Holder, record: Record) -> None:
        if record.deltas is not NOTHING:
            self._sizes.check(key, record.deltas, "append_event")
        lock, handed_over = self._locks.of(key), False
        await acquire_in_time(
            lock,
            "append_event: earlier appends to this session took all of the timeout. Nothing was"
            " stored; sending it again is safe.",
        )
        try:
            marker = await self._provenance.marker(key, holder.held(), record.event_id)
            if self._is_held(key, marker, record, holder):
                return
            if marker.is_new:
                record.initial = await self._initial(key, marker)
            stored = await self._store(key, holder, marker, record)
        except asyncio.CancelledError:
            if record.seq:  # may have been sent: keep the lock until the outcome is known
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
        """Finishes an append whose caller was cancelled: a request that was sent cannot be taken
        back. The append is repeated, and recognises the event if it is already stored."""
        try:
            stored = await self._store(key, holder, marker, record)
        finally:
            lock.release()
        await self._follow(key, stored)

    async def _store(
        self, key: SessionKey, holder: Holder, marker: Marker, record: Record
    ) -> Record:
        """Adds the event to the log, and to this process's view of the log."""
        newer, stored = await self._append(key, marker, record)
        stored.fields = None
        holder.take(Marker(stored.incarnation, stored.seq).text(key), newer)
        self._views.extend(key, [*newer, stored])
        return stored

    async def _follow(self, key: SessionKey, stored: Record) -> None:
        """Brings the documents up to date: shared state now, the session document soon."""
        self._projector.schedule(key, stored.incarnation, appended=stored.seq)
        if self._remembering is not None:
            self._remembering.schedule(key, stored)
        if not stored.deltas.has_shared:
            return
        try:
            await self._states.merge_shared(key, record_changes([stored]))
        except StorageError as problem:
            raise StateUpdatePendingError(
                f"append_event: the event {stored.event_id!r} IS stored and the session object"
                " holds it, but its user: or app: state is not yet visible to other sessions:"
                f" {problem} It is retried in the background; do not append it again.",
                status=problem.status,
            ) from None
        stored.settled = True

    async def _initial(self, key: SessionKey, marker: Marker) -> Document | None:
        """The state that the session was created with. The first event stores it, so that the log
        is complete. None if the session has events by now."""
        document = await self._provenance.document(key, marker, self._documents.known(key))
        if document is None or document.revision > marker.seq:
            return None
        try:
            return await self._values.whole(key, document.state)
        except NotFound:  # a large value was replaced: there are events by now
            return None

    def _is_held(self, key: SessionKey, marker: Marker, record: Record, holder: Holder) -> bool:
        """Whether this event is a repeat of one that the session has, up to the marker."""
        view = self._views.of(key)
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
        """The records that other writers added first, and the stored record."""
        newer: list[Record] = []
        while True:
            record.incarnation, record.seq = marker.incarnation, marker.seq + 1
            record.stamp = self._clock.next()
            try:
                await self._log.append(key, record, record_ttl(record.incarnation))
            except Conflict:
                pass
            else:
                return newer, record
            found = await self._log.read_after(key, marker)
            own = next((r for r in found if r.event_id == record.event_id), None)
            if own is not None:
                return await self._recognised(key, record, own, newer + found)
            refused = self._refusal(key, found)
            if refused is not None:
                await self._log.discard(key, record)
                raise refused
            telemetry.conflict("rebased")
            if record.initial is not None:  # only the first event stores it
                await self._log.discard(key, record)
                record.initial, record.chunks, record.upload = None, None, ""
            newer += found
            marker = Marker(marker.incarnation, found[-1].seq)

    async def _recognised(
        self, key: SessionKey, record: Record, own: Record, found: list[Record]
    ) -> tuple[list[Record], Record]:
        """Returns the event if it is already stored: the response to this write was lost, or an
        earlier call stored it."""
        if own.kind == STUB:
            return [], record  # it was ours, and has been purged since
        if own.chunks != record.chunks:  # an earlier call uploaded the body: ours is not needed
            await self._log.discard(key, record)
        _must_be_same(own, record)
        before = found[: found.index(own)]
        if own.lost:  # this read could not load the body, but the caller has it
            own = dataclasses.replace(record, seq=own.seq, stamp=own.stamp, chunks=own.chunks)
        return before, own

    def _refusal(self, key: SessionKey, found: list[Record]) -> Exception | None:
        """Why an event cannot follow these records, which took its place."""
        if is_deleted(found) or any(record.kind == STUB for record in found):
            return SessionNotFoundError(f"Session {key.session_id} not found.")
        if not self._rebase or any(not record.is_event for record in found):
            # Even in rebase mode: a session that was deleted and restored must be loaded again.
            return StaleSessionError(STALE_MESSAGE)
        return None


def _must_be_same(held: Record, record: Record) -> None:
    if not held.same_event(record):
        raise EventIdReusedError(record.event_id)
