"""Payloads too large for the version document: uploaded first, then usable by any version.

A version that names an upload claims a use of it (documents.py). To remove an upload, a process
looks for versions that name it and, if there is none, claims the use after the last one: from then
on no version can use it. If a version came in between, it has that claim, and the upload stays. So
an upload in use is never removed, and this does not depend on a clock.

Long uploads are announced, so that no process mistakes them for leftovers. An announcement expires
by the server's clock. The transaction that creates the first version removes the announcement, and
fails if it is gone.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import logging
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cosmosservice.account.container import Container, Delete, Document, Write
from cosmosservice.account.failures import Conflict, NotFound, PreconditionFailed
from cosmosservice.artifacts.bodies import COSMOS, Bodies
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
from cosmosservice.errors import ConfigurationError, StorageError, TooLargeError
from cosmosservice.hosting.concurrency import together

logger = logging.getLogger("cosmosservice")

MAX_PIECES = 20_000  # their digests fit into the version document
GIVEN_UP_SECONDS = 24 * 3600  # after which an upload without progress expires
_RENEWAL_SECONDS = GIVEN_UP_SECONDS / 24  # how often an upload renews its announcement

_DIGEST = 32  # bytes of SHA-256
_IN_THREAD = 512 * 1024  # bytes from which hashing is slow enough to need a thread
_THREADS = 8  # most threads that hash at the same time

SAME_OR_LEFT = (
    "SELECT c.document_type, c.payload FROM c WHERE c.payload.digest = @digest"
    f" OR (c.document_type = '{UPLOAD}' AND c.status = '{REMOVING}')"
)
OF_SCOPE = (
    "SELECT c.id, c.claim, c.upload, c.store, c.status, c.pieces, c._etag FROM c"
    f" WHERE c.document_type = '{UPLOAD}'"
)
USES = (
    "SELECT c.document_type, c.payload.upload, c.payload.use FROM c"
    " WHERE IS_DEFINED(c.payload.upload)"
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
    document: Document | None = None  # all of its bytes, stored with the version
    sizes: list[int] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    renewed: float = 0.0

    @property
    def is_new(self) -> bool:
        return self.use == 0

    @property
    def digest(self) -> str:
        return digest_of(self.digests)

    def describe(self) -> None:
        """Called when it is complete: sets what its first version will say of it."""
        self.named = {
            "upload": self.name,
            "use": self.use,
            "store": self.bodies.name,
            "pieces": len(self.sizes),
            "piece_bytes": self.bodies.piece_bytes,
            "digest": self.digest,
            "digests": base64.b64encode(b"".join(self.digests)).decode("ascii"),
        }

    @property
    def writes(self) -> list[Write | Delete]:
        """The writes for the transaction that creates a version with this upload."""
        if self.announcement is not None:
            return [Delete(self.announcement["id"], self.etag)]
        return [] if self.document is None else [Write(self.document)]


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


class Payloads:
    """Lives on one event loop."""

    def __init__(self, container: Container, bodies: Mapping[str, Bodies], default: str) -> None:
        self._container = container
        self._bodies = bodies
        self._default = bodies[default]

    @property
    def piece_bytes(self) -> int:
        return self._default.piece_bytes

    def bodies_of(self, store: str) -> Bodies:
        found = self._bodies.get(store)
        if found is None:
            raise ConfigurationError(
                "This artifact's payload is in Blob Storage, and the service was given none: set"
                " COSMOSDB_ARTIFACT_BLOBS, or pass blobs=."
            )
        return found

    # --- uploading

    async def find(self, scope: Scope, digest: str) -> tuple[Upload | None, bool]:
        """An upload of these bytes that is already in use, and whether there are leftovers."""
        found = await self._container.query(SAME_OR_LEFT, {"digest": digest}, scope.partition)
        left = any(each["document_type"] == UPLOAD for each in found)
        named = [each["payload"] for each in found if each["document_type"] == VERSION]
        same = next((each for each in named if each["store"] in self._bodies), None)
        if same is None:
            return None, left
        name = same["upload"]
        uses = await self._container.query(USES_OF_UPLOAD, {"upload": name}, scope.partition)
        use = 1 + max([same["use"], *uses])
        bodies = self.bodies_of(same["store"])
        return Upload(scope, name, bodies, use, same | {"use": use}), left

    async def begin(
        self, scope: Scope, size: int | None = None, store: str | None = None
    ) -> Upload:
        """Announces the upload if it takes several requests that cost request units, or is a stream
        of unknown size. Any other may be mistaken for a leftover, and must then be sent again."""
        bodies = self._default if store is None else self.bodies_of(store)
        upload = Upload(scope, secrets.token_hex(16), bodies)
        if size is not None and (bodies.name != COSMOS or size <= bodies.piece_bytes):
            return upload
        upload.announcement = document = upload_document(
            scope, upload.name, store=bodies.name, status=UPLOADING, ttl=GIVEN_UP_SECONDS
        )
        try:
            upload.etag = await self._container.create(document)
        except Conflict:  # nobody else uses this id: the response was lost
            upload.etag = await self._etag_of(scope, upload.name, UPLOADING) or ""
        upload.renewed = asyncio.get_running_loop().time()
        return upload

    async def put_all(self, upload: Upload, data: bytes, digests: list[bytes]) -> None:
        upload.digests = digests
        upload.sizes = [len(piece) for piece in _pieces(data, upload.bodies.piece_bytes)]
        _check_count(len(upload.sizes))
        upload.document = upload.bodies.document(upload.scope, upload.name, data)
        if upload.document is None:
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
                etag = await self._etag_of(upload.scope, upload.name, UPLOADING)
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
        return await self._etag_of(upload.scope, upload.name, REMOVING, REMOVED) is not None

    async def discard(self, upload: Upload) -> None:
        """Removes an upload that no version names. If this fails, a collection removes it."""
        try:
            if upload.announcement is None:
                await self._take(upload.scope, upload.bodies, upload.name, 0)
            else:
                await self._remove(upload.scope, upload.announcement, upload.etag)
        except Exception as problem:
            logger.debug("An unused upload was left behind: %s", type(problem).__name__)

    # --- removing

    async def collect(
        self, scope: Scope, dead: Iterable[Document] = (), *, everything: bool = False
    ) -> Removed:
        """Removes the uploads of dead versions unless a version names them, and finishes removals
        that other processes began. With `everything`, also removes uploads under way."""
        removed = Removed()
        found = await self._container.query(OF_SCOPE, {}, scope.partition)
        chosen = {REMOVING, UPLOADING} if everything else {REMOVING}
        for each in found:
            if each["status"] in chosen:
                removed.payloads += 1
                removed.pieces += await self._remove(scope, each, each["_etag"]) or 0
        known = {each["upload"] for each in found}
        candidates = [each for each in dead if each["upload"] not in known]
        if not candidates:
            return removed
        uses = await self._uses(scope)
        for each in candidates:
            upload, bodies = each["upload"], self.bodies_of(each["store"])
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
        for bodies in self._bodies.values():
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
            if each["document_type"] == VERSION:
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
            etag = await self._etag_of(scope, upload, REMOVING, REMOVED)
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
        bodies = self.bodies_of(store)
        count = _count(document)
        marker = _marker(scope, upload, store, REMOVING, count) | {"claim": document["claim"]}
        try:
            if document["status"] != REMOVING:
                etag = await self._container.replace(marker, etag)
        except (PreconditionFailed, NotFound):
            # A version names it now; or it is being removed, by another process or by us, if the
            # response was lost.
            current = await self._etag_of(scope, upload, REMOVING)
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

    async def _etag_of(self, scope: Scope, upload: str, *statuses: str) -> str | None:
        """The etag of an upload's document, if it has one of these statuses."""
        try:
            found: Any = await self._container.read(upload_id(upload), scope.partition)
        except NotFound:
            return None
        return str(found["_etag"]) if found.get("status") in statuses else None


