"""Removing payloads that no version uses.

A version that names an upload claims a use of it (documents.py). To remove an upload, a process
looks for versions that name it and, if there is none, claims the use after the last one: from then
on no version can use it. If a version came in between, it has that claim, and the upload stays. So
an upload in use is never removed, and this does not depend on a clock.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from cosmosservice.account.container import Container, Document
from cosmosservice.account.failures import Conflict, NotFound, PreconditionFailed
from cosmosservice.artifacts.bodies import Bodies
from cosmosservice.artifacts.documents import (
    BLOCKED_TTL,
    REMOVED,
    REMOVING,
    UPLOAD,
    UPLOADING,
    VERSION,
    claim,
    upload_document,
)
from cosmosservice.artifacts.keys import Scope, upload_id
from cosmosservice.artifacts.payloads import MAX_PIECES, Payloads, Upload

logger = logging.getLogger("cosmosservice")

OF_SCOPE = (
    "SELECT c.id, c.claim, c.upload, c.store, c.status, c.pieces, c._etag FROM c"
    f" WHERE c.document_type = '{UPLOAD}'"
)
USES = (
    "SELECT c.document_type, c.payload.upload, c.payload.use FROM c"
    " WHERE IS_DEFINED(c.payload.upload)"
)


@dataclass
class Removed:
    """What a collection removed."""

    payloads: int = 0
    pieces: int = 0  # documents, or blobs


@dataclass
class _Uses:
    """The uses of the uploads of a scope."""

    in_use: set[str] = field(default_factory=set)
    last: dict[str, int] = field(default_factory=dict)

    def after(self, upload: str) -> int:
        return self.last.get(upload, -1) + 1


class Collecting:
    """Removes payloads that no version uses."""

    def __init__(self, container: Container, payloads: Payloads) -> None:
        self._container = container
        self._payloads = payloads

    async def discard(self, upload: Upload) -> None:
        """Removes an upload that no version names. If this fails, a collection removes it."""
        try:
            if upload.announcement is None:
                await self._take(upload.scope, upload.bodies, upload.name, 0)
            else:
                await self._remove(upload.scope, upload.announcement, upload.etag)
        except Exception as problem:
            logger.debug("An unused upload was left behind: %s", type(problem).__name__)

    def check_reachable(self, store: str) -> None:
        """Raises ConfigurationError if this process was not told how to reach these payloads."""
        self._payloads.bodies_of(store)

    async def uploads_in(self, scope: Scope) -> list[Document]:
        return await self._container.query(OF_SCOPE, {}, scope.partition)

    async def collect(
        self,
        scope: Scope,
        dead: Iterable[Document] = (),
        *,
        under_way: Iterable[Document] = (),
    ) -> Removed:
        """Removes the uploads of dead versions unless a version names them, and finishes removals
        that other processes began. Also removes these uploads, which were under way."""
        removed = Removed()
        found = await self.uploads_in(scope)
        ended = [each for each in under_way if each["status"] == UPLOADING]
        for each in [*ended, *(each for each in found if each["status"] == REMOVING)]:
            removed.payloads += 1
            removed.pieces += await self._remove(scope, each, each["_etag"]) or 0
        known = {each["upload"] for each in found}
        candidates = [each for each in dead if each["upload"] not in known]
        if not candidates:
            return removed
        uses = await self._uses(scope)
        for each in candidates:
            upload, bodies = each["upload"], self._payloads.bodies_of(each["store"])
            if upload in uses.in_use:
                continue
            pieces = await self._take(scope, bodies, upload, uses.after(upload), _count(each))
            if pieces is not None:
                removed.payloads += 1
                removed.pieces += pieces
        return removed

    async def collect_ownerless(self, scope: Scope) -> Removed:
        """Removes bytes that neither a version nor an announcement names: of uploads that were
        abandoned, or that were removed while their uploader was still writing."""
        removed = Removed()
        for bodies in self._payloads.bodies.values():
            uploads = [each async for each in bodies.uploads(scope)]
            if not uploads:
                continue
            # Probe first: blobs are not in this partition, so a read may be older than they are.
            await self._container.probe(upload_id(""), scope.partition)
            found = await self._container.query(OF_SCOPE, {}, scope.partition)
            uses = await self._uses(scope)
            owned = {each["upload"] for each in found if each["status"] == UPLOADING} | uses.in_use
            for upload in uploads:
                if upload not in owned:
                    pieces = await self._take(scope, bodies, upload, uses.after(upload))
                    removed.pieces += pieces or 0
        return removed

    async def _uses(self, scope: Scope) -> _Uses:
        uses = _Uses()
        for each in await self._container.query(USES, {}, scope.partition):
            upload, use = each["upload"], each["use"]
            uses.last[upload] = max(use, uses.last.get(upload, 0))
            if each.get("document_type") in (VERSION, None):  # without a type: damaged
                uses.in_use.add(upload)
        return uses

    async def _take(
        self, scope: Scope, bodies: Bodies, upload: str, use: int, pieces: int | None = None
    ) -> int | None:
        """Claims a use of the upload, so that no version can, and removes its bytes. Returns the
        number of its pieces; None if a version uses it now."""
        marker = _marker(scope, upload, bodies.name, REMOVING, pieces)
        marker["claim"] = claim(upload, use)
        etag: str | None
        try:
            etag = await self._container.create(marker)
        except Conflict:  # a version claimed it, or it is being removed, perhaps by us
            etag = await self._payloads.etag_of(scope, upload, REMOVING, REMOVED)
        if etag is None:
            return None
        removed = await bodies.remove(scope, upload, pieces)
        await self._mark_removed(marker, etag)
        return removed

    async def _mark_removed(self, marker: Document, etag: str) -> None:
        with contextlib.suppress(NotFound, PreconditionFailed):  # another process did
            await self._container.replace(marker | {"status": REMOVED}, etag)

    async def _remove(self, scope: Scope, document: Document, etag: str) -> int | None:
        """Like `_take`, for an upload that has a document. None if another process removed it."""
        upload, store = document["upload"], document["store"]
        bodies = self._payloads.bodies_of(store)
        count = _count(document)
        marker = _marker(scope, upload, store, REMOVING, count) | {"claim": document["claim"]}
        try:
            if document["status"] != REMOVING:
                etag = await self._container.replace(marker, etag)
        except (PreconditionFailed, NotFound):
            # A version names it now; or it is being removed, by another process or by us, if the
            # response was lost.
            current = await self._payloads.etag_of(scope, upload, REMOVING)
            if current is None:
                return None
            etag = current
        pieces = await bodies.remove(scope, upload, count)
        if document["status"] == REMOVING:
            await self._mark_removed(marker, etag)
            return pieces
        # No part of an announcement has to stay: a version cannot be created without it.
        with contextlib.suppress(NotFound, PreconditionFailed):  # another process did
            await self._container.delete(document["id"], scope.partition, etag)
        return pieces


def _marker(scope: Scope, upload: str, store: str, status: str, pieces: int | None) -> Document:
    """The document of an upload that may no longer be used. It names no user."""
    nobody = Scope.of_partition(scope.partition)
    fields: dict[str, Any] = {} if pieces is None else {"pieces": pieces}
    return upload_document(nobody, upload, store=store, status=status, ttl=BLOCKED_TTL, **fields)


def _count(document: Document) -> int | None:
    """How many pieces it has, if known. An upload under way may have any number."""
    found = document.get("pieces")
    return found if isinstance(found, int) and 0 < found <= MAX_PIECES else None
