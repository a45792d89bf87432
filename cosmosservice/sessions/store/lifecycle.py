"""Delete, restore and purge.

Deleting is appending: a tombstone takes the next place in the log, so that nobody else can.
Restore and purge are first announced in the session document, with If-Match, which decides between
them and a re-creation. Any process that finds an announcement completes it.

    active ──tombstone──▶ deleted ──▶ restoring ──"restored" record──▶ active
                             └──────▶ purging ──records become stubs──▶ purged   (expires by TTL)
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable

from cosmosservice.account.charges import current_operation
from cosmosservice.account.failures import Conflict, NotFound, PreconditionFailed
from cosmosservice.account.retries import STEPS
from cosmosservice.errors import AlreadyExistsError, SessionNotFoundError, UnavailableError
from cosmosservice.hosting.concurrency import together
from cosmosservice.sessions.store.clock import HybridClock
from cosmosservice.sessions.store.documents import (
    ACTIVE,
    DELETED,
    FORKING,
    PURGED,
    PURGING,
    RESTORED,
    RESTORING,
    TOMBSTONE,
)
from cosmosservice.sessions.store.erased import Erased
from cosmosservice.sessions.store.erasure import Erasure
from cosmosservice.sessions.store.event_log import EventLog
from cosmosservice.sessions.store.forking import Forking
from cosmosservice.sessions.store.keys import Marker, SessionKey, record_ttl
from cosmosservice.sessions.store.log_view import LogViews
from cosmosservice.sessions.store.projection import Projection
from cosmosservice.sessions.store.records import Record, is_deleted, new_mark
from cosmosservice.sessions.store.retention import expired
from cosmosservice.sessions.store.session_documents import SessionDocument, SessionDocuments


class Lifecycle:
    """Deletes, restores and purges sessions. Lives on one event loop."""

    def __init__(
        self,
        documents: SessionDocuments,
        log: EventLog,
        projection: Projection,
        erasure: Erasure,
        forking: Forking,
        views: LogViews,
        clock: HybridClock,
    ) -> None:
        self._documents = documents
        self._log = log
        self._projection = projection
        self._erasure = erasure
        self._forking = forking
        self._views = views
        self._clock = clock

    async def delete(self, key: SessionKey) -> None:
        """A soft delete. Does nothing if there is nothing to delete."""
        tombstone = new_mark(TOMBSTONE, self._clock.now())
        confirmed = placed = False
        for attempt in STEPS:
            current = await self._look(key, attempt)
            if current is None or self.is_gone(current):
                if confirmed or not await self._documents.probe(key):
                    return
                confirmed = True
                continue
            if placed and current.incarnation != tombstone.incarnation:
                return  # created again in the meantime
            confirmed = False
            if current.status in (RESTORING, FORKING):
                await self.complete(current)
                continue
            tail = await self._tail(current)
            if not is_deleted(tail):
                tombstone.incarnation = current.incarnation
                tombstone.seq = (tail[-1].seq if tail else current.revision) + 1
                tombstone.stamp = self._clock.next()
                if not await self._place(key, tombstone):
                    continue
                placed = True
                self._views.extend(key, [*tail, tombstone])
                if await self._projection.project(key, current.incarnation):
                    return
            else:
                await self._projection.project(key, current.incarnation)
            # Another writer placed a tombstone, or a read that may be stale found no living
            # session: read again after a probe.
            await self._documents.probe(key)
        raise _contended(key)

    async def _look(self, key: SessionKey, attempt: int) -> SessionDocument | None:
        await STEPS.pause(attempt)
        return await self._documents.read(key)

    def is_gone(self, document: SessionDocument) -> bool:
        """Whether the session is deleted, purged or expired."""
        return document.status in (DELETED, PURGING, PURGED) or self.has_expired(document)

    def has_expired(self, document: SessionDocument) -> bool:
        return expired(document.body, self._clock.now())

    async def _place(self, key: SessionKey, tombstone: Record) -> bool:
        """Whether this tombstone is now stored at its place, and not another writer's."""
        try:
            await self._log.append(key, tombstone, record_ttl(tombstone.incarnation))
        except Conflict:
            before = Marker(tombstone.incarnation, tombstone.seq - 1)
            found = await self._log.read_after(key, before)
            return found[0].event_id == tombstone.event_id
        return True

    async def restore(self, key: SessionKey) -> None:
        """Brings a deleted session back. Does nothing if it is not deleted."""
        restoring: str | None = None
        confirmed = log_confirmed = False
        for attempt in STEPS:
            current = await self._look(key, attempt)
            if current is None or current.status in (PURGING, PURGED) or self.has_expired(current):
                if not confirmed and await self._documents.probe(key):
                    confirmed = True
                    continue
                raise SessionNotFoundError(
                    f"restore_session: there is no deleted session {key.session_id!r}, or it was"
                    " purged."
                )
            if current.status == FORKING:
                await self.complete(current)
            elif current.status == RESTORING:
                restoring = current.incarnation
                await self._finish_restore(current)
            elif current.status == DELETED:
                restoring = current.incarnation
                body = current.with_status(RESTORING, self._clock.now())
                with contextlib.suppress(PreconditionFailed, NotFound):
                    await self._finish_restore(await self._documents.replace(current, body))
            elif restoring is not None:
                if current.incarnation == restoring:
                    return
                raise AlreadyExistsError(
                    f"restore_session: session {key.session_id!r} has been created again."
                )
            elif is_deleted(await self._tail(current)):
                await self._projection.project(key, current.incarnation)
            elif log_confirmed:
                return
            else:
                # The document and the log may be stale: the newest log may have a tombstone.
                await together(self._documents.probe(key), self._log.probe(key, 0, "probe"))
                confirmed = log_confirmed = True
        raise _contended(key)

    async def purge(
        self,
        key: SessionKey,
        *,
        deleted_before: str | None = None,
        companions: Callable[[SessionKey], Awaitable[None]] | None = None,
    ) -> Erased | None:
        """Erases a session, deleting it first if need be. Continues where another call stopped.

        None: there is nothing to erase. With `deleted_before`, a session that is not deleted, or
        was deleted later, is left unchanged. `companions` erases the session's data in other
        services. It runs while the purge is announced, so that it is repeated if interrupted.
        """
        erased: Erased | None = None
        target: str | None = None  # the incarnation to erase
        confirmed = False
        for attempt in STEPS:
            current = await self._look(key, attempt)
            if current is None or current.status == PURGED:
                if not confirmed and await self._documents.probe(key):
                    confirmed = True
                    continue
                return await self._swept(key, erased) if deleted_before is None else erased
            if current.status == ACTIVE and not self.has_expired(current):
                if deleted_before is not None:
                    return erased  # restored or created again since it was listed
                if target not in (None, current.incarnation):
                    return await self._swept(key, erased)  # created again: the new session stays
                target = current.incarnation
                await self.delete(key)
            elif current.status in (RESTORING, FORKING):
                await self.complete(current)
            elif current.status == PURGING:
                target = current.incarnation
                if companions is not None:
                    await companions(key)
                found, done = await self._erasure.complete(current)
                erased = _sum(erased, found)
                if done:
                    return erased
            elif deleted_before is not None and not current.updated_at <= deleted_before:
                return erased
            else:
                target = current.incarnation
                await self.announce_purge(current)
        raise _contended(key)

    async def _swept(self, key: SessionKey, erased: Erased | None) -> Erased | None:
        found = await self._erasure.sweep(key)
        return _sum(erased, found) if erased is not None or found.documents else None

    async def sweep_purged(self, key: SessionKey) -> Erased | None:
        """Sweeps a session that was purged a day ago: an upload may have been under way then.
        None if there is nothing to erase."""
        current = await self._documents.read(key)
        if current is None or current.status != PURGED:
            return None
        found = await self._erasure.sweep(key)
        body = current.without() | {"swept": True}
        with contextlib.suppress(PreconditionFailed, NotFound):
            await self._documents.replace(current, body)
        return found if found.documents else None

    async def announce_purge(self, document: SessionDocument) -> None:
        """Announces the purge, unless another writer was faster. Then nothing can restore the
        session."""
        body = document.with_status(PURGING, self._clock.now()) | {"state": {}}
        with contextlib.suppress(PreconditionFailed, NotFound):
            await self._documents.replace(document, body)

    async def purge_replaced(self, key: SessionKey, *, deleted_before: str) -> Erased | None:
        """Erases what is left of the predecessors of a session that was created again; None if
        there is nothing, or they were deleted later."""
        for attempt in STEPS:
            current = await self._look(key, attempt)
            if current is None or not current.replaced:
                return None
            if current.status == PURGING:
                return (await self._erasure.complete(current))[0]
            if not current.replaced.get("deleted_at", "") <= deleted_before:
                return None
            erased = await self._erasure.of_predecessors(current)
            if erased is not None:
                return erased
        raise _contended(key)

    def is_unfinished(self, document: SessionDocument) -> bool:
        """Whether its document alone says that there is something to complete."""
        return document.status != ACTIVE or self._forking.lacks_copies(document)

    async def complete(self, document: SessionDocument) -> bool:
        """Finishes a delete, restore, fork or purge that was interrupted. Returns whether there
        was one."""
        if document.status == RESTORING:
            await self._finish_restore(document)
            return True
        if self._forking.lacks_copies(document):
            await self._forking.copy_rest(document)
            return True
        if document.status == FORKING:
            if not await self._forking.complete(document):
                await self.announce_purge(document)
            return True
        if document.status == PURGING:
            await self._erasure.complete(document)
            return True
        if self.has_expired(document):
            return False
        if document.status == ACTIVE and is_deleted(await self._tail(document)):
            await self._projection.project(document.key, document.incarnation)
            return True
        return False

    async def _tail(self, document: SessionDocument) -> list[Record]:
        return await self._log.read(document.key, document.incarnation, after=document.revision)

    async def _finish_restore(self, document: SessionDocument) -> None:
        """The document fixes the record's place, so only one of several processes writes it."""
        restored = new_mark(RESTORED, self._clock.now())
        restored.incarnation, restored.seq = document.incarnation, document.revision + 1
        restored.stamp = self._clock.next()
        try:
            await self._log.append(document.key, restored, record_ttl(document.incarnation))
        except Conflict:
            pass
        else:
            self._views.extend(document.key, [restored])
        body = document.with_status(ACTIVE, self._clock.now()) | {"revision": restored.seq}
        with contextlib.suppress(PreconditionFailed, NotFound):
            await self._documents.replace(document, body)


def _sum(one: Erased | None, other: Erased) -> Erased:
    if one is not None:
        other.add(one)
    return other


def _contended(key: SessionKey) -> UnavailableError:
    return UnavailableError(
        f"{current_operation.get()}: session {key.session_id!r} is being changed by too many other"
        f" writers: {STEPS.attempts} attempts failed. The operation may be partly done; calling it"
        " again is safe, and continues from there."
    )