def _marker(scope: Scope, upload: str, store: str, status: str, pieces: int | None) -> Document:
    """The document of an upload that may no longer be used. It names no user."""
    nobody = Scope.of_partition(scope.partition)
    fields: dict[str, Any] = {} if pieces is None else {"pieces": pieces}
    return upload_document(nobody, upload, store=store, status=status, ttl=BLOCKED_TTL, **fields)


async def sha256(data: bytes) -> bytes:
    """Runs in a thread if it takes long, so as not to block the event loop."""
    if len(data) < _IN_THREAD:
        return hashlib.sha256(data).digest()
    return await asyncio.to_thread(lambda: hashlib.sha256(data).digest())


async def digests_of(data: bytes, size: int) -> list[bytes]:
    """The digests of the pieces of this size."""
    pieces = list(_pieces(data, size))
    if len(data) < _IN_THREAD:
        return _digests(pieces)
    share = -(-len(pieces) // _THREADS)
    shares = [pieces[start : start + share] for start in range(0, len(pieces), share)]
    found = await together(*(asyncio.to_thread(_digests, each) for each in shares))
    return [digest for digests in found for digest in digests]


def _digests(pieces: list[memoryview]) -> list[bytes]:
    return [hashlib.sha256(piece).digest() for piece in pieces]


def digest_of(digests: list[bytes]) -> str:
    """The digest of a payload, from those of its pieces, so that every byte is read once."""
    return hashlib.sha256(b"".join(digests)).hexdigest()


def piece_digests(digests: str, first: int, count: int) -> bytes:
    """The digests of some pieces, from the version's field. Raises ValueError."""
    found = base64.b64decode(digests, validate=True)
    return found[first * _DIGEST : (first + count) * _DIGEST]


def _count(document: Document) -> int | None:
    """How many pieces it has, if known. An upload under way may have any number."""
    found = document.get("pieces")
    return found if isinstance(found, int) and 0 < found <= MAX_PIECES else None


def _pieces(data: bytes, size: int) -> Iterator[memoryview]:
    view = memoryview(data)
    return (view[start : start + size] for start in range(0, len(data), size))


def _check_count(count: int) -> None:
    if count > MAX_PIECES:
        raise TooLargeError(
            f"An artifact has at most {MAX_PIECES:,} pieces, and this one has more. Nothing was"
            " stored."
        )
