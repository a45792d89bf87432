"""Small tools of asyncio that the standard library of Python 3.11 lacks."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Hashable
from typing import Any
from weakref import WeakValueDictionary


async def together(*work: Coroutine[Any, Any, Any]) -> list[Any]:
    """Runs all side by side. The first failure ends the others and is raised as it is."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


class Locks:
    """A lock per key, which exists as long as somebody uses it."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    def of(self, key: Hashable) -> asyncio.Lock:
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock
