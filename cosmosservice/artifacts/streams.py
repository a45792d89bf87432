"""Reads and writes artifacts in parts: only a few pieces are in memory, whatever the size."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import IO, Any

from google.adk.errors.input_validation_error import InputValidationError

from cosmosservice.artifacts.bodies import MissingPiece
from cosmosservice.artifacts.reading import Extent, in_order
from cosmosservice.errors import StorageError

Source = AsyncIterable[bytes] | Iterable[bytes] | IO[bytes]


async def blocks(source: Source, size: int) -> AsyncIterator[bytes]:
    """The bytes of a source in blocks of one size, except the last one."""
    held = bytearray()
    async for each in _parts(source, size):
        if not isinstance(each, bytes | bytearray | memoryview):
            raise InputValidationError(
                f"The stream of an artifact gives bytes, not {type(each).__name__}."
            )
        if not held and len(each) == size:
            yield bytes(each)
            continue
        held += each
        while len(held) >= size:
            yield bytes(held[:size])
            del held[:size]
    if held:
        yield bytes(held)


async def _parts(source: Source, size: int) -> AsyncIterator[bytes]:
    if isinstance(source, bytes | bytearray | memoryview | str):
        raise InputValidationError(
            "A stream is a file, or gives bytes in parts. Use save_artifact for bytes in memory."
        )
    if isinstance(source, AsyncIterable):
        async for each in source:
            yield each
        return
    read = getattr(source, "read", None)
    if read is None:
        for each in source:
            yield each
        return
    while True:
        found = await asyncio.to_thread(read, size)
        if asyncio.iscoroutine(found):  # a file object of an asynchronous library
            found = await found
        if not found:
            return
        yield found


@dataclass(frozen=True)
class Opened:
    """A version whose payload can be read: in the document, or piece by piece."""

    key: Any
    document: dict[str, Any]
    data: bytes | None
    extent: Extent | None


Piece = Callable[[Opened, int], Awaitable[bytes]]


class ArtifactReader:
    """A version of an artifact, to be read in parts.

    async for piece in reader: …            # all of it, checked to the last byte
    await reader.read(offset, length)       # some of it, checked too
    """

    def __init__(
        self, opened: Opened, get: Piece, explain: Callable[[Opened, str], Awaitable[None]]
    ) -> None:
        self._opened = opened
        self._get = get
        self._explain = explain
        document = opened.document
        self.version = int(document["version"])
        self.mime_type: str | None = document.get("mime_type")
        self.size = int(document["bytes"])

    def __repr__(self) -> str:
        return f"ArtifactReader(version={self.version}, size={self.size})"

    async def __aiter__(self) -> AsyncIterator[bytes]:
        extent = self._opened.extent
        if extent is None:
            if self._opened.data:
                yield self._opened.data
            return
        async for piece in in_order(extent.pieces, self._piece):
            yield piece

    async def read(self, offset: int = 0, length: int | None = None) -> bytes:
        """Some bytes; fewer at the end."""
        if offset < 0 or (length is not None and length < 0):
            raise ValueError("offset and length must not be negative.")
        end = self.size if length is None else min(self.size, offset + length)
        if offset >= end:
            return b""
        extent = self._opened.extent
        if extent is None:
            return (self._opened.data or b"")[offset:end]
        first, last = offset // extent.piece_bytes, (end - 1) // extent.piece_bytes
        found = [
            piece async for piece in in_order(last - first + 1, lambda n: self._piece(first + n))
        ]
        start = offset - first * extent.piece_bytes
        return b"".join(found)[start : start + end - offset]

    async def _piece(self, number: int) -> bytes:
        try:
            return await self._get(self._opened, number)
        except MissingPiece as problem:
            reason = str(problem)
        await self._explain(self._opened, reason)
        raise StorageError("open_artifact: the artifact was deleted while it was read.")
