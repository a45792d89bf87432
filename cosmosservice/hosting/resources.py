"""One connection on one event loop, and the store of each service on it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from cosmosservice.errors import UnavailableError
from cosmosservice.hosting.concurrency import retrieve
from cosmosservice.hosting.deadline import in_time
from cosmosservice.hosting.operation import Operation

T = TypeVar("T")

CLOSE_TIMEOUT = 10.0  # seconds that closing waits for running calls, and for unfinished writes


class Phase(Enum):
    """Of what is opened at its first use and closed once. Goes forward only."""

    NOT_OPENED = "not opened"
    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"

    @property
    def ended(self) -> bool:
        """Whether no new call may begin."""
        return self in (Phase.CLOSING, Phase.CLOSED)


class Connection(Protocol):
    async def close(self) -> None: ...


class Store(Protocol):
    """The part of a service that lives on one event loop, on one connection."""

    async def drain(self) -> None:
        """Passes data on to other stores. Called while all stores are still open."""

    async def close(self) -> None:
        """Writes what has not been written yet."""


C = TypeVar("C", bound=Connection)
C_contra = TypeVar("C_contra", contravariant=True)
S = TypeVar("S", bound=Store)
S_co = TypeVar("S_co", bound=Store, covariant=True)


class StoreFactory(Protocol[C_contra, S_co]):
    """Opens the store of one service. Compared by identity."""

    async def open(self, connection: C_contra) -> S_co:
        """On this connection, with the containers that it needs."""

    def target(self, operation: str) -> str | None:
        """The container that telemetry names for an operation. None means the database."""


Scope = Callable[[Operation, str | None], AbstractContextManager[None]]
"""What surrounds an operation on a target: its name, its time limit, its telemetry."""


class Resources(Generic[C]):
    """Opens the connection and the stores at their first use, and closes them together."""

    def __init__(self, connect: Callable[[], Coroutine[Any, Any, C]], scope: Scope) -> None:
        self.phase = Phase.NOT_OPENED
        self._scope = scope
        self._connection = _Opened(connect)
        self._stores: dict[StoreFactory[C, Any], _OpenStore] = {}
        _all.add(self)

    def store_of(self, factory: StoreFactory[C, S]) -> _OpenStore:
        found = self._stores.get(factory)
        if found is None:
            found = self._stores[factory] = _OpenStore(lambda: self._open(factory))
        return found

    async def _open(self, factory: StoreFactory[C, S]) -> S:
        return await factory.open(await self.connection())

    async def run(
        self,
        factory: StoreFactory[C, S],
        operation: Operation,
        work: Callable[[S], Coroutine[Any, Any, T]],
    ) -> T:
        """Awaits `work(store)` with the store of this service, as this operation."""
        entry = self.store_of(factory)
        with self._scope(operation, factory.target(operation)):
            entry.calls += 1
            try:
                return await work(entry.opened.value or await self._opened(entry))
            finally:
                entry.calls -= 1
                if not entry.calls:
                    entry.idle.set()

    async def _opened(self, entry: _OpenStore) -> Any:
        try:
            return await in_time(entry.opened.get())
        except TimeoutError:
            pass
        raise UnavailableError("connect: there was no answer in time. Nothing was stored.")

    @property
    def stores(self) -> int:
        """The number of services that have a store here."""
        return len(self._stores)

    async def connection(self) -> C:
        connection = await self._connection.get()
        if self.phase is Phase.NOT_OPENED:
            self.phase = Phase.OPEN
        return connection

    async def close_store(self, factory: StoreFactory[C, Any]) -> None:
        """Waits for the service's running calls, and closes its store. The next call opens
        a new one."""
        entry = self._stores.pop(factory, None)
        if entry is None:
            return
        await entry.wait_until_idle()
        store = await entry.opened.take()
        if store is not None:
            await store.close()

    async def drain(self) -> None:
        """Call this before `close`: one store may still have data for another."""
        for entry in list(self._stores.values()):
            if entry.opened.value is not None:
                await entry.opened.value.drain()

    async def close(self) -> None:
        """Closes the stores first: they may have something to write."""
        self.phase = Phase.CLOSING
        try:
            for factory in list(self._stores):
                await self.close_store(factory)
        finally:
            connection = await self._connection.take()
            if connection is not None:
                await connection.close()
            self.phase = Phase.CLOSED


class _Opened(Generic[T]):
    """Opened once, however many callers ask for it; opened again if that failed."""

    __slots__ = ("_open", "_task", "value")

    def __init__(self, open_: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._open = open_
        self._task: asyncio.Task[T] | None = None
        self.value: T | None = None

    async def get(self) -> T:
        task = self._task
        if task is None or _failed(task):
            task = self._task = asyncio.create_task(self._open())
            task.add_done_callback(retrieve)
        value = await asyncio.shield(task)
        if self._task is task:
            self.value = value
        return value

    async def take(self) -> T | None:
        """What was opened, so that it can be closed. None if nothing was opened."""
        task, self._task, self.value = self._task, None, None
        if task is None:
            return None
        with contextlib.suppress(Exception):
            await asyncio.wait([task])
        return None if _failed(task) else task.result()


class _OpenStore:
    """A service's store, and how many calls use it."""

    __slots__ = ("calls", "idle", "opened")

    def __init__(self, open_: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self.opened: _Opened[Any] = _Opened(open_)
        self.calls = 0
        self.idle = asyncio.Event()

    async def wait_until_idle(self) -> None:
        if self.calls:
            self.idle.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.idle.wait(), CLOSE_TIMEOUT)


def _failed(task: asyncio.Task[Any]) -> bool:
    """The next call then opens it again, even if nobody waited for this attempt."""
    return task.done() and (task.cancelled() or task.exception() is not None)


_all: weakref.WeakSet[Resources[Any]] = weakref.WeakSet()


def _keep_connections_of_the_parent() -> None:
    """In a forked child the parent's connections must never be collected: closing them there
    would close the sockets that both processes share."""
    used = [each for each in _all if each.phase is not Phase.NOT_OPENED or each.stores]
    if not used:
        return
    import ctypes  # already loaded: importing is not safe during a fork

    for each in used:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_keep_connections_of_the_parent)
