"""SHA-256 of payloads, piece by piece."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Iterator

from cosmosservice.hosting.concurrency import together

_DIGEST = 32  # bytes of SHA-256
_IN_THREAD = 512 * 1024  # bytes from which hashing is slow enough to need a thread
_THREADS = 8  # most threads that hash at the same time


async def sha256(data: bytes) -> bytes:
    """Runs in a thread if it takes long, so as not to block the event loop."""
    if len(data) < _IN_THREAD:
        return hashlib.sha256(data).digest()
    return await asyncio.to_thread(lambda: hashlib.sha256(data).digest())


async def digests_of(data: bytes, size: int) -> list[bytes]:
    """The digests of the pieces of this size."""
    whole = list(pieces(data, size))
    if len(data) < _IN_THREAD:
        return _digests(whole)
    share = -(-len(whole) // _THREADS)
    shares = [whole[start : start + share] for start in range(0, len(whole), share)]
    found = await together(*(asyncio.to_thread(_digests, each) for each in shares))
    return [digest for digests in found for digest in digests]


def _digests(some: list[memoryview]) -> list[bytes]:
    return [hashlib.sha256(piece).digest() for piece in some]


def digest_of(digests: list[bytes]) -> str:
    """The digest of a payload, from those of its pieces, so that every byte is read once."""
    return hashlib.sha256(b"".join(digests)).hexdigest()


def piece_digests(digests: str, first: int, count: int) -> bytes:
    """The digests of some pieces, from the version's field. Raises ValueError."""
    found = base64.b64decode(digests, validate=True)
    return found[first * _DIGEST : (first + count) * _DIGEST]


def pieces(data: bytes, size: int) -> Iterator[memoryview]:
    view = memoryview(data)
    return (view[start : start + size] for start in range(0, len(data), size))
