"""Saving: the payload is stored first, the version document is the commit.

    small    create version                           the payload is in the document
    medium   create version and header                the same, in one transaction
    large    look for the same bytes, or upload them → create version

A save that finds its number taken tries the next one, without sending a large payload again.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from cosmosservice.account.container import Delete, Document, Write
from cosmosservice.account.failures import (
    BatchRefused,
    Conflict,
    NotFound,
    PreconditionFailed,
)
from cosmosservice.account.retries import CONTENTION
from cosmosservice.artifacts.collaborators import Collaborators
from cosmosservice.artifacts.deleting import Deletion
from cosmosservice.artifacts.documents import (
    TOMBSTONE,
    is_version,
    version_document,
    with_header,
)
from cosmosservice.artifacts.keys import ArtifactKey, seq_of
from cosmosservice.artifacts.payloads import PayloadGone, Upload
from cosmosservice.artifacts.reading import Reading, extent_of
from cosmosservice.artifacts.versions import Target
from cosmosservice.data_converters import encode_state, to_json, wire_size
from cosmosservice.data_converters.scalars import encode_bytes
from cosmosservice.errors import StorageError, TooLargeError, UnavailableError
from cosmosservice.hosting.concurrency import together

logger = logging.getLogger("cosmosservice")

# Bytes of metadata and of the part without its payload. A version and its header both have them,
# and a transaction has at most 2 MB.
_MAX_FIELDS = 750_000


@dataclass
class Draft:
    """A version to save, without its number and payload."""

    rest: Any
    mime_type: str | None
    custom_metadata: dict[str, Any] | None
    save: str = field(default_factory=lambda: secrets.token_hex(8))

    def fields(self, operation: str) -> Document:
        found: Document = {"save": self.save, "created_at": time.time(), "part": self.rest}
        if self.mime_type is not None:
            found["mime_type"] = self.mime_type
        if self.custom_metadata:
            found["custom_metadata"] = encode_state(self.custom_metadata)
        size = wire_size(to_json(found))
        if size > _MAX_FIELDS:
            raise TooLargeError(
                f"{operation}: the artifact's metadata would take {size:,} bytes; at most"
                f" {_MAX_FIELDS:,} can be kept besides the payload. Nothing was stored."
            )
        return found


class _Ours(Exception):
    """This very save has taken the number: the response was lost."""


class Saving:
    """Saves versions: first the payload, then the document that names it."""

    def __init__(self, shared: Collaborators, reading: Reading, deletion: Deletion) -> None:
        self._container = shared.container
        self._versions = shared.versions
        self._payloads = shared.payloads
        self._collecting = shared.collecting
        self._reading = reading
        self._deletion = deletion
        self.limits = shared.limits

    async def save(self, key: ArtifactKey, draft: Draft, payload: bytes | None) -> int:
        fields = draft.fields("save_artifact")
        if payload is None:
            return await self._commit(key, draft.save, fields, None)
        fields["bytes"] = len(payload)
        if len(payload) <= self.limits.inline:
            fields |= inline_fields(payload)
            return await self._commit(key, draft.save, fields, None)
        digests = await self._payloads.digests(payload)
        described = self._payloads.describe(digests)
        for attempt in CONTENTION:
            await CONTENTION.pause(attempt)
            (upload, left), new = await together(  # in parallel: most payloads are new
                self.stored(key, len(payload), described),
                self._payloads.begin(key.scope, len(payload)),
            )
            if upload is None:
                upload = await self.upload(new, payload, digests)
            else:
                await self._payloads.abandon(new)
            try:
                version = await self._use(key, draft, fields, upload)
            except PayloadGone:
                continue
            if left:
                await self._tidy(key)
            return version
        raise UnavailableError(
            "save_artifact: other writers kept removing the payload. Nothing was stored."
        )

    async def finish_stream(self, key: ArtifactKey, draft: Draft, upload: Upload) -> int:
        """Commits an upload whose pieces are all stored. It is kept even if there is an equal one:
        to read that one would cost more than it saves."""
        fields = draft.fields("save_artifact_stream")
        fields["bytes"] = sum(upload.sizes)
        upload.describe()
        await self._payloads.seal(upload)
        try:
            return await self._use(key, draft, fields, upload)
        except PayloadGone:
            raise StorageError(
                "save_artifact_stream: the upload was removed while it was under way. Nothing was"
                " stored; save it again."
            ) from None

    async def stored(
        self, key: ArtifactKey, size: int, described: Document
    ) -> tuple[Upload | None, bool]:
        """An upload of these bytes that is in use and whole, and whether there are leftovers. Its
        bytes are read: a version must not be acknowledged on the word of another one."""
        store = described["store"]
        names, left = await self._payloads.find(key.scope, described["digest"], store)
        for name in names:
            extent = extent_of({"bytes": size, "payload": described | {"upload": name}})
            use, whole = await together(
                self._payloads.next_use(key.scope, name), self._reading.is_whole(key, extent)
            )
            if whole:
                upload = Upload(key.scope, name, self._payloads.bodies_of(store), use)
                upload.name_as(described)
                return upload, left
        return None, left

    async def upload(self, upload: Upload, payload: bytes, digests: list[bytes]) -> Upload:
        try:
            await self._payloads.put_all(upload, payload, digests)
        except Exception:
            await self._collecting.discard(upload)
            raise
        return upload

    async def _use(self, key: ArtifactKey, draft: Draft, fields: Document, upload: Upload) -> int:
        try:
            return await self._commit(key, draft.save, fields | {"payload": upload.named}, upload)
        except (StorageError, TooLargeError):
            if upload.is_new:  # if it was committed after all, its etag protects it
                await self._collecting.discard(upload)
            raise

    async def _tidy(self, key: ArtifactKey) -> None:
        """Removes leftovers. The version is saved, so a failure here is only logged."""
        try:
            await self._collecting.collect(key.scope)
        except Exception as problem:
            logger.debug("Leftovers could not be removed: %s", type(problem).__name__)

    async def _commit(
        self, key: ArtifactKey, save: str, fields: Document, upload: Upload | None
    ) -> int:
        target = self._versions.guess(key)
        for attempt in CONTENTION:
            await CONTENTION.pause(attempt - 1)
            document = version_document(key, target.seq, target.version, fields)
            try:
                await self.write(key, target, document, upload)
            except (Conflict, PreconditionFailed, NotFound, BatchRefused) as refused:
                self._versions.forget(key)
                try:
                    following = await self._look(key, target, save)
                except _Ours:
                    pass  # the response was lost
                else:
                    if upload is not None and await self.is_gone(
                        upload, refused, unchanged=following == target
                    ):
                        raise PayloadGone from None
                    target = following
                    continue
            self._versions.seen(key, document)
            return target.version
        raise UnavailableError(
            "save_artifact: others keep saving or deleting the same name. Nothing was stored."
        )

    async def is_gone(self, upload: Upload, refused: Exception, *, unchanged: bool) -> bool:
        """Whether the use of the upload was refused, not the number."""
        if isinstance(refused, BatchRefused) and refused.number < len(upload.writes):
            return True
        return unchanged and (not upload.is_new or await self._payloads.is_gone(upload))

    async def write(
        self, key: ArtifactKey, target: Target, document: Document, upload: Upload | None
    ) -> None:
        others: list[Write | Delete] = [] if upload is None else [*upload.writes]
        if "data" in document and document["bytes"] > self.limits.header:
            header, document = with_header(document)
            others = [Write(header)]
        if others:
            await self._container.batch(key.partition, [*others, Write(document, target.etag)])
        elif target.etag is not None:
            await self._container.replace(document, target.etag)
        else:
            await self._container.create(document)

    async def _look(self, key: ArtifactKey, target: Target, save: str) -> Target:
        """What to try after one that was refused. Raises _Ours."""
        head, there = await together(self._versions.head(key), self._versions.at(key, target))
        if there is not None and there.get("save") == save:
            raise _Ours
        return await self._behind(key, head)

    async def next_target(self, key: ArtifactKey) -> Target:
        """Where the next version goes."""
        return await self._behind(key, await self._versions.head(key))

    async def _behind(self, key: ArtifactKey, head: Document | None) -> Target:
        if head is None:
            return Target(0, 0)
        number = seq_of(head["id"])
        if is_version(head):
            return Target(number + 1, head["version"] + 1)
        if head["document_type"] == TOMBSTONE and "ttl" not in head:
            # The delete may still be running. No version from before the tombstone may outlast it.
            entries = await self._versions.entries(key)
            if entries and entries[-1]["id"] == head["id"]:
                await self._deletion.bury(key.partition, entries)
        return Target(number, 0, head["_etag"])


def inline_fields(payload: bytes) -> Document:
    """The fields of a version document that contains its payload."""
    return {"sha256": hashlib.sha256(payload).hexdigest(), "data": encode_bytes(payload)}
