"""Opens the store at its first use, on whichever loop the I/O thread runs, and closes it."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from cosmosservice.cosmos_client import RequestCharge
from cosmosservice.errors import CosmosServiceError

if TYPE_CHECKING:
    from cosmos_emulator import Emulator
    from cosmosservice.connection import Connection, Ensure
    from cosmosservice.session_store import SessionStore
    from cosmosservice.settings import Settings
    from cosmosservice.telemetry import Telemetry

logger = logging.getLogger("cosmosservice")

T = TypeVar("T")

_hosts: WeakSet[StoreHost] = WeakSet()


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


class StoreHost:
    """What the service keeps on the I/O thread."""

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
        self._connect = {
            "credential": credential,
            "emulator": emulator,
            "ensure": ensure,
            "allow_multiple_write_regions": allow_multiple_write_regions,
        }
        self._cache_bytes = cache_bytes
        self._rebase = rebase
        self._on_request_charge = on_request_charge
        self._opening: asyncio.Task[SessionStore] | None = None
        _hosts.add(self)

    @property
    def description(self) -> str:
        return f"{self._settings.endpoint}, database={self._settings.database!r}"

    async def run(
        self, operation: str, work: Callable[[SessionStore], Coroutine[Any, Any, T]]
    ) -> T:
        with self._telemetry.operation(operation):
            return await work(await self._store())

    @cached_property
    def _telemetry(self) -> Telemetry:
        # At the first use, like the store: OpenTelemetry takes a moment to import.
        from cosmosservice.telemetry import Telemetry

        return Telemetry(self._settings)

    async def _store(self) -> SessionStore:
        opening = self._opening
        if opening is None or opening.get_loop() is not asyncio.get_running_loop():
            # The first use, or the first in a forked child.
            opening = self._opening = asyncio.create_task(self._open())
        elif opening.done() and not opening.cancelled() and opening.exception() is None:
            return opening.result()
        try:
            return await asyncio.shield(opening)
        except BaseException:
            if opening.done() and self._opening is opening:
                self._opening = None  # the next call tries again
            raise

    async def _open(self) -> SessionStore:
        import ctypes  # noqa: F401  for a fork: see above

        from cosmosservice.connection import Connection
        from cosmosservice.session_store import SessionStore

        connection: Connection = Connection(self._settings, observer=self, **self._connect)
        with self._telemetry.operation("connect"):
            await connection.open()
        return SessionStore(connection, cache_bytes=self._cache_bytes, rebase=self._rebase)

    def request(self, charge: RequestCharge, seconds: float) -> None:
        self._telemetry.request(charge, seconds)
        logger.debug("%s took %.1f ms", charge, seconds * 1000)
        if self._on_request_charge is None:
            return
        try:
            self._on_request_charge(charge)
        except Exception:
            logger.exception("on_request_charge failed; the request itself did not.")

    async def close(self) -> None:
        opening, self._opening = self._opening, None
        if opening is None or opening.get_loop() is not asyncio.get_running_loop():
            return
        try:
            store = await opening
        except CosmosServiceError:
            return
        try:
            await store.flush()
        finally:
            await store.connection.close()
