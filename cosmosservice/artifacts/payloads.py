"""Payloads that are too large for the version document: uploaded first, used by any version.

    uploading ──▶ ready ──▶ removing ──▶ (gone)
        └──▶ (expired)

`uploading` becomes `ready` in the transaction that creates the first version which names it. Each
further version that names it changes its etag, in one transaction too. Whoever removes a payload
reads it, then looks for versions that name it, then makes it `removing` if it still has its etag.
Versions that were there before are seen, since all are in one partition and a client's reads go
forward; versions that come in between change the etag. So what is in use is never removed, and no
clock decides that. An upload that is given up expires: the server's clock says when, and its bytes
have no owner from then on.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import logging
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cosmosservice.account.container import Container, Document, Write
from cosmosservice.account.failures import Conflict, NotFound, PreconditionFailed
from cosmosservice.artifacts.bodies import BLOBS, Bodies
from cosmosservice.artifacts.documents import (
    BLOCKED_TTL,
    PAYLOAD,
    READY,
    REMOVED,
    REMOVING,
    UPLOADING,
    VERSION,
    payload_document,
)
from cosmosservice.artifacts.keys import Scope, payload_id
from cosmosservice.errors import ConfigurationError, StorageError, TooLargeError
from cosmosservice.hosting.concurrency import together

logger = logging.getLogger("cosmosservice")

MAX_PIECES = 40_000  # their digests fit into the payload document
GIVEN_UP_SECONDS = 24 * 3600  # after which an upload that does not move expires
_RENEWAL_SECONDS = GIVEN_UP_SECONDS / 24  # an upload under way says so this often

_DIGEST = 32  # bytes of SHA-256

SAME_OR_LEFT = (
    f"SELECT * FROM c WHERE c.document_type = '{PAYLOAD}'"
    f" AND (c.digest = @digest OR c.status = '{REMOVING}')"
)
OF_SCOPE = (
    "SELECT c.id, c.upload, c.store, c.status, c.pieces, c.ttl, c._etag FROM c"
    f" WHERE c.document_type = '{PAYLOAD}'"
)
OWNED = (
    f"SELECT VALUE c.upload FROM c WHERE c.document_type = '{PAYLOAD}'"
    f" AND c.status IN ('{UPLOADING}', '{READY}')"
)
IN_USE = (
    "SELECT DISTINCT VALUE c.payload.upload FROM c"
    f" WHERE c.document_type = '{VERSION}' AND IS_DEFINED(c.payload.upload)"
)


class PayloadGone(Exception):
    """The payload was removed, or is used by somebody else just now: look again."""


@dataclass
class Upload:
    """Bytes on their way, or there already."""

    scope: Scope
    name: str
    bodies: Bodies
    document: Document
    etag: str | None  # None: it has no document yet
    sizes: list[int] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    renewed: float = 0.0

    @property
    def is_new(self) -> bool:
        return bool(self.document["status"] == UPLOADING)

    @property
    def named(self) -> Document:
        """What a version document says of it."""
        stored = self.document
        return {
            "upload": self.name,
            "store": stored["store"],
            "pieces": stored["pieces"],
            "piece_bytes": stored["piece_bytes"],
        }

    def describe(self, digest: str) -> None:
        """It is complete: what its document will say when a version names it."""
        self.document |= {
            "bytes": sum(self.sizes),
            "pieces": len(self.sizes),
            "piece_bytes": self.bodies.piece_bytes,
            "digest": digest,
            "digests": base64.b64encode(b"".join(self.digests)).decode("ascii"),
        }

    def use(self) -> Write:
        """For the transaction that creates a version which names it."""
        document = {k: v for k, v in self.document.items() if not k.startswith("_") and k != "ttl"}
        return Write(document | {"status": READY}, self.etag)


@dataclass
class Removed:
    """What a collection removed."""

    payloads: int = 0
    pieces: int = 0  # documents, or blobs


class Payloads:
    """Lives on one event loop."""

    def __init__(self, container: Container, bodies: Mapping[str, Bodies], default: str) -> None:
        self._container = container
        self._bodies = bodies
        self._default = bodies[default]

    @property
    def piece_bytes(self) -> int:
        return self._default.piece_bytes

    @property
    def at_once(self) -> bool:
        """Whether bytes in memory are uploaded by one request that costs no request units."""
        return self._default.name == BLOBS

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
        """A payload with these bytes that is there already; and whether there are leftovers."""
        found = await self._container.query(SAME_OR_LEFT, {"digest": digest}, scope.partition)
        same = next((b for b in found if b["status"] == READY and b["store"] in self._bodies), None)
        left = any(body["status"] != READY for body in found)
        if same is None:
            return None, left
        bodies = self.bodies_of(same["store"])
        return Upload(scope, same["upload"], bodies, same, same["_etag"]), left

    async def begin(self, scope: Scope, *, announced: bool = True) -> Upload:
        """Where an upload is not announced by a document, the version's transaction creates that.
        Such an upload may be removed at any time, and must be sent again then."""
        name = secrets.token_hex(16)
        store = self._default.name
        if not announced:
            document = payload_document(scope, name, store=store, status=UPLOADING)
            return Upload(scope, name, self._default, document, None)
        document = payload_document(
            scope, name, store=store, status=UPLOADING, ttl=GIVEN_UP_SECONDS
        )
        try:
            etag = await self._container.create(document)
        except Conflict:  # nobody else has this id: the answer was lost
            etag = await self._etag_of(scope, name, UPLOADING) or ""
        now = asyncio.get_running_loop().time()
        return Upload(scope, name, self._default, document, etag, renewed=now)

    async def put_all(self, upload: Upload, data: bytes) -> None:
        for piece in _pieces(data, upload.bodies.piece_bytes):
            upload.sizes.append(len(piece))
        _check_count(len(upload.sizes))
        upload.digests, _ = await together(
            asyncio.to_thread(_digests, data, upload.bodies.piece_bytes),
            upload.bodies.put_all(upload.scope, upload.name, data),
        )

    async def put(self, upload: Upload, number: int, data: bytes) -> None:
        """A piece of a stream. Several may be under way."""
        _check_count(number + 1)
        await upload.bodies.put(upload.scope, upload.name, number, data)

    async def renew(self, upload: Upload) -> None:
        """A long upload is not given up."""
        assert upload.etag is not None
        now = asyncio.get_running_loop().time()
        if now - upload.renewed > _RENEWAL_SECONDS:
            upload.renewed = now
            try:
                upload.etag = await self._container.replace(upload.document, upload.etag)
            except (PreconditionFailed, NotFound):
                # Of an upload that is under way only its uploader changes anything.
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
        """Takes back a begun upload of which nothing was sent."""
        if upload.etag is None:
            return
        with contextlib.suppress(NotFound, PreconditionFailed, StorageError):
            await self._container.delete(
                payload_id(upload.name), upload.scope.partition, upload.etag
            )

    async def discard(self, upload: Upload) -> None:
        """Removes an upload that no version names. What this misses, a collection finds."""
        try:
            if upload.etag is None:
                await self._remove_ownerless(upload.scope, upload.bodies, upload.name)
            else:
                await self._remove(upload.scope, upload.document, upload.etag)
        except Exception as problem:
            logger.debug("An unused upload stays behind: %s", type(problem).__name__)

    # --- removing

    async def collect(self, scope: Scope, *, everything: bool = False) -> Removed:
        """Removes what no version names, but for uploads under way; `everything`: those too."""
        removed = Removed()
        found = await self._container.query(OF_SCOPE, {}, scope.partition)
        chosen = {READY, REMOVING, UPLOADING} if everything else {READY, REMOVING}
        candidates = [each for each in found if each["status"] in chosen]
        if not candidates:
            return removed
        in_use = set(map(str, await self._container.query(IN_USE, {}, scope.partition)))
        for each in candidates:
            if each["upload"] in in_use:
                continue
            pieces = await self._remove(scope, each, each["_etag"])
            if pieces is not None:
                removed.payloads += 1
                removed.pieces += pieces
        return removed

    async def collect_ownerless(self, scope: Scope) -> Removed:
        """Bytes without a payload document. That is created before them, so it is gone: it expired,
        or it was removed and its uploader did not know yet."""
        removed = Removed()
        for bodies in self._bodies.values():
            uploads = [each async for each in bodies.uploads(scope)]
            if not uploads:
                continue
            # Behind a probe: blobs are not in this partition, so that a read may be older.
            await self._container.probe(payload_id(""), scope.partition)
            owned = set(map(str, await self._container.query(OWNED, {}, scope.partition)))
            for upload in uploads:
                if upload not in owned:
                    removed.pieces += await self._remove_ownerless(scope, bodies, upload)
        return removed

    async def _remove_ownerless(self, scope: Scope, bodies: Bodies, upload: str) -> int:
        """Takes the place of the payload document first: from then on no version can name it."""
        marker = _marker(scope, upload, bodies.name, REMOVING)
        etag: str | None
        try:
            etag = await self._container.create(marker)
        except Conflict:  # a version names it by now; or it is being removed, perhaps by us
            etag = await self._etag_of(scope, upload, REMOVING, REMOVED)
        if etag is None:
            return 0
        removed = await bodies.remove(scope, upload)
        await self._mark_removed(scope, upload, bodies.name, etag)
        return removed

    async def _mark_removed(self, scope: Scope, upload: str, store: str, etag: str) -> None:
        with contextlib.suppress(NotFound, PreconditionFailed):  # somebody else did
            await self._container.replace(_marker(scope, upload, store, REMOVED), etag)

    async def _remove(self, scope: Scope, document: Document, etag: str) -> int | None:
        """Says how many pieces it had; None if somebody uses or removes it."""
        upload, store = document["upload"], document["store"]
        bodies = self.bodies_of(store)
        count = _count(document)
        known = {} if count is None else {"pieces": count}
        removing = payload_document(scope, upload, store=store, status=REMOVING, **known)
        try:
            if document["status"] != REMOVING:
                etag = await self._container.replace(removing, etag)
        except (PreconditionFailed, NotFound):
            # Somebody uses it now; or it is being removed, by others or by us: the answer was lost.
            current = await self._etag_of(scope, upload, REMOVING)
            if current is None:
                return None
            etag = current
        pieces = await bodies.remove(scope, upload, count)
        if document["status"] == REMOVING and "ttl" in document:
            await self._mark_removed(scope, upload, store, etag)
            return pieces
        with contextlib.suppress(NotFound, PreconditionFailed):  # somebody else helped
            await self._container.delete(payload_id(upload), scope.partition, etag)
        return pieces

    async def _etag_of(self, scope: Scope, upload: str, *statuses: str) -> str | None:
        """Of a payload document, if it has one of these."""
        try:
            found: Any = await self._container.read(payload_id(upload), scope.partition)
        except NotFound:
            return None
        return str(found["_etag"]) if found.get("status") in statuses else None


def _marker(scope: Scope, upload: str, store: str, status: str) -> Document:
    """Stands where a version's transaction would create the payload document. Names nobody."""
    nobody = Scope.of_partition(scope.partition)
    return payload_document(nobody, upload, store=store, status=status, ttl=BLOCKED_TTL)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def piece_digest(digests: str, number: int) -> bytes:
    """Of one piece, from what the payload document says."""
    found = base64.b64decode(digests, validate=True)[number * _DIGEST : (number + 1) * _DIGEST]
    if len(found) != _DIGEST:
        raise IndexError(number)
    return found


def _count(document: Document) -> int | None:
    """How many pieces it has. Until it is ready there may be any number."""
    found = document.get("pieces")
    usable = document["status"] != UPLOADING and isinstance(found, int) and found <= MAX_PIECES
    return found if usable else None


def _pieces(data: bytes, size: int) -> Iterator[memoryview]:
    view = memoryview(data)
    return (view[start : start + size] for start in range(0, len(data), size))


def _digests(data: bytes, size: int) -> list[bytes]:
    return [hashlib.sha256(piece).digest() for piece in _pieces(data, size)]


def _check_count(count: int) -> None:
    if count > MAX_PIECES:
        raise TooLargeError(
            f"An artifact has at most {MAX_PIECES:,} pieces, and this one has more. Nothing was"
            " stored."
        )
