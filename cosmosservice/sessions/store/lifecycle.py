"""Delete, restore and purge.

Deleting is appending: a tombstone takes the next place in the log, so that nobody else can.
Restore and purge are announced in the session document first, by If-Match: it decides between
them and a re-creation, and whoever meets an announcement completes it.

    active ──tombstone──▶ deleted ──▶ restoring ──"restored" record──▶ active
                             └──────▶ purging ──events become stubs──▶ purged   (expires by TTL)
"""

from __future__ import annotations

import contextlib

from cosmosservice.account.charges import current_operation
from cosmosservice.account.container import Container
from cosmosservice.account.failures import Conflict, NotFound, PreconditionFailed
from cosmosservice.errors import AlreadyExistsError, SessionNotFoundError, UnavailableError
from cosmosservice.hosting.concurrency import backoff
from cosmosservice.sessions.store.clock import HybridClock
from cosmosservice.sessions.store.documents import (
    ACTIVE,
    DELETED,
    PURGED,
    PURGING,
    RESTORED,
    RESTORING,
    TOMBSTONE,
)
from cosmosservice.sessions.store.erasure import Erasure
from cosmosservice.sessions.store.event_log import EventLog, Record, is_deleted, mark
from cosmosservice.sessions.store.keys import SessionKey, event_ttl
from cosmosservice.sessions.store.log_view import LogViews
from cosmosservice.sessions.store.projector import Projector
from cosmosservice.sessions.store.session_documents import SessionDocument, SessionDocuments

_ATTEMPTS = 60
_USUAL = 4  # turns of a loop that nobody disturbs
_IMPOSSIBLE_ETAG = '"00000000-0000-0000-0000-000000000000"'


