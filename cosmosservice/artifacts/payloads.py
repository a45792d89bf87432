"""Payloads too large for the version document: uploaded first, then usable by any version.

A version that names an upload claims a use of it (documents.py). collecting.py removes uploads that
no version uses.

Long uploads are announced, so that no process mistakes them for leftovers. An announcement expires
by the server's clock. The transaction that creates the first version removes the announcement, and
fails if it is gone.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cosmosservice.account.container import Container, Delete, Document
from cosmosservice.account.failures import Conflict, NotFound, PreconditionFailed
from cosmosservice.artifacts.bodies import COSMOS, Bodies
from cosmosservice.artifacts.digests import digest_of, digests_of, pieces
from cosmosservice.artifacts.documents import (
    REMOVED,
    REMOVING,
    UPLOAD,
    UPLOADING,
    VERSION,
    upload_document,
)
from cosmosservice.artifacts.keys import Scope, upload_id
from cosmosservice.errors import ConfigurationError, StorageError, TooLargeError

MAX_PIECES = 20_000  # their digests fit into the version document
GIVEN_UP_SECONDS = 24 * 3600  # after which an upload without progress expires
_RENEWAL_SECONDS = GIVEN_UP_SECONDS / 24  # how often an upload renews its announcement

SAME_OR_LEFT = (
    "SELECT c.document_type, c.payload FROM c WHERE c.payload.digest = @digest"
    f" OR (c.document_type = '{UPLOAD}' AND c.status = '{REMOVING}')"
)
USES_OF_UPLOAD = "SELECT VALUE c.payload.use FROM c WHERE c.payload.upload = @upload"


class PayloadGone(Exception):
    """The upload was removed, or another process claimed the same use of it: read again."""


@dataclass
class Upload:
    """Bytes being uploaded, or already stored: then `named` is what a version says of them."""

    scope: Scope
    name: str
    bodies: Bodies
    use: int = 0
    named: Document = field(default_factory=dict)
    announcement: Document | None = None
    etag: str = ""  # of the announcement
    sizes: list[int] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    renewed: float = 0.0

    @property
    def is_new(self) -> bool:
        return self.use == 0

    def describe(self) -> None:
        """Called when it is complete: sets what its first version will say of it."""
        self.name_as(description(self.bodies, self.digests))

    def name_as(self, described: Document) -> None:
        self.named = described | {"upload": self.name, "use": self.use}

    @property
    def writes(self) -> list[Delete]:
        """The writes for the transaction that creates a version with this upload."""
        return [] if self.announcement is None else [Delete(self.announcement["id"], self.etag)]


def description(bodies: Bodies, digests: list[bytes]) -> Document:
    """What a version says of bytes with these digests, but for the upload that has them."""
    return {
        "store": bodies.name,
        "pieces": len(digests),
        "piece_bytes": bodies.piece_bytes,
        "digest": digest_of(digests),
        "digest_kind": bodies.digest,
        "digests": base64.b64encode(b"".join(digests)).decode("ascii"),
    }


class Payloads:
    """Uploads payloads, and reads them."""

    def __init__(self, container: Container, bodies: Mapping[str, Bodies], default: str) -> None:
        self._container = container
        self.bodies = bodies
        self._default = bodies[default]

    @property
    def piece_bytes(self) -> int:
        return self._default.piece_bytes

    async def digests(self, data: bytes) -> list[bytes]:
        """Those that an upload of these bytes gets."""
        return await digests_of(data, self._default.piece_bytes, self._default.digest)

    def describe(self, digests: list[bytes]) -> Document:
        """What a version says of an upload of bytes with these digests."""
        return description(self._default, digests)

    def bodies_of(self, store: str) -> Bodies:
        found = self.bodies.get(store)
        if found is None:
            raise ConfigurationError(
                "This artifact's payload is in Blob Storage, and the service was given none: set"
                " COSMOSDB_ARTIFACT_BLOBS, or pass blobs=."
            )
        return found

    async def find(self, scope: Scope, digest: str, store: str) -> tuple[list[str], bool]:
        """The uploads that versions name for these bytes, and whether there are leftovers."""
        found = await self._container.query(SAME_OR_LEFT, {"digest": digest}, scope.partition)
        left = any(each["document_type"] == UPLOAD for each in found)
        named = [each["payload"] for each in found if each["document_type"] == VERSION]
        uploads = [each.get("upload") for each in named if each.get("store") == store]
        return list(dict.fromkeys(each for each in uploads if isinstance(each, str))), left

    async def next_use(self, scope: Scope, name: str) -> int:
        """The use of an upload that a further version claims."""
        uses: list[Any] = await self._container.query(
            USES_OF_UPLOAD, {"upload": name}, scope.partition
        )
        return 1 + max((each for each in uses if isinstance(each, int)), default=0)

    async def begin(
        self, scope: Scope, size: int | None = None, store: str | None = None
    ) -> Upload:
        """Announces the upload if its requests cost request units, or if it is a stream of unknown
        size. Any other may be mistaken for a leftover, and must then be sent again."""
        bodies = self._default if store is None else self.bodies_of(store)
        upload = Upload(scope, secrets.token_hex(16), bodies)
        if size is not None and bodies.name != COSMOS:
            return upload
        upload.announcement = document = upload_document(
            scope, upload.name, store=bodies.name, status=UPLOADING, ttl=GIVEN_UP_SECONDS
        )
        try:
            upload.etag = await self._container.create(document)
        except Conflict:  # nobody else uses this id: the response was lost
            upload.etag = await self.etag_of(scope, upload.name, UPLOADING) or ""
        upload.renewed = asyncio.get_running_loop().time()
        return upload

    async def put_all(self, upload: Upload, data: bytes, digests: list[bytes]) -> None:
        upload.digests = digests
        upload.sizes = [len(piece) for piece in pieces(data, upload.bodies.piece_bytes)]
        _check_count(len(upload.sizes))
        await upload.bodies.put_all(upload.scope, upload.name, data)
        upload.describe()

    async def put(self, upload: Upload, number: int, data: bytes) -> None:
        """A piece of a stream. Several may be under way."""
        _check_count(number + 1)
        await upload.bodies.put(upload.scope, upload.name, number, data)

    async def renew(self, upload: Upload) -> None:
        """Renews the announcement of a long upload, so that it does not expire."""
        assert upload.announcement is not None
        now = asyncio.get_running_loop().time()
        if now - upload.renewed > _RENEWAL_SECONDS:
            upload.renewed = now
            try:
                upload.etag = await self._container.replace(upload.announcement, upload.etag)
            except (PreconditionFailed, NotFound):
                # Only its uploader changes an upload that is under way.
                etag = await self.etag_of(upload.scope, upload.name, UPLOADING)
                if etag is None:
                    raise StorageError(
                        "save_artifact_stream: the upload was removed while it was under way."
                        " Nothing was stored; save it again."
                    ) from None
                upload.etag = etag

    async def seal(self, upload: Upload) -> None:
        await upload.bodies.seal(upload.scope, upload.name, len(upload.sizes))

    async def abandon(self, upload: Upload) -> None:
        """Cancels an upload of which no bytes were sent."""
        if upload.announcement is None:
            return
        with contextlib.suppress(NotFound, PreconditionFailed, StorageError):
            await self._container.delete(
                upload.announcement["id"], upload.scope.partition, upload.etag
            )

    async def is_gone(self, upload: Upload) -> bool:
        """Whether another process took it out of use before its first version."""
        return await self.etag_of(upload.scope, upload.name, REMOVING, REMOVED) is not None

    async def etag_of(self, scope: Scope, upload: str, *statuses: str) -> str | None:
        """The etag of an upload's document, if it has one of these statuses."""
        try:
            found: Any = await self._container.read(upload_id(upload), scope.partition)
        except NotFound:
            return None
        return str(found["_etag"]) if found.get("status") in statuses else None


def _check_count(count: int) -> None:
    if count > MAX_PIECES:
        raise TooLargeError(
            f"An artifact has at most {MAX_PIECES:,} pieces, and this one has more. Nothing was"
            " stored."
        )
