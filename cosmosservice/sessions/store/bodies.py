"""The bodies of events over the item limit: in chunks, which are stored before the event itself.

The event document names its chunks and is the commit. So the chunks of an event that can be read
were stored: one that is not found is lag, or was removed by somebody else (account/chunks.py).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from cosmosservice.account import chunks
from cosmosservice.account.chunks import Damaged, chunk_count, name_in
from cosmosservice.account.container import Container, Document
from cosmosservice.sessions.store.documents import chunk_document
from cosmosservice.sessions.store.keys import SessionKey

logger = logging.getLogger("cosmosservice")


class Body(NamedTuple):
    """Where the body of an event is stored."""

    incarnation: str
    chunks: Any  # the description in the event document


class LargeBodies:
    """Uploads and reads the bodies of large events."""

    def __init__(self, container: Container) -> None:
        self._container = container

    async def upload(
        self,
        key: SessionKey,
        incarnation: str,
        event_id: str,
        raw: bytes,
        ttl: int | None,
        upload: str,
    ) -> Document:
        """Stores the body and returns its description for the event document. The same upload
        may be repeated."""

        def made(number: int, data: str) -> Document:
            return chunk_document(
                key,
                incarnation=incarnation,
                upload=upload,
                number=number,
                event_id=event_id,
                data=data,
            )

        return {"upload": upload} | await chunks.upload(self._container, raw, made, ttl)

    async def read(self, key: SessionKey, bodies: Sequence[Body]) -> list[Document | Damaged]:
        """The fields of each event, or why they cannot be read."""
        return [await self._read(key, body) for body in bodies]

    async def _read(self, key: SessionKey, body: Body) -> Document | Damaged:
        try:
            ids = _chunk_ids(key, body)
            found = await chunks.load_json(self._container, ids, key.session_id, body.chunks)
        except Damaged as problem:
            return problem
        return found if isinstance(found, dict) else Damaged("it is not an event")

    async def discard(self, key: SessionKey, incarnation: str, named: Document) -> None:
        """Removes the chunks of an event that is known not to be stored. Purge and repair remove
        any that are left."""
        for chunk in _chunk_ids(key, Body(incarnation, named)):
            try:
                await self._container.delete(chunk, key.session_id)
            except Exception as problem:
                logger.debug("An unused chunk stays in the store: %s", type(problem).__name__)


def _chunk_ids(key: SessionKey, body: Body) -> list[str]:
    count, upload = chunk_count(body.chunks), name_in(body.chunks, "upload")
    return [key.chunk_id(body.incarnation, upload, number) for number in range(count)]
