"""Purge: erases sessions for good, with everything that belongs to them.

`purging` is announced in the session document. Whoever finds it erases the records, the values, the
memories and the artifacts, and then the last bytes in the embedded emulator's file. Only then is
the session marked as purged. A purge of many sessions in a file removes those bytes once, at its
end, and marks the sessions then.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from cosmosservice.account.dependants import Superseded
from cosmosservice.account.failures import NotFound, PreconditionFailed
from cosmosservice.account.retries import STEPS
from cosmosservice.sessions.store.documents import (
    ACTIVE,
    DAY,
    DELETED,
    FORKING,
    PURGED,
    PURGING,
    RESTORING,
    iso,
)
from cosmosservice.sessions.store.erased import Erased
from cosmosservice.sessions.store.lifecycle import contended

if TYPE_CHECKING:
    from cosmosservice.sessions.store.keys import SessionKey
    from cosmosservice.sessions.store.session_documents import SessionDocument
    from cosmosservice.sessions.store.store import SessionStore


class Purge:
    """One purge of any number of sessions. Ends with `finish`; if it is interrupted before, another
    purge completes it."""

    def __init__(self, store: SessionStore, *, deleted_before: float | None = None) -> None:
        """With `deleted_before`, a session that is in use, or was deleted later, stays."""
        self._store = store
        self._lifecycle = store.lifecycle
        self._erasure = store.erasure
        self._before = None if deleted_before is None else iso(deleted_before)
        self._erased: list[SessionDocument] = []

    async def finish(self) -> None:
        await self._store.erase_remnants()
        for each in self._erased:
            await self._erasure.mark(each)
        self._erased.clear()

    async def session(self, key: SessionKey) -> Erased | None:
        """Erases a session, deleting it first if need be. Continues where another call stopped.
        None: there is nothing to erase."""
        erased = Erased()
        target: str | None = None  # the incarnation to erase
        # Without this, a stale read could show a predecessor of the session to erase.
        confirmed = self._before is None
        if confirmed:
            await self._store.documents.probe(key)
        for attempt in STEPS:
            await STEPS.pause(attempt)
            current = await self._store.documents.read(key)
            if current is None or current.status == PURGED:
                if not confirmed and await self._store.documents.probe(key):
                    confirmed = True
                    continue
                return await self._swept(key, current, erased)
            expired = self._lifecycle.has_expired(current)
            if current.status == ACTIVE and not expired:
                if self._before is not None:
                    return await self._in_use(key, current)
                if target not in (None, current.incarnation):  # created again: that stays
                    return await self._predecessors(key, erased)
                target = current.incarnation
                await self._lifecycle.delete(key)
            elif current.status in (RESTORING, FORKING):
                await self._lifecycle.complete(current)
            elif current.status == PURGING:
                target = current.incarnation
                if current.spares_memories and self._before is None:
                    await self._lifecycle.announce_purge(current)
                    continue
                with contextlib.suppress(Superseded):  # another process has purged it
                    erased.add(await self._erasure.erase(current))
                    if self._store.leaves_remnants:
                        self._erased.append(current)
                    else:
                        await self._erasure.mark(current)
                    return erased
            elif self._before is not None and not expired and current.updated_at > self._before:
                return await self._former(key, current)  # it can still be restored
            else:
                target = current.incarnation
                # An expired session that nobody deleted leaves its memories to the user.
                spares = self._before is not None and expired and current.status != DELETED
                await self._lifecycle.announce_purge(current, spares=spares)
        raise contended(key)

    async def _swept(
        self, key: SessionKey, current: SessionDocument | None, erased: Erased
    ) -> Erased | None:
        """A session that has no document, or was purged. Something may be left: of a document that
        has expired, or of an upload that was under way."""
        memories = self._before is None or (current is not None and not current.spares_memories)
        erased.add(await self._erasure.sweep(key, memories=memories))
        if current is None:
            await self._store.expiries.remove(key)
        elif self._before is not None and current.updated_at <= iso(self._store.clock.now() - DAY):
            with contextlib.suppress(PreconditionFailed, NotFound):
                await self._store.documents.replace(current, current.without() | {"swept": True})
        return erased if erased.anything else None

    async def _in_use(self, key: SessionKey, current: SessionDocument) -> Erased | None:
        """A session with a ttl has a note, which has to wait."""
        expires_at = current.body.get("expires_at")
        if isinstance(expires_at, int | float):
            await self._store.expiries.postpone(key, expires_at)
        return await self._former(key, current)

    async def _former(self, key: SessionKey, current: SessionDocument) -> Erased | None:
        """A session that stays may have predecessors, which were deleted longer ago."""
        deleted_at = str(current.replaced.get("deleted_at", ""))
        if not current.replaced or deleted_at > (self._before or ""):
            return None
        return await self._predecessors(key, Erased())

    async def _predecessors(self, key: SessionKey, erased: Erased) -> Erased | None:
        erased.add(await self._erasure.sweep(key))
        for attempt in STEPS:
            await STEPS.pause(attempt)
            current = await self._store.documents.read(key)
            if current is None or not current.replaced or current.status not in (ACTIVE, DELETED):
                break
            found = await self._erasure.of_predecessors(current)
            if found is not None:
                erased.add(found)
                break
        else:
            raise contended(key)
        return erased if erased.anything else None
