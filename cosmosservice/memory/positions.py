"""The positions of followers of the live feed: a document for each, in a separate partition."""

from __future__ import annotations

import datetime
from typing import Final

from cosmosservice.account.container import Container, Document
from cosmosservice.account.failures import Conflict, NotFound, PreconditionFailed
from cosmosservice.account.retries import CONTENTION
from cosmosservice.errors import StorageError

_PARTITION: Final = "="  # no owner has this name: see embedding
_KIND: Final = "position"


class Positions:
    """The positions in one container. Followers choose their own names, which tell them apart."""

    def __init__(self, container: Container) -> None:
        self._container = container

    async def get(self, name: str) -> str | None:
        """The newest version: after an old position, events would be added again."""
        document_id = f"{_KIND}.{name}"
        await self._container.probe(document_id, _PARTITION)
        try:
            found = await self._container.read(document_id, _PARTITION)
        except NotFound:
            return None
        position = found.get("position") if isinstance(found, dict) else None
        return position if isinstance(position, str) else None

    async def put(self, name: str, position: str) -> None:
        """If several followers have the same name, the last write wins. That is safe: each stores
        only a position up to which it has added everything."""
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