class Lifecycle:
    """The end of sessions, and the way back. Lives on one event loop."""

    def __init__(
        self,
        documents: SessionDocuments,
        log: EventLog,
        projector: Projector,
        clock: HybridClock,
        views: LogViews,
        sessions: Container,
    ) -> None:
        self._documents = documents
        self._log = log
        self._projector = projector
        self._clock = clock
        self._sessions = sessions
        self._views = views
        self._erasure = Erasure(documents, log, views)

    async def delete(self, key: SessionKey) -> None:
        """Soft, and silent if there is nothing to delete."""
        tombstone = mark(TOMBSTONE)
        confirmed = False
        for attempt in range(_ATTEMPTS):
            current = await self._look(key, attempt)
            if current is None or current.status in (DELETED, PURGING, PURGED):
                if confirmed or not await self.exists(key):
                    return
                confirmed = True
                continue
            confirmed = False
            if current.status == RESTORING:
                await self._finish_restore(current)
                continue
            tail = await self._tail(current)
            if not is_deleted(tail):
                tombstone.incarnation = current.incarnation
                tombstone.seq = (tail[-1].seq if tail else current.revision) + 1
                tombstone.stamp = self._clock.next()
                if await self._place(key, tombstone):
                    self._views.extend(key, [*tail, tombstone])
                    await self._projector.project(key, tombstone.incarnation)
                    return
            else:  # somebody else's: finish it, then look again
                await self._projector.project(key, current.incarnation)
        raise _crowded(key)

    async def _look(self, key: SessionKey, attempt: int) -> SessionDocument | None:
        await backoff(attempt - _USUAL)
        return await self._documents.read(key)

    async def _place(self, key: SessionKey, tombstone: Record) -> bool:
        """Whether the tombstone stands in its place now: this one, not somebody's like it."""
        try:
            await self._log.append(key, tombstone, event_ttl(tombstone.incarnation))
        except Conflict:
            place = await self._log.at(key, tombstone.seq, tombstone.incarnation)
            return place.event_id == tombstone.event_id
        return True

    async def restore(self, key: SessionKey) -> None:
        """Brings a deleted session back; silent if it is not deleted."""
        restoring: str | None = None
        confirmed = False
        for attempt in range(_ATTEMPTS):
            current = await self._look(key, attempt)
            if current is None or current.status in (PURGING, PURGED):
                if not confirmed and await self.exists(key):
                    confirmed = True
                    continue
                raise SessionNotFoundError(
                    f"restore_session: there is no deleted session {key.session_id!r}, or it was"
                    " purged."
                )
            if current.status == RESTORING:
                restoring = current.incarnation
                await self._finish_restore(current)
            elif current.status == DELETED:
                restoring = current.incarnation
                try:
                    await self._documents.replace(current, current.with_status(RESTORING))
                except (PreconditionFailed, NotFound):
                    continue
                announced = self._documents.known(key) or await self._documents.read(key)
                if announced is not None and announced.status == RESTORING:
                    await self._finish_restore(announced)
            elif restoring is not None:
                if current.incarnation == restoring:
                    return
                raise AlreadyExistsError(
                    f"restore_session: session {key.session_id!r} was created anew meanwhile."
                )
            elif is_deleted(await self._tail(current)):
                await self._projector.project(key, current.incarnation)
            elif confirmed or not await self.exists(key):
                return
            else:
                confirmed = True
        raise _crowded(key)

    async def purge(self, key: SessionKey, *, deleted_before: str | None = None) -> int | None:
        """Erases a session, deleting it first if need be. Goes on where another call stopped.

        Returns how many documents of the log lost their content or were removed. With
        `deleted_before` a session that is not deleted, or was so later, is left as it is: None.
        """
        if deleted_before is None:
            await self.delete(key)
        erased = 0
        confirmed = False
        for attempt in range(_ATTEMPTS):
            current = await self._look(key, attempt)
            if current is None or current.status == PURGED:
                if not confirmed and await self.exists(key):
                    confirmed = True
                    continue
                return erased
            if current.status == ACTIVE and deleted_before is not None:
                return erased or None  # restored or created anew since somebody looked
            if current.status == ACTIVE:
                if erased or not is_deleted(await self._tail(current)):
                    return erased  # created anew, or restored, by somebody else
                await self._projector.project(key, current.incarnation)
            elif current.status == RESTORING:
                await self._finish_restore(current)
                return erased
            elif current.status == PURGING:
                erased += await self._erasure.complete(current)
            elif deleted_before is not None and not current.updated_at <= deleted_before:
                return erased or None
            else:
                await self.announce_purge(current)
        raise _crowded(key)

    async def announce_purge(self, document: SessionDocument) -> None:
        """Unless somebody was faster. From then on nothing brings the deleted session back."""
        with contextlib.suppress(PreconditionFailed, NotFound):
            await self._documents.replace(document, document.with_status(PURGING) | {"state": {}})

    async def purge_replaced(self, key: SessionKey, *, deleted_before: str) -> int | None:
        """Erases what a session that was created anew has left of its predecessors, and says how
        many documents that were; None if there is nothing, or they were deleted later."""
        for attempt in range(_ATTEMPTS):
            current = await self._look(key, attempt)
            if current is None or not current.replaced:
                return None
            if current.status == PURGING:
                return await self._erasure.complete(current)
            if not current.replaced.get("deleted_at", "") <= deleted_before:
                return None
            erased = await self._erasure.of_predecessors(current)
            if erased is not None:
                return erased
        raise _crowded(key)

    async def complete(self, document: SessionDocument) -> bool:
        """Finishes what was begun and cut short: a delete, a restore, a purge. Whether it did."""
        if document.status == RESTORING:
            await self._finish_restore(document)
            return True
        if document.status == PURGING:
            await self._erasure.complete(document)
            return True
        if document.status == ACTIVE and is_deleted(await self._tail(document)):
            await self._projector.project(document.key, document.incarnation)
            return True
        return False

    async def exists(self, key: SessionKey) -> bool:
        """Decided on the newest version, whatever a read may have shown: a write that cannot
        succeed, after which this client reads no older version."""
        self._documents.forget(key)
        try:
            await self._sessions.replace(
                {"id": key.document_id, "user_id": key.user_id}, _IMPOSSIBLE_ETAG
            )
        except PreconditionFailed:
            return True
        except NotFound:
            return False
        raise AssertionError("a replace with an impossible etag succeeded")

    async def _tail(self, document: SessionDocument) -> list[Record]:
        found = await self._log.later(document.key, document.revision + 1)
        return [record for record in found if record.incarnation == document.incarnation]

    async def _finish_restore(self, document: SessionDocument) -> None:
        """The record's place is fixed by the document, so that of several helpers one writes it."""
        restored = mark(RESTORED)
        restored.incarnation, restored.seq = document.incarnation, document.revision + 1
        restored.stamp = self._clock.next()
        try:
            await self._log.append(document.key, restored, event_ttl(document.incarnation))
        except Conflict:
            pass
        else:
            self._views.extend(document.key, [restored])
        body = document.with_status(ACTIVE) | {"revision": restored.seq}
        with contextlib.suppress(PreconditionFailed, NotFound):
            await self._documents.replace(document, body)


def _crowded(key: SessionKey) -> UnavailableError:
    return UnavailableError(
        f"{current_operation.get()}: session {key.session_id!r} is being changed by so many others"
        f" that {_ATTEMPTS} attempts did not get through. It is not done, or half done; calling it"
        " again is safe, and goes on from there."
    )
