"""CosmosAccount: one client on one event loop, for any number of services."""

from __future__ import annotations

import dataclasses
import logging
import os
import weakref
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from typing_extensions import Unpack

from cosmosservice.account.charges import RequestCharge, operation_named
from cosmosservice.account.companions import Declaration
from cosmosservice.account.options import (
    AccountOptions,
    ConnectionOptions,
    Ensure,
    OnRequestCharge,
    embedded_store,
)
from cosmosservice.account.settings import Settings
from cosmosservice.errors import ConfigurationError
from cosmosservice.hosting.deadline import within
from cosmosservice.hosting.forks import ForkSafeLock
from cosmosservice.hosting.home import Home
from cosmosservice.hosting.home_loop import HomeLoop
from cosmosservice.hosting.host import Host
from cosmosservice.hosting.io_thread import IoThread

if TYPE_CHECKING:
    from azure.cosmos.aio import CosmosClient

    from cosmos_emulator import Emulator
    from cosmosservice.account.connection import Connection
    from cosmosservice.account.definitions import ContainerDefinition
    from cosmosservice.account.telemetry import Telemetry

logger = logging.getLogger("cosmosservice")

T = TypeVar("T")
S = TypeVar("S", bound="Store")
S_co = TypeVar("S_co", bound="Store", covariant=True)


class Store(Protocol):
    """The part of a service that lives on one event loop, on one connection."""

    async def settle(self) -> None:
        """Passes data on to other stores. Called while all stores are still open."""

    async def close(self) -> None:
        """Writes what has not been written yet."""


class ServiceStores(Protocol[S_co]):
    """What an account needs to know about a service. Compared by identity."""

    async def open(self, connection: Connection) -> S_co:
        """Opens the service's store on this connection, with the containers that it needs."""

    def target(self, operation: str) -> str | None:
        """The container that telemetry names for an operation. None means the database."""

    @property
    def bounded(self) -> Collection[str]:
        """The operations that end within the timeout. The others may take any time, and end only
        if there is no answer for that long."""


