"""Appending: creating the next id of the log.

One request stores the event with all its state changes, decides between concurrent writers, and
is safe to send twice.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

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
from cosmosservice.sessions.store.documents import STUB
from cosmosservice.sessions.store.held import Seen
from cosmosservice.sessions.store.keys import Marker, SessionKey, record_ttl
from cosmosservice.sessions.store.parts import Part, Parts
from cosmosservice.sessions.store.projector import Projector
from cosmosservice.sessions.store.provenance import Provenance
from cosmosservice.sessions.store.reading import SessionReader
from cosmosservice.sessions.store.records import Record, is_deleted
from cosmosservice.sessions.store.remembering import Remembering
from cosmosservice.sessions.store.state_documents import record_changes


class Appended(NamedTuple):
    """What an append adds to a session object."""

    newer: list[Record]  # those of other writers that the object had not seen
    stored: Record
    problem: StateUpdatePendingError | None = None  # user and app state that follows later

    @property
    def marker(self) -> Marker:
        return Marker(self.stored.incarnation, self.stored.seq)


class Appending(Part):
    """Appends events to logs, on the event loop of its store."""

    def __init__(
        self,
        parts: Parts,
        reader: SessionReader,
        projector: Projector,
        remembering: Remembering | None,
    ) -> None:
        super().__init__(parts)
        self._projector = projector
        self._remembering = remembering
        self._provenance = Provenance(parts, reader)
        self._sizes = parts.sizes
        self._rebase = parts.options.rebase

    async def append(self, key: SessionKey, seen: Seen, record: Record) -> Appended | None:
        """Adds the event to the log after what the session object has seen; None if it is one of
        these events. The caller holds the session's lock, so that each append sees the result of
        the one before it.

        If this is cancelled, the event may be stored. Appending it again recognises it.
        """
        if record.deltas is not NOTHING:
            self._sizes.check(key, record.deltas, "append_event")
        marker = await self._provenance.marker(key, seen, record.event_id)
        if self._is_repeated(key, marker, record, seen):
            return None
        if marker.is_new:
            record.initial = await self._initial(key, marker)
        newer, stored = await self._append(key, marker, record)
        stored.fields = None
        self._views.extend(key, [*newer, stored])
        self._projector.schedule(key, stored.incarnation, appended=stored.seq)
        if self._remembering is not None:
            self._remembering.schedule(key, stored)
        if not stored.deltas.has_shared:
            return Appended(newer, stored)
        return Appended(newer, stored, await self._merge_shared(key, stored))

    async def _merge_shared(
        self, key: SessionKey, stored: Record
    ) -> StateUpdatePendingError | None:
        """Brings user and app state up to date. The session document follows soon."""
        try:
            await self._states.merge_shared(key, record_changes([stored]))
        except StorageError as problem:
            pending = StateUpdatePendingError(
                f"append_event: the event {stored.event_id!r} IS stored and the session object"
                " holds it, but its user: or app: state is not yet visible to other sessions:"
                f" {problem} It is retried in the background; do not append it again.",
                status=problem.status,
            )
            telemetry.reported(pending)
            return pending
        stored.merged = True
        return None

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

    def _is_repeated(self, key: SessionKey, marker: Marker, record: Record, seen: Seen) -> bool:
        """Whether the session has this event already, up to the marker."""
        view = self._views.of(key)
        if view is None or view.incarnation != marker.incarnation:
            return seen.has(record)
        held = view.ids.get(record.event_id)
        if held is not None and held.seq <= marker.seq:
            _must_be_same(held, record)
            return True
        return not view.whole and seen.has(record)

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
        """Why an event cannot follow these records, which were stored first."""
        if is_deleted(found) or any(record.kind == STUB for record in found):
            return SessionNotFoundError(f"Session {key.session_id} not found.")
        if not self._rebase or any(not record.is_event for record in found):
            # Even in rebase mode: a session that was deleted and restored must be loaded again.
            return StaleSessionError(STALE_MESSAGE)
        return None


def _must_be_same(held: Record, record: Record) -> None:
    if not held.same_event(record):
        raise EventIdReusedError(record.event_id)
