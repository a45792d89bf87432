"""What the cache may take, and what it takes."""

from __future__ import annotations

import gc

import psutil

from benchmarks.cosmos import OverHttp
from benchmarks.results import Result, Target, size
from benchmarks.stand import OURS, Stand
from cosmosservice.session_store import SessionStore

CACHE_BYTES = 16 * 1024 * 1024
EVENTS = 1000


async def cached(peer: OverHttp) -> int:
    """Bytes that the cache counts."""

    async def look(store: SessionStore) -> int:
        return store.cache.bytes

    return await peer.service._run("measure", look)


async def memory(stand: Stand) -> Result:
    """Reads many more events than the cache may hold."""
    sessions = 20 if stand.quick else 100
    result = Result(
        "memory",
        f"Memory: a cache of {size(CACHE_BYTES)}, {sessions:,} sessions × 1,000 events",
        ["", ""],
    )
    direct = stand.server("emulator").port
    peer = OverHttp(OURS, direct, direct, cache_bytes=CACHE_BYTES)
    await peer.open()
    try:
        ids = [await stand.session(peer, EVENTS) for _ in range(sessions)]
        await peer.get(ids[0])
        gc.collect()
        process = psutil.Process()
        before, most = process.memory_info().rss, 0
        for session_id in ids:
            await peer.get(session_id)
            most = max(most, await cached(peer))
        gc.collect()
        grown = process.memory_info().rss - before
    finally:
        await peer.close()
    read = sessions * EVENTS * len(str(await stand.event_document()))
    result.rows = [
        ["read", size(read)],
        ["the cache, at most", size(most)],
        ["the process grew by", size(max(grown, 0))],
        ["1,000 sessions would be", size(read / sessions * 1000)],
    ]
    result.targets = [
        Target("the cache, by its configured bytes", "≤", 1, most / CACHE_BYTES),
        Target(
            "the process's growth, by the cache's configured bytes", "≤", 2, grown / CACHE_BYTES
        ),
    ]
    return result
