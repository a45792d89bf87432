"""The limit of the cache, and what it really uses."""

from __future__ import annotations

import gc

import psutil

from benchmarks.cosmos import InProcess
from benchmarks.material import history
from benchmarks.results import Result, Target, size
from benchmarks.servers import scratch
from benchmarks.stand import IN_PROCESS, Stand
from cosmosservice.hosting.operation import Unbounded
from cosmosservice.sessions.store.store import SessionStore

EVENTS = 1000
MB = 1024 * 1024


async def cached(peer: InProcess) -> int:
    """The size in bytes that the cache reports."""

    async def look(store: SessionStore) -> int:
        return store.cache.bytes

    return await peer.service.in_store(Unbounded("measure"), look)


async def memory(stand: Stand) -> Result:
    """Reads many more events than the cache may hold, from a file."""
    sessions, limit = (20, 16 * MB) if stand.quick else (300, 64 * MB)
    past = history(EVENTS)
    result = Result(
        "memory",
        f"Memory: a cache of {limit // MB} MB, {sessions:,} sessions × {EVENTS:,} events",
        ["", ""],
    )
    path = stand.stack.enter_context(scratch()) / "sessions.db"
    peer = InProcess(IN_PROCESS, path=str(path), cache_bytes=limit)
    await peer.open()
    process = psutil.Process()
    try:
        ids = [stand.fresh() for _ in range(sessions)]
        await peer.seed(ids[0], past)
        gc.collect()
        before, most = process.memory_info().rss, 0
        for session_id in ids[1:]:  # seeding also reads it
            await peer.seed(session_id, past)
            most = max(most, await cached(peer))
        for session_id in ids:
            await peer.get(session_id)
            most = max(most, await cached(peer))
        gc.collect()
        grown = process.memory_info().rss - before
    finally:
        await peer.close()
    result.rows = [
        ["stored and read", size(sessions * EVENTS * len(str(await stand.event_document())))],
        ["the cache, at most", size(most)],
        ["the process grew by", size(max(grown, 0))],
    ]
    result.targets = [
        Target("the cache, by its configured bytes", "≤", 1, most / limit),
        Target("the process's growth, by the cache's configured bytes", "≤", 2, grown / limit),
    ]
    return result
