"""The size that the cache reports is compared with what it really holds."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from cosmosservice.hosting.operation import Unbounded
from cosmosservice.sessions.store.keys import SessionKey
from tests.support.adk import event

SHAPES = {
    "short": {"events": 1},
    "with events": {"events": 10},
    "with changes": {"events": 10, "delta": {"k": "value", "user:k": "value"}},
    "with long events": {"events": 3, "text": "lorem ipsum, dolor " * 500},
    "with nested state": {
        "events": 1,
        "delta": {"cart": [{"sku": f"a{n}", "n": n, "price": 1.5 * n} for n in range(50)]},
    },
    "with a large value": {"events": 1, "delta": {"text": "x, y" * 15_000}},
    "with many keys": {"events": 1, "delta": {f"key {n}": f"value {n}" for n in range(300)}},
}


@pytest.mark.parametrize("shape", SHAPES)
async def test_what_the_cache_counts_is_what_it_takes(open_service, shape):
    writer, reader = open_service(), open_service()
    given, count = SHAPES[shape], 12
    for number in range(count):
        who = {"app_name": "app", "user_id": f"user {number}", "session_id": "s"}
        session = await writer.create_session(**who)
        for turn in range(given["events"]):
            text = given.get("text", "hello there") + str(turn)
            await writer.append_event(session, event(text, delta=given.get("delta")))
    await writer.flush()
    await reader.list_sessions(app_name="none")
    gc.freeze()  # the collector skips existing objects
    tracemalloc.start()
    for number in range(count):
        await reader.get_session(app_name="app", user_id=f"user {number}", session_id="s")
    cache = (await reader.in_store(Unbounded("test"), _store)).cache
    SessionKey.of.cache_clear()
    gc.collect()
    counted, full = cache.bytes, tracemalloc.get_traced_memory()[0]
    cache._entries.clear()
    gc.collect()
    empty = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    gc.unfreeze()
    assert 0.7 < (full - empty) / counted < 1.3


async def _store(store):
    return store
