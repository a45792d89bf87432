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
    """Lives on one event loop."""

    def __init__(self, container: Container, clock: HybridClock) -> None:
        self._container = container
        self._clock = clock

    async def note(self, key: SessionKey, seconds: int) -> bool:
        """False if there is a note already."""
        try:
            await self._container.create(expiry_document(key, self._clock.now() + seconds))
        except Conflict:
            return False
        return True

    async def is_noted(self, key: SessionKey) -> bool:
        try:
            await self._container.read(key.expiry_id, key.user_id)
        except NotFound:
            return False
        return True

    async def postpone(self, key: SessionKey, expires_at: float) -> None:
        """The session is still in use: nobody has to look before this time."""
        with contextlib.suppress(NotFound, PreconditionFailed):
            found: Any = await self._container.read(key.expiry_id, key.user_id)
            await self._container.replace(expiry_document(key, expires_at), found["_etag"])

    async def remove(self, key: SessionKey) -> None:
        with contextlib.suppress(NotFound):
            await self._container.delete(key.expiry_id, key.user_id)
