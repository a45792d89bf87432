"""Where followers of the live feed are: a document for each of them, in a partition of its own."""

from __future__ import annotations

import datetime
from typing import Final

from cosmosservice.account.container import Container, Document
from cosmosservice.account.failures import Conflict, NotFound, PreconditionFailed
from cosmosservice.account.retries import CONTENTION
from cosmosservice.errors import StorageError

_PARTITION: Final = "="  # which no owner has: see embedding
_KIND: Final = "position"


class Positions:
    """Of one container. Followers are told apart by the names that they give themselves."""

    def __init__(self, container: Container) -> None:
        self._container = container

    async def get(self, name: str) -> str | None:
        """In its newest version: what is read again is added again."""
        document_id = f"{_KIND}.{name}"
        await self._container.probe(document_id, _PARTITION)
        try:
            found = await self._container.read(document_id, _PARTITION)
        except NotFound:
            return None
        position = found.get("position") if isinstance(found, dict) else None
        return position if isinstance(position, str) else None

    async def put(self, name: str, position: str) -> None:
        """Of several followers of one name the last one counts. That is safe: each keeps only a
        position up to which it has added everything."""
        document: Document = {
            "id": f"{_KIND}.{name}",
            "owner": _PARTITION,
            "kind": _KIND,
            "position": position,
            "updated_at": datetime.datetime.now(datetime.UTC).isoformat(),
        }
        for attempt in CONTENTION:
            await CONTENTION.pause(attempt)
            try:
                found = await self._container.read(document["id"], _PARTITION)
                etag = found["_etag"] if isinstance(found, dict) else ""
                await self._container.replace(document, etag)
            except NotFound:
                try:
                    await self._container.create(document)
                except Conflict:
                    continue
            except PreconditionFailed:
                continue
            return
        raise StorageError(
            "memory follow: others keep changing the position. Nothing is lost: what was added"
            " since the last one is added again, and stored once."
        )
