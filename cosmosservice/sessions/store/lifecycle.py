"""Delete and restore, and what announces an erasure. purging.py has the purge.

Deleting is appending: a tombstone takes the next sequence number, so that nobody else can.
Restore and purge are first announced in the session document, with If-Match, which decides between
them and a re-creation. Any process that finds an announcement completes it.

    active ──tombstone──▶ deleted ──▶ restoring ──"restored" record──▶ active
                             ├──────▶ purging ──everything is erased──▶ purged   (expires by TTL)
                             └──────▶ clearing ──artifacts are erased──▶ active, a new session
"""

from __future__ import annotations

import contextlib

from cosmosservice.account.charges import current_operation
from cosmosservice.account.container import Document
from cosmosservice.account.dependants import Superseded
from cosmosservice.account.failures import Conflict, NotFound, PreconditionFailed
from cosmosservice.account.retries import STEPS
from cosmosservice.errors import AlreadyExistsError, SessionNotFoundError, UnavailableError
from cosmosservice.hosting.concurrency import together
from cosmosservice.sessions.store.documents import (
    ACTIVE,
    CLEARING,
    DELETED,
    FORKING,
    MEMORIES,
    PURGED,
    PURGING,
    RESTORED,
    RESTORING,
    TOMBSTONE,
)
from cosmosservice.sessions.store.erasure import Erasure
from cosmosservice.sessions.store.forking import Forking
from cosmosservice.sessions.store.keys import Marker, SessionKey, record_ttl
from cosmosservice.sessions.store.parts import Part, Parts
from cosmosservice.sessions.store.projection import Projection
from cosmosservice.sessions.store.records import Record, is_deleted, new_mark
from cosmosservice.sessions.store.retention import expired
from cosmosservice.sessions.store.session_documents import SessionDocument

_ERASED = (CLEARING, PURGING, PURGED)
_GONE = (DELETED, *_ERASED)


class Lifecycle(Part):
    """Deletes, restores and purges sessions."""

    def __init__(
        self, parts: Parts, projection: Projection, erasure: Erasure, forking: Forking
    ) -> None:
        super().__init__(parts)
        self._projection = projection
        self._erasure = erasure
        self._forking = forking

    async def delete(self, key: SessionKey) -> None:
        """A soft delete. Does nothing if there is nothing to delete."""
        tombstone = new_mark(TOMBSTONE, self._clock.now())
        confirmed = written = False
        for attempt in STEPS:
            current = await self._look(key, attempt)
            if current is None or self.is_gone(current):
                if confirmed or not await self._documents.probe(key):
                    return
                confirmed = True
                continue
            if written and current.incarnation != tombstone.incarnation:
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
                if not await self._bury(key, tombstone):
                    continue
                written = True
                self._views.extend(key, [*tail, tombstone])
                if await self._projection.project(key, current.incarnation):
                    return
            else:
                await self._projection.project(key, current.incarnation)
            # Another writer wrote a tombstone, or a read that may be stale found no living
            # session: read again after a probe.
            await self._documents.probe(key)
        raise contended(key)

    async def _look(self, key: SessionKey, attempt: int) -> SessionDocument | None:
        await STEPS.pause(attempt)
        return await self._documents.read(key)

    def is_gone(self, document: SessionDocument) -> bool:
        """Whether the session is deleted, purged or expired."""
        return document.status in _GONE or self.has_expired(document)

    def has_expired(self, document: SessionDocument) -> bool:
        return expired(document.body, self._clock.now())

    async def _bury(self, key: SessionKey, tombstone: Record) -> bool:
        """Whether this tombstone is now stored, and not another writer's record."""
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
            if current is None or current.status in _ERASED or self.has_expired(current):
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
        raise contended(key)

    async def announce_purge(self, document: SessionDocument, *, spares: bool = False) -> None:
        """Announces the purge, unless another writer was faster. Then nothing can restore the
        session. With `spares`, its memories stay with the user."""
        fields: Document = {"spares": MEMORIES} if spares else {}
        body = document.remains(PURGING, self._clock.now(), **fields)
        with contextlib.suppress(PreconditionFailed, NotFound):
            await self._documents.replace(document, body)

    async def announce_clearing(self, document: SessionDocument) -> SessionDocument:
        """Announces that a new session will replace this one: nothing can restore it.
        Raises PreconditionFailed or NotFound if another writer was faster."""
        replaced = document.as_predecessor()
        body = document.remains(CLEARING, self._clock.now(), replaced=replaced)
        body |= document.named.fields  # values that its successor removes
        return await self._documents.replace(document, body)

    async def complete(self, document: SessionDocument) -> bool:
        """Finishes a delete, restore, fork or purge that was interrupted. Returns whether there
        was one."""
        if document.status == RESTORING:
            await self._finish_restore(document)
            return True
        if document.status == FORKING:
            if not await self._forking.complete(document):
                await self.announce_purge(document)
            return True
        if document.status == PURGING:
            with contextlib.suppress(Superseded):  # erased, and created again
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
        """The document fixes the record's number, so only one of several processes writes it."""
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


def contended(key: SessionKey) -> UnavailableError:
    return UnavailableError(
        f"{current_operation.get()}: session {key.session_id!r} is being changed by too many other"
        f" writers: {STEPS.attempts} attempts failed. The operation may be partly done; calling it"
        " again is safe, and continues from there."
    )
