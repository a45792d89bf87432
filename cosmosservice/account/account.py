"""CosmosAccount: one client on one event loop, for any number of services."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from typing_extensions import Unpack

from cosmosservice.account.charges import RequestCharge, operation_named
from cosmosservice.account.dependants import Declaration
from cosmosservice.account.options import (
    AccountOptions,
    ConnectionOptions,
    EmbeddedOptions,
    OnRequestCharge,
    check_names,
    documented,
    embedded_store,
)
from cosmosservice.account.settings import Settings
from cosmosservice.errors import ConfigurationError
from cosmosservice.hosting.deadline import within
from cosmosservice.hosting.executor import Executor
from cosmosservice.hosting.forks import ForkSafeLock
from cosmosservice.hosting.loop_executor import LoopExecutor
from cosmosservice.hosting.operation import Bounded, Operation
from cosmosservice.hosting.resources import Resources, Store, StoreFactory
from cosmosservice.hosting.thread_executor import ThreadExecutor

if TYPE_CHECKING:
    from cosmos_emulator import Emulator
    from cosmosservice.account.connection import Connection
    from cosmosservice.account.definitions import ContainerDefinition
    from cosmosservice.account.telemetry import Telemetry

logger = logging.getLogger("cosmosservice")

T = TypeVar("T")
S = TypeVar("S", bound=Store)


class CosmosAccount:
    """An Azure Cosmos DB account and database, shared by the services that are given it.

        account = CosmosAccount()
        sessions = CosmosSessionService(account=account)

    Without a block it lives on its own thread, and any event loop may call it. Inside
    `async with account:` its services live on that event loop, and its end closes them.
    """

    @documented
    def __init__(
        self, *, _settings: Settings | None = None, **options: Unpack[AccountOptions]
    ) -> None:
        """Without arguments: `COSMOSDB_*` from the environment or `.env`.

        Args:
        """
        check_names(self, options)
        endpoint, uri, client = options.get("endpoint"), options.get("uri"), options.get("client")
        if client is not None:
            others = endpoint, uri, options.get("credential"), options.get("client_options") or None
            if any(each is not None for each in others):
                raise ConfigurationError(
                    "client cannot be combined with endpoint, credential, uri or client_options."
                )
            endpoint = client.client_connection.url_connection
        self.settings = _settings or Settings.given(
            uri=uri,
            endpoint=endpoint,
            database=options.get("database"),
            timeout=options.get("timeout"),
        )
        self._connector = _Connector(
            self.settings, ConnectionOptions.of(options), options.get("on_request_charge")
        )
        # What services keep of sessions, by container: session services erase and copy it.
        self.dependants: dict[str, Declaration] = {}
        self._bound = client is not None  # to the event loop of the application's client
        self.executor = ThreadExecutor(self._connector.new_resources)  # for callers on any loop
        self._block: LoopExecutor | None = None  # for callers on the loop of a block
        self._blocks = 0
        weakref.finalize(self, self.executor.abandon).atexit = False  # the thread has its own

    @classmethod
    def embedded(
        cls,
        store: str | os.PathLike[str] | Emulator = ":memory:",
        **options: Unpack[EmbeddedOptions],
    ) -> CosmosAccount:
        """On the embedded emulator: a file, `:memory:`, or a given `cosmos_emulator.Emulator`."""
        return cls(**embedded_store(store), **options)

    def __repr__(self) -> str:
        return f"CosmosAccount({self.description})"

    @property
    def description(self) -> str:
        """The endpoint and the database."""
        return f"{self.settings.endpoint}, database={self.settings.database!r}"

    async def close(self) -> None:
        """Waits for running calls, finishes background writes and closes the connection. The next
        use opens it again."""
        for each in self._open_executors():
            await each.start(lambda resources: resources.drain())
        block, self._block, self._blocks = self._block, None, 0
        if block is not None:
            await block.close()
        await self.executor.close()

    async def __aenter__(self) -> Self:
        """Inside the block the account lives on this event loop, and calls from it are direct.
        Calls from other loops still go to the thread."""
        if self._block is None or self._block.phase.ended:
            self._block, self._blocks = LoopExecutor(self._connector.new_resources()), 0
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

        async def open_all(resources: Resources[Connection]) -> None:
            connection = await resources.connection()
            for definition, name in wanted:
                await connection.container(definition, name)

        await self._executor_of_caller().start(open_all)

    async def update_containers(
        self, definitions: Iterable[ContainerDefinition]
    ) -> dict[str, list[str]]:
        """Repairs the TTL setting and the indexing policy of existing containers. Returns what was
        wrong, by the name of the container."""
        wanted = [(each, each.name(self.settings)) for each in definitions]

        async def update_all(resources: Resources[Connection]) -> dict[str, list[str]]:
            connection = await resources.connection()
            return {
                name: await connection.update_container(definition, name)
                for definition, name in wanted
            }

        return await self._executor_of_caller().start(update_all)

    # --- for services

    def start(
        self,
        stores: StoreFactory[Connection, S],
        operation: Operation,
        work: Callable[[S], Coroutine[Any, Any, T]],
    ) -> asyncio.Future[T]:
        """Starts `work(store)` where the account lives, as this operation: see Executor.start."""
        return self._executor_of_caller().start(
            lambda resources: resources.run(stores, operation, work)
        )

    async def run_everywhere(
        self,
        stores: StoreFactory[Connection, S],
        operation: Operation,
        work: Callable[[S], Coroutine[Any, Any, None]],
    ) -> None:
        """Does so on the loop of the block, if the caller runs on it, and on the thread."""
        for each in self._open_executors():
            await each.start(lambda resources: resources.run(stores, operation, work))

    async def close_stores(self, stores: StoreFactory[Connection, Any]) -> None:
        """Closes the stores of one service. The account stays open for the others."""
        for each in self._open_executors():
            await each.start(lambda resources: resources.close_store(stores))

    async def is_unused(self) -> bool:
        """Whether no service has an open store here."""
        for each in self._open_executors():
            if await each.start(_store_count):
                return False
        return True

    def _open_executors(self) -> list[Executor]:
        found: list[Executor] = []
        if self._block is not None and self._block.is_here:
            found.append(self._block)
        if self.executor.running:
            found.append(self.executor)
        return found

    def _executor_of_caller(self) -> Executor:
        block = self._block
        if self._bound:
            if block is None or block.phase.ended:
                block = self._block = LoopExecutor(self._connector.new_resources())
            if not block.is_here:
                raise ConfigurationError(
                    "The account uses a client of the application, which belongs to one event"
                    " loop. This call comes from another one."
                )
            return block
        return block if block is not None and block.is_here else self.executor


async def _store_count(resources: Resources[Any]) -> int:
    return resources.stores


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

    def new_resources(self) -> Resources[Connection]:
        return Resources(self._connect, self._scope)

    @contextlib.contextmanager
    def _scope(self, operation: Operation, target: str | None) -> Iterator[None]:
        seconds, renews = self._settings.timeout, True
        if isinstance(operation, Bounded):
            seconds, renews = max(0.0, seconds - operation.waited), False
        with (
            operation_named(operation),
            within(seconds, renews=renews),
            self.telemetry.operation(operation, target),
        ):
            yield

    @cached_property
    def telemetry(self) -> Telemetry:
        # Imported at the first use: OpenTelemetry takes a moment to import.
        from cosmosservice.account.telemetry import Telemetry

        return Telemetry(self._settings)

    async def _connect(self) -> Connection:
        import ctypes  # noqa: F401  for a fork: see hosting/resources.py

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
