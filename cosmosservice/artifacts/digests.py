"""Digests of payloads, piece by piece."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from cosmosservice.hosting.concurrency import together

SHA256 = "sha256"
BLAKE3 = "blake3"  # takes a third of the processor time; for blobs, which are read fastest

_DIGEST = 32  # bytes, of either kind
_IN_THREAD = 512 * 1024  # bytes from which hashing is slow enough to need a thread
_THREADS = 8  # most threads that hash at the same time


async def digests_of(data: bytes, size: int, kind: str) -> list[bytes]:
    """The digests of the pieces of this size. Runs in threads if it takes long, so as not to block
    the event loop. Raises ValueError if there is no such kind."""
    make = _kind(kind)
    whole = list(pieces(data, size))
    if len(data) < _IN_THREAD:
        return _digests(whole, make)
    share = -(-len(whole) // _THREADS)
    shares = [whole[start : start + share] for start in range(0, len(whole), share)]
    found = await together(*(asyncio.to_thread(_digests, each, make) for each in shares))
    return [digest for digests in found for digest in digests]


def _kind(name: str) -> Callable[[memoryview], Any]:
    if name == SHA256:
        return hashlib.sha256
    if name != BLAKE3:
        raise ValueError(name)
    from blake3 import blake3

    return blake3


def _digests(some: list[memoryview], make: Callable[[memoryview], Any]) -> list[bytes]:
    return [make(piece).digest() for piece in some]


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
