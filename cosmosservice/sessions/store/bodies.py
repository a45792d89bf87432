"""The bodies of events over the item limit: in chunks, which are stored before the event itself.

The event document names its chunks and is the commit. So the chunks of an event that can be read
were stored: one that is not found is lag, or was removed by somebody else. A probe tells which.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from cosmosservice.account.container import Container, Document
from cosmosservice.account.failures import Conflict, NotFound
from cosmosservice.account.retries import VISIBILITY
from cosmosservice.data_converters import from_json
from cosmosservice.hosting.concurrency import together
from cosmosservice.sessions.store.documents import chunk_document
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.packing import Damaged, chunk_count, describe, pack, unpack

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
        chunks = await pack(raw)

        async def create(number: int, data: str) -> None:
            document = chunk_document(
                key,
                incarnation=incarnation,
                upload=upload,
                number=number,
                event_id=event_id,
                data=data,
            )
            if ttl is not None:
                document["ttl"] = ttl
            with contextlib.suppress(Conflict):  # nobody else uses this id: the response was lost
                await self._container.create(document)

        await together(*(create(number, data) for number, data in enumerate(chunks)))
        return {"upload": upload} | describe(raw, chunks)

    async def read(self, key: SessionKey, bodies: Sequence[Body]) -> list[Document | Exception]:
        """The fields of each event, or why they cannot be read."""
        return [await self._read(key, body) for body in bodies]

    async def _read(self, key: SessionKey, body: Body) -> Document | Exception:
        found: Document | Exception = NotFound()
        for attempt in VISIBILITY:
            await VISIBILITY.pause(attempt)
            try:
                return await self._download(key, body)
            except NotFound as problem:  # lag, if a probe finds the chunks
                found = problem
                if not await self.exists(key, body):
                    break
            except (Damaged, ValueError) as problem:
                return problem
        return found

    async def exists(self, key: SessionKey, body: Body) -> bool:
        """Whether the chunks of a body exist, decided by a probe."""
        ids = _chunk_ids(key, body)
        return all(await together(*(self._container.probe(each, key.session_id) for each in ids)))

    async def _download(self, key: SessionKey, body: Body) -> Document:
        chunks = _chunk_ids(key, body)
        found = await together(*(self._container.read(each, key.session_id) for each in chunks))
        whole: Document = from_json(await unpack(found, body.chunks))
        return whole

    async def discard(self, key: SessionKey, incarnation: str, chunks: Document) -> None:
        """Removes the chunks of an event that is known not to be stored. Purge and repair remove
        any that are left."""
        for chunk in _chunk_ids(key, Body(incarnation, chunks)):
            try:
                await self._container.delete(chunk, key.session_id)
            except Exception as problem:
                logger.debug("An unused chunk stays in the store: %s", type(problem).__name__)


def _chunk_ids(key: SessionKey, body: Body) -> Iterator[str]:
    count, upload = chunk_count(body.chunks), str(body.chunks.get("upload", ""))
    return (key.chunk_id(body.incarnation, upload, number) for number in range(count))
