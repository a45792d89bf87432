"""`python -m tests.artifacts.large MEGABYTES [BLOBS]`: writes one large artifact from a stream and
reads it in parts, in a separate process. Prints how much its memory grew, in MB, and checks the
bytes.

COSMOSDB_ENDPOINT and COSMOSDB_KEY name the store.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from cosmosservice import CosmosArtifactService

WHO = {"app_name": "app", "user_id": "ann", "session_id": "large"}
MB = 1024 * 1024


def peak() -> float:
    """The largest resident size of this process so far, in MB. (getrusage starts with the size of
    the parent process.)"""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) / 1024


async def main(megabytes: int, blobs: str | None) -> None:
    wanted, found = hashlib.sha256(), hashlib.sha256()

    async def source() -> AsyncIterator[bytes]:
        for number in range(megabytes * 8):
            made = number.to_bytes(8, "big") * (MB // 64)
            wanted.update(made)
            yield made

    async with CosmosArtifactService(database="tests", blobs=blobs) as service:
        # What the first requests load does not count.
        await service.save_artifact_stream(**WHO, filename="first", data=[bytes(100_000)])
        await service.load_artifact(**WHO, filename="first")
        before = peak()
        await service.save_artifact_stream(**WHO, filename="f", data=source())
        saved = peak()
        reader = await service.open_artifact(**WHO, filename="f")
        assert reader is not None
        async for piece in reader:
            found.update(piece)
        read = peak()
    assert reader.size == megabytes * MB
    assert found.digest() == wanted.digest()
    print(f"{saved - before:.0f} {read - before:.0f}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None))
