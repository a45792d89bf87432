"""A lock for each session, which exists only while somebody wants it."""

from __future__ import annotations

import asyncio
import contextlib

from cosmosservice.hosting.concurrency import Locks


async def test_one_at_a_time_in_the_order_of_asking():
    locks, order = Locks(), []

    async def work(name):
        async with locks.of("key"):
            order.append(name)
            await asyncio.sleep(0)
            order.append(name)

    await asyncio.gather(*(work(number) for number in range(5)))
    assert order == [number for number in range(5) for _ in range(2)]
    assert not locks._locks


async def test_other_keys_do_not_wait():
    locks = Locks()
    async with locks.of("one"), locks.of("two"):
        assert set(locks._locks) == {"one", "two"}
    assert not locks._locks


async def test_a_waiter_that_is_cancelled_leaves_no_lock():
    """Also if its turn had come. Those that waited after it still get the lock."""
    for when in range(4):  # iterations of the loop between release and cancellation
        locks = Locks()
        held = locks.of("key")
        await held.acquire()
        got = []

        async def work(locks=locks, got=got):
            async with locks.of("key"):
                got.append(True)

        first, second = asyncio.create_task(work()), asyncio.create_task(work())
        await asyncio.sleep(0)
        if when:
            held.release()
        for _ in range(when - 1):
            await asyncio.sleep(0)
        first.cancel()
        if not when:
            held.release()
        with contextlib.suppress(asyncio.CancelledError):
            await first
        await second
        assert got
        assert not locks._locks
