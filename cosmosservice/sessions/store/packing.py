"""Large JSON texts as compressed chunks that fit into documents, and back."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import zlib
from collections.abc import Sequence
from typing import Any, Final

from cosmosservice.account.container import Document

CHUNK_BYTES: Final = 1_400_000  # of compressed text; a third more as base64
MAX_CHUNKS: Final = 9_999  # the ids of chunks have four digits for it
MAX_BYTES: Final = 2 * 1024**3  # of a text: the most that a damaged document may claim


class Damaged(Exception):
    """The stored data does not match its description."""


def checksum(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


async def pack(raw: bytes) -> list[str]:
    """The text as the `data` of one or more documents."""
    packed = await asyncio.to_thread(zlib.compress, raw, 1)
    pieces = (packed[i : i + CHUNK_BYTES] for i in range(0, len(packed), CHUNK_BYTES))
    return [base64.b64encode(piece).decode("ascii") for piece in pieces]


def describe(raw: bytes, chunks: Sequence[str]) -> Document:
    """The description that a document has of a text stored elsewhere."""
    return {"count": len(chunks), "bytes": len(raw), "sha256": checksum(raw)}


def chunk_count(description: Any) -> int:
    """Raises Damaged if the description cannot be true."""
    try:
        count, size = int(description["count"]), int(description["bytes"])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise Damaged("its description is incomplete") from None
    if not 0 < count <= MAX_CHUNKS or not 0 <= size <= MAX_BYTES:
        raise Damaged("its size is impossible")
    return count


async def unpack(documents: Sequence[Document], description: Any) -> bytes:
    """The text. Never takes more memory than the description says. Raises Damaged."""
    size = int(description["bytes"])
    try:
        packed = b"".join(base64.b64decode(str(each["data"])) for each in documents)
        raw = await asyncio.to_thread(_decompress, packed, size)
    except (KeyError, binascii.Error, zlib.error) as problem:
        raise Damaged(type(problem).__name__) from None
    if len(raw) != size or checksum(raw) != description.get("sha256"):
        raise Damaged("its checksum is wrong")
    return raw


def _decompress(packed: bytes, size: int) -> bytes:
    worker = zlib.decompressobj()
    # Ask for one byte more than expected, to notice if there is too much.
    return worker.decompress(packed, size + 1)
