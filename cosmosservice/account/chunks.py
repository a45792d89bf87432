"""What is too long for one document, in chunks: the one codec of events, state values, memories
and artifacts. Length and checksum are checked whenever something is read.

Texts are compressed. The document that names a text describes it (`count`, `bytes`, `sha256`) and
is written after the chunks. So a chunk that is not found is lag, or was removed by somebody else; a
probe tells which. Artifacts are bytes that are compressed already, and read piece by piece: their
versions describe them, and they share `encode`, `decode` and `check`.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from cosmosservice.account.container import Container, Document
from cosmosservice.account.failures import Conflict, NotFound
from cosmosservice.account.retries import VISIBILITY
from cosmosservice.data_converters import from_json
from cosmosservice.hosting.concurrency import in_thread, together

CHUNK_BYTES: Final = 1_400_000  # of compressed text; a third more as base64
MAX_CHUNKS: Final = 9_999  # the ids of chunks have four digits for it
MAX_BYTES: Final = 2 * 1024**3  # of a text: the most that a damaged document may claim

_NAME: Final = re.compile(r"[\w-]*", re.ASCII)
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


class Damaged(Exception):
    """The stored data does not match its description. The message quotes nothing of either."""


def checksum(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def check(raw: bytes, size: object, sha256: object) -> None:
    """Raises Damaged unless these are the bytes that were described."""
    if len(raw) != size:
        raise Damaged("its length is wrong")
    if not hmac.compare_digest(checksum(raw).encode(), str(sha256).encode()):
        raise Damaged("its checksum is wrong")


def encode(piece: bytes) -> str:
    """Bytes as the `data` of a document."""
    return base64.b64encode(piece).decode("ascii")


def decode(document: Any, most: int = CHUNK_BYTES) -> bytes:
    """The bytes in a document, `most` of them. Raises Damaged."""
    data = document.get("data") if isinstance(document, dict) else None
    if not isinstance(data, str):
        raise Damaged("it has no data")
    if len(data) > 4 * -(-most // 3):
        raise Damaged("it is too long")
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        raise Damaged("it is not base64") from None


async def pack(raw: bytes) -> list[str]:
    """The text as the `data` of one or more documents."""
    packed = await in_thread(zlib.compress, raw, 1)
    return [encode(packed[i : i + CHUNK_BYTES]) for i in range(0, len(packed), CHUNK_BYTES)]


def describe(raw: bytes, chunks: Sequence[str]) -> Document:
    """The description that a document has of a text stored elsewhere."""
    return {"count": len(chunks), "bytes": len(raw), "sha256": checksum(raw)}


def chunk_count(description: Any) -> int:
    """Raises Damaged if the description cannot be true."""
    found = description if isinstance(description, dict) else {}
    count, size = found.get("count"), found.get("bytes")
    if type(count) is not int or type(size) is not int or not _SHA256.fullmatch(name_in(found)):
        raise Damaged("its description is incomplete")
    if not 0 < count <= MAX_CHUNKS or not 0 <= size <= MAX_BYTES:
        raise Damaged("its size is impossible")
    return count


def name_in(description: Any, field: str = "sha256") -> str:
    """A field of the description that is part of the chunks' ids. Raises Damaged."""
    found = description.get(field) if isinstance(description, dict) else None
    if not isinstance(found, str) or not _NAME.fullmatch(found):
        raise Damaged("its description is incomplete")
    return found


async def unpack(documents: Sequence[Any], description: Any) -> bytes:
    """The text. Never takes more memory than the description says. Raises Damaged."""
    chunk_count(description)
    size = description["bytes"]
    packed = b"".join(map(decode, documents))
    try:
        raw = await in_thread(_decompress, packed, size)
    except zlib.error:
        raise Damaged("it cannot be decompressed") from None
    check(raw, size, description["sha256"])
    return raw


def _decompress(packed: bytes, size: int) -> bytes:
    worker = zlib.decompressobj()
    # Ask for one byte more than expected, to notice if there is too much.
    return worker.decompress(packed, size + 1)


# --- in a container


async def store(container: Container, documents: Iterable[Document]) -> None:
    """Creates documents of chunks. Nobody else uses their ids, so one that exists was stored by an
    earlier attempt whose answer was lost."""

    async def create(document: Document) -> None:
        with contextlib.suppress(Conflict):
            await container.create(document)

    await together(*map(create, documents))


async def upload(
    container: Container, raw: bytes, make: Callable[[int, str], Document], ttl: int | None
) -> Document:
    """Stores a text as the documents that `make` makes of each chunk's number and data. Returns
    its description."""
    packed = await pack(raw)
    extra = {} if ttl is None else {"ttl": ttl}
    await store(container, [make(*each) | extra for each in enumerate(packed)])
    return describe(raw, packed)


async def load(container: Container, ids: Sequence[str], partition: str, description: Any) -> bytes:
    """The text in these documents. Raises NotFound if one is not found, and Damaged."""
    found = await together(*(container.read(each, partition) for each in ids))
    return await unpack(found, description)


async def exist(container: Container, ids: Sequence[str], partition: str) -> bool:
    """Whether these documents exist, decided by probes."""
    return all(await together(*(container.probe(each, partition) for each in ids)))


async def load_json(
    container: Container, ids: Sequence[str], partition: str, description: Any
) -> Any:
    """The value in these documents, even if a replica lags. Raises Damaged, also if a chunk is
    missing: for documents that stay as long as the one that describes them."""
    for attempt in VISIBILITY:
        await VISIBILITY.pause(attempt)
        try:
            return from_json(await load(container, ids, partition, description))
        except NotFound:
            if not await exist(container, ids, partition):
                break
        except ValueError:
            raise Damaged("it is not JSON") from None
    raise Damaged("a part of it is missing")
