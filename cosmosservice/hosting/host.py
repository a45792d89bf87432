"""Opens a store at its first use on an event loop, and closes it."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from cosmosservice.account.charges import RequestCharge
from cosmosservice.errors import CosmosServiceError
from cosmosservice.hosting.concurrency import retrieve

if TYPE_CHECKING:
    from cosmos_emulator import Emulator
    from cosmosservice.account.connection import Connection, Ensure
    from cosmosservice.account.settings import Settings
    from cosmosservice.account.telemetry import Telemetry
    from cosmosservice.sessions.store.store import SessionStore

logger = logging.getLogger("cosmosservice")

T = TypeVar("T")

_hosts: weakref.WeakSet[StoreHost] = weakref.WeakSet()


def _keep_what_is_the_parents() -> None:
    """In a forked child. Were the inherited connections collected there, even at its end, they
    would be closed, and with them the parent's: both have one socket, and one epoll."""
    opened = [host for host in _hosts if host._opening is not None]
    if not opened:
        return
    import ctypes  # loaded when a host was opened: a fork is no time to wait for an import

    for host in opened:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(host._opening))


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_keep_what_is_the_parents)


class Opener:
    """How a service's stores are opened, and whom their requests are told. One for the service."""

    def __init__(
        self,
        settings: Settings,
        *,
        credential: Any,
        emulator: Emulator | None,
        ensure: Ensure | None,
        allow_multiple_write_regions: bool,
        cache_bytes: int,
        rebase: bool,
        on_request_charge: Callable[[RequestCharge], None] | None,
    ) -> None:
        self._settings = settings
        self._emulator = emulator
        self._guard = threading.Lock()
        self._connect = {
            "credential": credential,
            "ensure": ensure,
            "allow_multiple_write_regions": allow_multiple_write_regions,
        }
        self._cache_bytes = cache_bytes
        self._rebase = rebase
        self._on_request_charge = on_request_charge

    @property
    def description(self) -> str:
        return f"{self._settings.endpoint}, database={self._settings.database!r}"

    @cached_property
    def telemetry(self) -> Telemetry:
        # At the first use, like the store: OpenTelemetry takes a moment to import.
        from cosmosservice.account.telemetry import Telemetry

        return Telemetry(self._settings)

    async def open(self) -> SessionStore:
        import ctypes  # noqa: F401  for a fork: see above

        from cosmosservice.account.connection import Connection
        from cosmosservice.sessions.store.store import SessionStore

        connection: Connection = Connection(
            self._settings, observer=self, emulator=self._shared_emulator(), **self._connect
        )
        with self.telemetry.operation("connect"):
            await connection.open()
        return SessionStore(connection, cache_bytes=self._cache_bytes, rebase=self._rebase)

    def _shared_emulator(self) -> Emulator | None:
        """Stores in files find each other; what is in memory must be one for all loops."""
        from cosmosservice.account.connection import embedded_emulator

        with self._guard:
            if self._emulator is None and self._settings.embedded_path == ":memory:":
                self._emulator = embedded_emulator(":memory:")
                weakref.finalize(self, self._emulator.close)
            return self._emulator

    def request(self, charge: RequestCharge, seconds: float) -> None:
        self.telemetry.request(charge, seconds)
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s took %.1f ms", charge, seconds * 1000)
        if self._on_request_charge is None:
            return
        try:
            self._on_request_charge(charge)
        except Exception:
            logger.exception("on_request_charge failed; the request itself did not.")


class StoreHost:
    """The store of one event loop."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._opening: asyncio.Task[SessionStore] | None = None
        self._opened: SessionStore | None = None
        _hosts.add(self)

    async def run(
        self, operation: str, work: Callable[[SessionStore], Coroutine[Any, Any, T]]
    ) -> T:
        with self._opener.telemetry.operation(operation):
            return await work(self._opened or await self._store())

    async def _store(self) -> SessionStore:
        opening = self._opening
        if opening is None or _failed(opening):
            opening = self._opening = asyncio.create_task(self._opener.open())
            opening.add_done_callback(retrieve)
        store = await asyncio.shield(opening)
        if self._opening is opening:
            self._opened = store
        return store

    async def close(self) -> None:
        opening, self._opening, self._opened = self._opening, None, None
        if opening is None or _failed(opening):
            return
        try:
            store = await opening
        except CosmosServiceError:
            return
        try:
            await store.flush()
        finally:
            await store.connection.close()


def _failed(opening: asyncio.Task[SessionStore]) -> bool:
    """Then the next call tries again, also if nobody has been told."""
    return opening.done() and (opening.cancelled() or opening.exception() is not None)
