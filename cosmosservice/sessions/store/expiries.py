"""Notes of sessions with a ttl.

Cosmos DB removes the documents of an expired session, and its artifacts stay. The note says that
there may be some. It stays until they are erased: by `purge_deleted`, by a purge of the session, or
by the creator of a new session of the same name.
"""

from __future__ import annotations

import contextlib
from typing import Any

from cosmosservice.account.container import Container
from cosmosservice.account.failures import Conflict, NotFound, PreconditionFailed
from cosmosservice.sessions.store.clock import HybridClock
from cosmosservice.sessions.store.documents import expiry_document
from cosmosservice.sessions.store.keys import SessionKey


class Expiries:
    """Notes when sessions expire, so that their dependants are erased then."""

    def __init__(self, container: Container, clock: HybridClock) -> None:
        self._container = container
        self._clock = clock

    async def begin(self, key: SessionKey, ttl: int | None) -> bool:
        """Notes a new session that will expire. Returns whether there was a note already: a session
        of this name has expired, of which artifacts may be left."""
        try:
            if ttl is None:
                await self._container.read(key.expiry_id, key.user_id)
                return True
            await self._container.create(expiry_document(key, self._clock.now() + ttl))
        except (Conflict, NotFound) as answer:
            return isinstance(answer, Conflict)
        return False

    async def postpone(self, key: SessionKey, expires_at: float) -> None:
        """The session is still in use: nobody has to look before this time."""
        with contextlib.suppress(NotFound, PreconditionFailed):
            found: Any = await self._container.read(key.expiry_id, key.user_id)
            await self._container.replace(expiry_document(key, expires_at), found["_etag"])

    async def remove(self, key: SessionKey) -> None:
        with contextlib.suppress(NotFound):
            await self._container.delete(key.expiry_id, key.user_id)
