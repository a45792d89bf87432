"""The bodies of events over the item limit: in chunks, which are stored before the event itself.

The event document names its chunks and is the commit. So a chunk of an event that can be read was
stored; one that does not show is not visible yet, where replicas may be behind, or other hands
removed it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import logging
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from cosmosservice.account.container import Container, Document
from cosmosservice.account.failures import Conflict, NotFound
from cosmosservice.data_converters import from_json
from cosmosservice.hosting.concurrency import together
from cosmosservice.sessions.store.documents import CHUNK
from cosmosservice.sessions.store.keys import SessionKey

logger = logging.getLogger("cosmosservice")

IDS = "SELECT VALUE c.id FROM c WHERE c.id >= @first AND c.id < @last"

_CHUNK_BYTES = 1_400_000  # of compressed text; a third more as base64
_MAX_CHUNKS = 9_999  # what their ids have digits for
_READ_ATTEMPTS = 6  # of what does not show; all pauses together take less than a second


class Body(NamedTuple):
    """Where the body of an event was put."""

    incarnation: str
    chunks: Any  # as the event document says


class LargeBodies:
    """Uploads and reads them."""

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
        """Stores the body and returns what the event document has to say of it. The same upload
        may be sent again."""
        packed = await asyncio.to_thread(zlib.compress, raw, 1)
        pieces = [packed[i : i + _CHUNK_BYTES] for i in range(0, len(packed), _CHUNK_BYTES)]

        async def create(number: int, piece: bytes) -> None:
            document: Document = {
                "id": key.chunk_id(incarnation, upload, number),
                "document_type": CHUNK,
                "session_id": key.session_id,
                "user_id": key.user_id,
                "app_name": key.app_name,
                "incarnation": incarnation,
                "event_id": event_id,
                "data": base64.b64encode(piece).decode("ascii"),
            }
            if ttl is not None:
                document["ttl"] = ttl
            with contextlib.suppress(Conflict):  # nobody else has this id: the answer was lost
                await self._container.create(document)

        await together(*(create(number, piece) for number, piece in enumerate(pieces)))
        return {
            "upload": upload,
            "count": len(pieces),
            "bytes": len(raw),
            "sha256": checksum(raw),
        }

    async def read(self, key: SessionKey, bodies: Sequence[Body]) -> list[Document | Exception]:
        """The fields of each event, or why they cannot be read. What does not show may be a
        matter of time, and is read again."""
        found = [await self._download(key, *body) for body in bodies]
        for attempt in range(1, _READ_ATTEMPTS):
            missing = [n for n, each in enumerate(found) if isinstance(each, NotFound)]
            if not missing:
                break
            await asyncio.sleep(0.01 * 2**attempt)
            for number in missing:
                found[number] = await self._download(key, *bodies[number])
        return found

    async def shows(self, key: SessionKey, body: Body) -> bool:
        """Whether the chunks of a body that was not found are there by now."""
        first, last = key.upload_range(body.incarnation, body.chunks["upload"])
        parameters = {"first": first, "last": last}
        found = await self._container.query(IDS, parameters, key.session_id)
        return len(found) >= int(body.chunks["count"])

    async def _download(
        self, key: SessionKey, incarnation: str, chunks: Any
    ) -> Document | Exception:
        try:
            upload, count = chunks["upload"], int(chunks["count"])
            if not 0 < count <= _MAX_CHUNKS:
                raise ValueError("its number of chunks is impossible")
            found = await together(
                *(
                    self._container.read(key.chunk_id(incarnation, upload, number), key.session_id)
                    for number in range(count)
                )
            )
            packed = b"".join(base64.b64decode(chunk["data"]) for chunk in found)
            raw = await asyncio.to_thread(zlib.decompress, packed)
            if checksum(raw) != chunks["sha256"]:
                raise ValueError("its checksum is wrong")
            whole: Document = from_json(raw)
            return whole
        except (NotFound, KeyError, TypeError, ValueError, zlib.error) as problem:
            return problem

    async def discard(self, key: SessionKey, incarnation: str, chunks: Document) -> None:
        """Removes the chunks of an event that is certain not to be stored. Purge removes what
        this misses."""
        for number in range(chunks["count"]):
            try:
                chunk = key.chunk_id(incarnation, chunks["upload"], number)
                await self._container.delete(chunk, key.session_id)
            except Exception as problem:
                logger.debug("An unused chunk stays behind: %s", type(problem).__name__)


def checksum(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
