"""Reading: versions with their payloads, whole or in parts. Every byte is checked."""

from __future__ import annotations

import asyncio
import hmac
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple

from cosmosservice.account import chunks
from cosmosservice.account.chunks import Damaged
from cosmosservice.account.container import Document
from cosmosservice.artifacts.bodies import BLOBS, MissingPiece
from cosmosservice.artifacts.collaborators import Collaborators
from cosmosservice.artifacts.digests import SHA256, digests_of, piece_digests
from cosmosservice.artifacts.keys import ArtifactKey
from cosmosservice.artifacts.payloads import MAX_PIECES
from cosmosservice.data_converters import decode_state
from cosmosservice.errors import DamagedArtifactError

_AT_ONCE = 4
_SANE_CLOCK = 10.0  # seconds by which a client's clock may differ from the server's
_LARGEST_PIECE = 64 * 1024 * 1024


class Extent(NamedTuple):
    """Where a payload is, according to its version: plausible, but not yet verified."""

    bytes: int
    digest: str
    upload: str
    store: str
    pieces: int
    piece_bytes: int
    digests: str  # of the pieces
    digest_kind: str

    def size_of(self, number: int) -> int:
        return self.start_of(number + 1) - self.start_of(number)

    def start_of(self, number: int) -> int:
        """Where a piece begins; for the number after the last one, the end."""
        return min(self.bytes, number * self.piece_bytes)


class Reading:
    """Reads versions with their payloads, and checks every byte."""

    def __init__(self, shared: Collaborators) -> None:
        self._container = shared.container
        self._versions = shared.versions
        self._payloads = shared.payloads

    async def payload(self, key: ArtifactKey, document: Document) -> bytes | None:
        """All bytes of a version; None if it has none of its own. Raises MissingPiece if they
        are missing: the version may have been deleted."""
        if "bytes" not in document:
            return None
        if "payload" not in document:
            return _inline(document)
        extent = extent_of(document)
        found = [each async for each in self._runs(key, extent)]
        return found[0] if len(found) == 1 else b"".join(found)

    @asynccontextmanager
    async def ahead(
        self, key: ArtifactKey, probable: Document | None
    ) -> AsyncIterator[Callable[[Document], Awaitable[bytes | None]]]:
        """A block with a function that returns the payload of the version, once that is known. If
        it is the probable one, its blob is read from the beginning of the block on. Only blobs are:
        reading them costs no request units."""
        reading: asyncio.Task[bytes | None] | None = None
        if probable is not None and self._is_one_blob(probable):
            reading = asyncio.create_task(self.payload(key, probable))

        async def payload(document: Document) -> bytes | None:
            same = probable is not None and probable.items() <= document.items()
            return await (reading if reading is not None and same else self.payload(key, document))

        try:
            yield payload
        finally:
            if reading is not None:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)

    def _is_one_blob(self, document: Document) -> bool:
        extent = extent_of(document)
        return extent.store == BLOBS and extent.pieces <= self._payloads.bodies_of(BLOBS).run

    def _runs(self, key: ArtifactKey, extent: Extent) -> AsyncGenerator[bytes]:
        run = self._payloads.bodies_of(extent.store).run
        return in_order(-(-extent.pieces // run), lambda n: self.pieces(key, extent, n * run, run))

    async def pieces(self, key: ArtifactKey, extent: Extent, first: int, count: int = 1) -> bytes:
        """Some pieces, checked against the length and the digests that the version gives."""
        start, end = extent.start_of(first), extent.start_of(first + count)
        bodies = self._payloads.bodies_of(extent.store)
        found = await bodies.get(key.scope, extent.upload, first, start, end - start)
        if len(found) != end - start:
            raise MissingPiece(f"piece {first} has {len(found):,} bytes instead of {end - start:,}")
        try:
            wanted = piece_digests(extent.digests, first, count)
            digests = await digests_of(found, extent.piece_bytes, extent.digest_kind)
        except ValueError:
            raise MissingPiece("its digests cannot be read") from None
        if not hmac.compare_digest(b"".join(digests), wanted):
            raise MissingPiece(f"the checksum of piece {first} is wrong")
        return found

    async def is_whole(self, key: ArtifactKey, extent: Extent) -> bool:
        """Whether all bytes are there, as they were saved."""
        try:
            async with aclosing(self._runs(key, extent)) as runs:
                async for _ in runs:
                    pass
        except MissingPiece:
            return False
        return True

    async def explain(self, key: ArtifactKey, document: Document, problem: str) -> None:
        """Returns if the version has been deleted; otherwise raises, as its payload is damaged."""
        await self._container.probe(document["id"], key.partition)
        now = await self._versions.find(key, document["version"])
        if now is not None and now["save"] == document.get("save"):
            raise damaged(document, problem)


async def in_order(count: int, get: Callable[[int], Any]) -> AsyncGenerator[bytes]:
    """Piece after piece, while the next few are being read."""
    ahead: deque[asyncio.Task[bytes]] = deque()
    following = 0
    try:
        while ahead or following < count:
            while following < count and len(ahead) < _AT_ONCE:
                ahead.append(asyncio.ensure_future(get(following)))
                following += 1
            yield await ahead.popleft()
    finally:
        for task in ahead:
            task.cancel()
        await asyncio.gather(*ahead, return_exceptions=True)


def extent_of(document: Document) -> Extent:
    """Checks the fields before anything is allocated or read based on them."""
    payload: Any = document.get("payload")
    try:
        extent = Extent(
            document["bytes"],
            payload["digest"],
            payload["upload"],
            payload["store"],
            payload["pieces"],
            payload["piece_bytes"],
            str(payload.get("digests", "")),
            str(payload.get("digest_kind", SHA256)),
        )
        sizes = extent.bytes, extent.pieces, extent.piece_bytes
        names = extent.digest, extent.upload, extent.store
        possible = (
            all(type(each) is int and each > 0 for each in sizes)
            and all(isinstance(each, str) for each in names)
            and extent.pieces <= MAX_PIECES
            and extent.piece_bytes <= _LARGEST_PIECE
            and extent.pieces == -(-extent.bytes // extent.piece_bytes)
        )
    except (KeyError, TypeError):
        possible = False
    if not possible:
        raise damaged(document, "what it says of its payload is impossible")
    return extent


def _inline(document: Document) -> bytes:
    try:
        data = chunks.decode(document)
        chunks.check(data, document["bytes"], document.get("sha256"))
    except Damaged as problem:
        raise damaged(document, str(problem)) from None
    return data


def damaged(document: Document, problem: str) -> DamagedArtifactError:
    return DamagedArtifactError(
        f"Version {document.get('version')} of the artifact is damaged: {problem}. Nothing damaged"
        " was returned. Other versions are not affected."
    )


def created_at(document: Document) -> float:
    """When it was saved, by the client's clock, which is finer than the server's; by the server's,
    if the client's was wrong. For a copy: when the original was saved."""
    original = document.get("saved_at")
    if isinstance(original, int | float):
        return float(original)
    server = float(document["_ts"])
    saver = document.get("created_at")
    if isinstance(saver, int | float) and abs(saver - server) < _SANE_CLOCK:
        return float(saver)
    return server


def metadata_of(document: Document) -> dict[str, Any]:
    found = document.get("custom_metadata")
    return decode_state(found) if isinstance(found, dict) else {}
