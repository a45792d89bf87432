"""Where the bytes of uploads are kept: pieces in Cosmos DB, or a blob."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from cosmosservice.account import chunks
from cosmosservice.account.chunks import Damaged
from cosmosservice.account.container import Container
from cosmosservice.account.failures import NotFound
from cosmosservice.artifacts.digests import SHA256
from cosmosservice.artifacts.documents import PIECE, piece_document
from cosmosservice.artifacts.keys import Scope, piece_id, piece_range
from cosmosservice.hosting.concurrency import together

COSMOS = "cosmos"
BLOBS = "blobs"

# A document of 512 KB is the cheapest way to keep bytes, per byte: one of 1 MB costs more than
# three of 512 KB. In base64 that is this many bytes.
PIECE_BYTES = 384 * 1024

IDS_OF_UPLOAD = "SELECT VALUE c.id FROM c WHERE c.id >= @first AND c.id < @last"
UPLOADS_OF_PIECES = f"SELECT DISTINCT VALUE c.upload FROM c WHERE c.document_type = '{PIECE}'"

_AT_ONCE = 8


class MissingPiece(Damaged):
    """Bytes of an upload are missing, or not those that its version describes."""


class Bodies(Protocol):
    """The bytes of uploads. Every write may be sent twice."""

    name: str
    digest: str  # which kind of digest new uploads get
    piece_bytes: int  # of every piece but the last
    run: int  # how many pieces one request can read

    async def put(self, scope: Scope, upload: str, number: int, data: bytes) -> None:
        """Stores one piece."""

    async def put_all(self, scope: Scope, upload: str, data: bytes) -> None:
        """Stores all pieces of bytes that are in memory."""

    async def seal(self, scope: Scope, upload: str, count: int) -> None:
        """Completes an upload once all pieces that were put one by one are stored."""

    async def get(self, scope: Scope, upload: str, number: int, start: int, limit: int) -> bytes:
        """A piece or a run of pieces that begins at `start`, at most `limit` bytes. Raises
        MissingPiece."""

    async def remove(self, scope: Scope, upload: str, pieces: int | None = None) -> int:
        """Removes whatever exists, and returns the number of pieces or blobs. `pieces`: how many
        there are, if known."""

    def uploads(self, scope: Scope) -> AsyncIterator[str]:
        """The uploads that have any bytes stored."""

    async def copy(
        self, source: Scope, upload: str, target: Scope, name: str, sizes: Sequence[int]
    ) -> None:
        """Copies an upload with pieces of these sizes. Raises MissingPiece."""


class Pieces:
    """Documents of the artifact's own partition."""

    name = COSMOS
    digest = SHA256
    run = 1

    def __init__(self, container: Container, piece_bytes: int = PIECE_BYTES) -> None:
        self._container = container
        self.piece_bytes = piece_bytes

    async def put(self, scope: Scope, upload: str, number: int, data: bytes) -> None:
        document = piece_document(scope, upload, number, chunks.encode(data))
        await chunks.store(self._container, [document])

    async def put_all(self, scope: Scope, upload: str, data: bytes) -> None:
        size, view = self.piece_bytes, memoryview(data)
        starts = list(enumerate(range(0, len(data), size)))
        for batch in range(0, len(starts), _AT_ONCE):
            await together(
                *(
                    self.put(scope, upload, number, bytes(view[start : start + size]))
                    for number, start in starts[batch : batch + _AT_ONCE]
                )
            )

    async def seal(self, scope: Scope, upload: str, count: int) -> None:
        """Does nothing: pieces need no commit."""

    async def get(self, scope: Scope, upload: str, number: int, start: int, limit: int) -> bytes:
        try:
            found = await self._container.read(piece_id(upload, number), scope.partition)
            return chunks.decode(found, limit)
        except NotFound:
            raise MissingPiece(f"piece {number} is missing") from None
        except Damaged as problem:
            raise MissingPiece(f"piece {number} cannot be read: {problem}") from None

    async def remove(self, scope: Scope, upload: str, pieces: int | None = None) -> int:
        if pieces is not None:  # a query would be charged for reading them all
            ids = [piece_id(upload, number) for number in range(pieces)]
        else:
            found = await self._container.query(IDS_OF_UPLOAD, piece_range(upload), scope.partition)
            ids = [str(each) for each in found]
        removed = 0

        async def remove(document_id: str) -> None:
            nonlocal removed
            with contextlib.suppress(NotFound):
                await self._container.delete(document_id, scope.partition)
                removed += 1

        for start in range(0, len(ids), _AT_ONCE):
            await together(*map(remove, ids[start : start + _AT_ONCE]))
        return removed

    async def uploads(self, scope: Scope) -> AsyncIterator[str]:
        for each in await self._container.query(UPLOADS_OF_PIECES, {}, scope.partition):
            yield str(each)

    async def copy(
        self, source: Scope, upload: str, target: Scope, name: str, sizes: Sequence[int]
    ) -> None:
        async def copy(number: int) -> None:
            start = number * sizes[0]
            data = await self.get(source, upload, number, start, sizes[number])
            await self.put(target, name, number, data)

        for start in range(0, len(sizes), _AT_ONCE):
            numbers = range(start, min(start + _AT_ONCE, len(sizes)))
            await together(*map(copy, numbers))
