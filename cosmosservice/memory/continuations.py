"""How far followers of the live feed have read: a document for each, in a separate partition."""

from __future__ import annotations

import datetime
from typing import Final

from cosmosservice.account.container import Container, Document
from cosmosservice.account.failures import Conflict, NotFound, PreconditionFailed
from cosmosservice.account.retries import CONTENTION
from cosmosservice.errors import StorageError

_PARTITION: Final = "="  # no owner has this name: see embedding
_KIND: Final = "continuation"


class Continuations:
    """Those in one container. Followers choose their own names, which must differ."""

    def __init__(self, container: Container) -> None:
        self._container = container

    async def get(self, name: str) -> str | None:
        """The newest version: after an old continuation, events would be added again."""
        document_id = f"{_KIND}.{name}"
        await self._container.probe(document_id, _PARTITION)
        try:
            found = await self._container.read(document_id, _PARTITION)
        except NotFound:
            return None
        continuation = found.get("continuation") if isinstance(found, dict) else None
        return continuation if isinstance(continuation, str) else None

    async def put(self, name: str, continuation: str) -> None:
        """If several followers have the same name, the last write wins. That is safe: each stores
        only a continuation up to which it has added everything."""
        document: Document = {
            "id": f"{_KIND}.{name}",
            "owner": _PARTITION,
            "kind": _KIND,
            "continuation": continuation,
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
            "memory follow: others keep changing the continuation. Nothing is lost: what was added"
            " since the last one is added again, and stored once."
        )