class CosmosAccount:
    """An Azure Cosmos DB account and database, shared by the services that are given it.

        account = CosmosAccount()
        sessions = CosmosSessionService(account=account)

    Without a block it lives on its own thread, and any event loop may call it. Inside
    `async with account:` its services live on that event loop, and its end closes them.
    """

    def __init__(
        self,
        *,
        endpoint: str | None = None,
        credential: Any = None,
        database: str | None = None,
        uri: str | None = None,
        ensure: Ensure | None = None,
        timeout: float | None = None,
        preferred_regions: Sequence[str] | None = None,
        client_options: Mapping[str, Any] | None = None,
        client: CosmosClient | None = None,
        on_request_charge: OnRequestCharge | None = None,
        allow_multiple_write_regions: bool = False,
        _settings: Settings | None = None,
        _emulator: Emulator | None = None,
    ) -> None:
        """Without arguments: `COSMOSDB_*` from the environment or `.env`.

        Args:
          endpoint: the account's URI, or `embedded:<file>`.
          credential: a key, or any token credential of azure-core. Default: COSMOSDB_KEY, and
            without one Entra ID.
          uri: `cosmosdb://…`, as ADK's commands pass it on.
          ensure: "create" missing containers, "verify" them, or "never" check. Default: create
            with a key; verify with Entra ID, which may not create, and with `client`.
          timeout: seconds after which an operation ends, whether or not Cosmos DB answers.
            Default: COSMOSDB_TIMEOUT, or 30.
          preferred_regions: the regions to read from, the nearest first.
          client_options: further keyword arguments of azure.cosmos.aio.CosmosClient, such as
            `proxies` or `user_agent_suffix`.
          client: an azure.cosmos.aio.CosmosClient that the application has. It is used on its
            event loop only, and the application closes it. Containers are verified and not
            created, unless `ensure` says "create".
          on_request_charge: called with the RequestCharge of every request.
          allow_multiple_write_regions: do not refuse an account with several write regions.
        """
        if client is not None:
            if any(each is not None for each in (endpoint, credential, uri)) or client_options:
                raise ConfigurationError(
                    "client cannot be combined with endpoint, credential, uri or client_options."
                )
            endpoint = client.client_connection.url_connection
        self.settings = _settings or Settings.given(
            uri=uri, endpoint=endpoint, database=database, timeout=timeout
        )
        options = ConnectionOptions(
            credential=credential,
            ensure=ensure,
            preferred_regions=tuple(preferred_regions or ()),
            client_options=dict(client_options or {}),
            client=client,
            emulator=_emulator,
            allow_multiple_write_regions=allow_multiple_write_regions,
        )
        self._connector = _Connector(self.settings, options, on_request_charge)
        # What services keep of sessions, by container: session services erase and copy it.
        self.companions: dict[str, Declaration] = {}
        self._bound = client is not None  # to the event loop of the application's client
        self._io = IoThread(self._connector.new_host)
        self._home: HomeLoop | None = None
        self._blocks = 0
        weakref.finalize(self, self._io.abandon).atexit = False  # the thread has its own

    @classmethod
    def embedded(
        cls,
        store: str | os.PathLike[str] | Emulator = ":memory:",
        **options: Unpack[AccountOptions],
    ) -> CosmosAccount:
        """On the embedded emulator: a file, `:memory:`, or a given `cosmos_emulator.Emulator`."""
        endpoint, emulator = embedded_store(store)
        return cls(endpoint=endpoint, _emulator=emulator, **options)

    def __repr__(self) -> str:
        return f"CosmosAccount({self.description})"

    @property
    def description(self) -> str:
        return f"{self.settings.endpoint}, database={self.settings.database!r}"

    async def close(self) -> None:
        """Waits for running calls, finishes background writes and closes the connection. The next
        use opens it again."""
        for each in self._open_homes():
            await each.run(lambda host: host.settle())
        home, self._home, self._blocks = self._home, None, 0
        if home is not None:
            await home.close()
        await self._io.close()

    async def __aenter__(self) -> Self:
        """Inside the block the account lives on this event loop, and calls from it are direct.
        Calls from other loops still go to the thread."""
        home = self._home
        if home is None or home.life.ended:
            self._home, self._blocks = HomeLoop(self._connector.new_host()), 0
        self._blocks += 1
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self._blocks = max(0, self._blocks - 1)
        if not self._blocks:
            await self.close()

    async def open_containers(self, definitions: Iterable[ContainerDefinition]) -> None:
        """Connects, and creates or verifies these containers as `ensure` says."""
        wanted = [(each, each.name(self.settings)) for each in definitions]

        async def open_all(host: Host[Connection]) -> None:
            connection = await host.connection()
            for definition, name in wanted:
                await connection.container(definition, name)

        await self._home_of_caller().run(open_all)

    async def update_containers(
        self, definitions: Iterable[ContainerDefinition]
    ) -> dict[str, list[str]]:
        """Repairs the TTL setting and the indexing policy of existing containers. Returns what was
        wrong, by the name of the container."""
        wanted = [(each, each.name(self.settings)) for each in definitions]

        async def update_all(host: Host[Connection]) -> dict[str, list[str]]:
            connection = await host.connection()
            return {
                name: await connection.update_container(definition, name)
                for definition, name in wanted
            }

        return await self._home_of_caller().run(update_all)

    # --- for services

    async def run(
        self,
        stores: ServiceStores[S],
        operation: str,
        work: Callable[[S], Coroutine[Any, Any, T]],
        *,
        grace: float | None = None,
    ) -> T:
        """Awaits `work(store)` where the account lives, as the operation of this name."""
        return await self._home_of_caller().run(self._named(stores, operation, work), grace=grace)

    async def run_everywhere(
        self,
        stores: ServiceStores[S],
        operation: str,
        work: Callable[[S], Coroutine[Any, Any, None]],
    ) -> None:
        """Does so on the loop of the block, if the caller runs on it, and on the I/O thread."""
        if self._home is not None and self._home.is_here:
            await self._home.run(self._named(stores, operation, work))
        if self._io.running:
            await self._io.run(self._named(stores, operation, work))

    async def close_stores(self, stores: ServiceStores[Any]) -> None:
        """Closes the stores of one service. The account stays open for the others."""
        for home in self._open_homes():
            await home.run(lambda host: host.close_store(stores))

    async def is_unused(self) -> bool:
        """Whether no service has an open store here."""
        for home in self._open_homes():
            if await home.run(_store_count):
                return False
        return True

    def _open_homes(self) -> list[Home]:
        homes: list[Home] = []
        if self._home is not None and self._home.is_here:
            homes.append(self._home)
        if self._io.running:
            homes.append(self._io)
        return homes

    def _named(
        self,
        stores: ServiceStores[S],
        operation: str,
        work: Callable[[S], Coroutine[Any, Any, T]],
    ) -> Callable[[Host[Connection]], Coroutine[Any, Any, T]]:
        connector = self._connector

        async def run(host: Host[Connection]) -> T:
            with (
                operation_named(operation),
                within(connector.timeout, renews=operation not in stores.bounded),
                connector.telemetry.operation(operation, stores.target(operation)),
            ):
                return await host.in_store(stores, work)

        return run

    def _home_of_caller(self) -> Home:
        home = self._home
        if self._bound:
            if home is None or home.life.ended:
                home = self._home = HomeLoop(self._connector.new_host())
            if not home.is_here:
                raise ConfigurationError(
                    "The account uses a client of the application, which belongs to one event"
                    " loop. This call comes from another one."
                )
            return home
        return home if home is not None and home.is_here else self._io


async def _store_count(host: Host[Any]) -> int:
    return host.stores


class _Connector:
    """Opens connections of an account. Does not hold the account, so that it can be collected."""

    def __init__(
        self,
        settings: Settings,
        options: ConnectionOptions,
        on_request_charge: OnRequestCharge | None,
    ) -> None:
        self._settings = settings
        self._options = options
        self._on_request_charge = on_request_charge
        self._guard = ForkSafeLock()

    @property
    def timeout(self) -> float:
        return self._settings.timeout

    def new_host(self) -> Host[Connection]:
        return Host(self._connect)

    @cached_property
    def telemetry(self) -> Telemetry:
        # Imported at the first use: OpenTelemetry takes a moment to import.
        from cosmosservice.account.telemetry import Telemetry

        return Telemetry(self._settings)

    async def _connect(self) -> Connection:
        import ctypes  # noqa: F401  for a fork: see hosting/host.py

        from cosmosservice.account.connection import Connection

        with operation_named("connect"), self.telemetry.operation("connect"):
            return await Connection.open(self._settings, self._with_emulator(), self)

    def _with_emulator(self) -> ConnectionOptions:
        """Emulators may share a file. An emulator in memory must be one object for all loops."""
        from cosmosservice.account.connection import embedded_emulator

        with self._guard:
            if self._options.emulator is None and self._settings.embedded_path == ":memory:":
                emulator = embedded_emulator(":memory:")
                self._options = dataclasses.replace(self._options, emulator=emulator)
            return self._options

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
