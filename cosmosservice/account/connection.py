"""A connection: one client of one account, on the event loop that opened it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from cosmosservice.account.charges import Observer, note_answer, note_sent
from cosmosservice.account.container import Container
from cosmosservice.account.credentials import asynchronous, default_credential
from cosmosservice.account.definitions import ContainerDefinition
from cosmosservice.account.failures import Failure, NotFound
from cosmosservice.account.files import explained
from cosmosservice.account.options import ConnectionOptions
from cosmosservice.account.provisioning import (
    check_container,
    container_properties,
    create_container,
    create_database,
    create_shared_database,
    enforces_unique_key,
    repeated,
    update_container,
)
from cosmosservice.account.quiet import quiet_http_log
from cosmosservice.account.retries import REQUEST
from cosmosservice.account.server_clock import ServerClock
from cosmosservice.errors import (
    ConfigurationError,
    ContainerMismatchError,
    MultipleWriteRegionsError,
    UnavailableError,
)
from cosmosservice.hosting.deadline import remaining

if TYPE_CHECKING:
    from azure.cosmos.aio import CosmosClient, DatabaseProxy

    from cosmos_emulator import Emulator
    from cosmosservice.account.settings import Settings

logger = logging.getLogger("cosmosservice")


@dataclass(frozen=True)
class AccountProperties:
    """What an account reports about itself."""

    write_regions: list[str]
    multiple_write_regions: bool
    consistency: str


def embedded_emulator(path: str) -> Emulator:
    try:
        from cosmos_emulator import Emulator
        from cosmos_emulator.errors import StorageError
    except ImportError as missing:
        raise ConfigurationError(
            "The embedded emulator needs a package that is not installed"
            f" ({missing.name}): pip install 'cosmosservice[emulator]'."
        ) from None
    try:
        return Emulator(path)
    except StorageError as error:
        reason = explained(path) or f"The embedded store cannot be opened: {error}."
    raise ConfigurationError(reason)


class Connection:
    """Entered once and closed once. `open` makes one."""

    def __init__(
        self,
        settings: Settings,
        options: ConnectionOptions,
        observer: Observer,
    ) -> None:
        self._settings = settings
        self._options = options
        self._observer = observer
        self.clock = ServerClock()
        self._to_close: list[Any] = []  # created here, so closed here: credential, emulator
        self._emulator: Emulator | None = None
        self._client = options.client or self._make_client()
        self._database: DatabaseProxy = self._client.get_database_client(settings.database)
        self._has_database = False

    @classmethod
    async def open(
        cls, settings: Settings, options: ConnectionOptions, observer: Observer
    ) -> Connection:
        quiet_http_log()
        connection = cls(settings, options, observer)
        try:
            await connection._enter()
        except BaseException:
            # An aio client whose entering failed leaks its HTTP session unless it is closed.
            await connection.close()
            raise
        logger.info("Connected to %s, database %r.", settings.endpoint, settings.database)
        return connection

    async def _enter(self) -> None:
        problem: Exception
        try:
            async with asyncio.timeout(self._settings.timeout):
                # For an application's client too: without it, it sends no session tokens.
                await self._client.__aenter__()
                await self._check_write_regions()
            self.clock.answered(self._client.client_connection.last_response_headers or {})
            return
        except ConfigurationError:
            raise
        except Exception as error:
            problem = self._explained(Failure(error))
        raise problem

    def existing(self, definition: ContainerDefinition, name: str) -> Container:
        """The container for reading only, neither created nor verified. If it is missing, so is
        everything in it."""
        proxy = self._database.get_container_client(name)
        return Container(proxy, definition.partition_key, self._observer, self.clock)

    async def container(self, definition: ContainerDefinition, name: str) -> Container:
        """The container, created or verified as the options say."""
        return await self._known(definition, name, self._ensure(definition, name))

    async def existing_container(
        self, definition: ContainerDefinition, name: str
    ) -> Container | None:
        """The container; None if it does not exist. It is neither created nor verified. Asked for
        in the middle of an operation, which a transient failure must not end."""
        for attempt in REQUEST:
            await REQUEST.pause(attempt)
            try:
                return await self._known(definition, name, self.container_properties(name))
            except ContainerMismatchError:
                return None
            except UnavailableError:
                if REQUEST.is_last(attempt) or not remaining():
                    raise
        raise AssertionError("The last attempt returns or raises.")

    async def _known(
        self, definition: ContainerDefinition, name: str, first: Coroutine[Any, Any, Any]
    ) -> Container:
        problem: Exception | None = None
        found = self.existing(definition, name)
        try:
            async with asyncio.timeout(self._settings.timeout):
                await first
                await found.learn_resource_id()
        except ConfigurationError:
            raise
        except Exception as error:
            problem = self._explained(Failure(error))
        if problem is not None:
            raise problem
        return found

    async def _ensure(self, definition: ContainerDefinition, name: str) -> None:
        ensure = self._options.ensure or ("create" if self._may_create else "verify")
        if ensure == "never":
            return
        if ensure == "create":
            if not self._has_database:
                await repeated(lambda: create_database(self._client, self._settings.database))
                self._has_database = True
            await repeated(lambda: create_container(self._database, name, definition))
        properties = await self.container_properties(name)
        hidden = definition.unique_key is not None and "uniqueKeyPolicy" not in properties
        # Some emulators do not show it, so it is tried.
        if hidden and await enforces_unique_key(self._database, name, definition):
            properties = {**properties, "uniqueKeyPolicy": definition.unique_key_policy}
        check_container(name, definition, properties)

    @property
    def _may_create(self) -> bool:
        """A key may create containers, an identity of Entra ID may not."""
        options, settings = self._options, self._settings
        if options.client is not None:
            return False
        embedded = options.emulator is not None or settings.embedded_path is not None
        given = isinstance(options.credential, str) or (
            options.credential is None and settings.key is not None
        )
        return embedded or given

    @property
    def token_credential(self) -> Any:
        """The application's token credential, which other Azure services accept as well. None if
        the application gave a key or nothing."""
        given = self._options.credential
        return None if given is None or isinstance(given, str) else asynchronous(given)

    @property
    def creates_containers(self) -> bool:
        return (self._options.ensure or "create") == "create"

    async def properties(self) -> AccountProperties:
        found = await self._client._get_database_account()
        policy = found.ConsistencyPolicy or {}
        return AccountProperties(
            write_regions=[str(each["name"]) for each in found._WritableLocations],
            multiple_write_regions=bool(found._EnableMultipleWritableLocations),
            consistency=str(policy.get("defaultConsistencyLevel", "Session")),
        )

    async def container_properties(self, name: str) -> Mapping[str, Any]:
        return await container_properties(self._database, name)

    async def update_container(self, definition: ContainerDefinition, name: str) -> list[str]:
        """Repairs what can be changed in an existing container, and returns what was wrong."""
        try:
            return await update_container(self._database, name, definition)
        except ConfigurationError:
            raise
        except Exception as error:
            problem = self._explained(Failure(error))
        raise problem

    async def create_shared_database(self, throughput: int) -> None:
        """Creates the database with throughput for all containers, unless serverless."""
        try:
            name = self._settings.database
            await repeated(lambda: create_shared_database(self._client, name, throughput))
            return
        except Exception as error:
            problem = self._explained(Failure(error))
        raise problem

    async def drop_database(self) -> None:
        """Deletes the database with everything in it, if it exists."""
        try:
            await self._client.delete_database(self._settings.database)
            return
        except Exception as error:
            problem = self._explained(Failure(error))
        if not isinstance(problem, NotFound):
            raise problem

    @property
    def leaves_remnants(self) -> bool:
        """Whether erased data stays in a file until `erase_remnants`."""
        return self._emulator is not None and self._emulator.path != ":memory:"

    async def erase_remnants(self) -> None:
        """Removes the last bytes of erased data from the embedded emulator's file. Azure does this
        by itself."""
        if self._emulator is not None:
            await asyncio.to_thread(self._emulator.erase_remnants)

    async def close(self) -> None:
        try:
            if self._options.client is None:
                await self._client.close()
        finally:
            for each in self._to_close:
                closing = each.close()
                if closing is not None:
                    await closing
            self._to_close.clear()

    async def _check_write_regions(self) -> None:
        account = await self.properties()
        if account.multiple_write_regions and not self._options.allow_multiple_write_regions:
            raise MultipleWriteRegionsError(
                "The account accepts writes in several regions. Two regions could give one sequence"
                " number to two events, and one event would be lost by last-writer-wins."
                " Use an account with one write region, or, if all writers of a session are"
                " certain to use the same region, pass allow_multiple_write_regions=True."
            )

    def _explained(self, failure: Failure) -> Exception:
        endpoint = self._settings.endpoint
        hint = self._hint(failure)
        if failure.known and (failure.status is None or hint):
            reason = failure.message.rstrip(".")
            return UnavailableError(
                f"connect: {endpoint} cannot be reached: {reason}. {hint}Nothing was stored."
            )
        return failure.translated(f"the connection to {endpoint}", maybe_stored=False)

    def _hint(self, failure: Failure) -> str:
        """A hint, if apparently only one side used TLS."""
        plain = self._settings.endpoint.startswith("http:")
        if plain and (failure.hung_up or failure.status == 400):
            return (
                "It may expect TLS: write https:// in COSMOSDB_ENDPOINT, or leave ?protocol=http"
                " out of the URI. "
            )
        if not plain and failure.not_tls:
            return (
                "It does not speak TLS, as local emulators do not: write http:// in"
                " COSMOSDB_ENDPOINT, or ?protocol=http in the URI. "
            )
        return ""

    # --- the client

    def _make_client(self) -> CosmosClient:
        from azure.cosmos.aio import CosmosClient

        made: dict[str, Any] = {"raw_request_hook": note_sent, "raw_response_hook": note_answer}
        if self._options.preferred_regions:
            made["preferred_locations"] = list(self._options.preferred_regions)
        settings = self._settings
        if settings.embedded_path is not None or self._options.emulator is not None:
            emulator = self._options.emulator
            if emulator is None:
                emulator = embedded_emulator(settings.embedded_path or ":memory:")
                self._to_close.append(emulator)
            self._emulator = emulator
            made |= {
                "credential": emulator.key,
                "transport": emulator.async_transport(),
                "enable_endpoint_discovery": False,
            }
            return CosmosClient(emulator.endpoint, **made | dict(self._options.client_options))
        from cosmosservice.account.transport import Transport

        host = urlsplit(settings.endpoint)
        azure = host.scheme == "https" and host.hostname not in ("localhost", "127.0.0.1", "::1")
        made |= {
            "credential": self._credential(),
            "transport": Transport(),
            "enable_endpoint_discovery": azure,
        }
        return CosmosClient(settings.endpoint, **made | dict(self._options.client_options))

    def _credential(self) -> Any:
        secure = urlsplit(self._settings.endpoint).scheme == "https"
        is_key = isinstance(self._options.credential or self._settings.key, str | SecretStr)
        if not secure and not is_key:
            raise ConfigurationError(
                f"{self._settings.endpoint} is http, and Entra ID needs https: a token must not"
                " travel in the clear. Set COSMOSDB_KEY (every emulator has a key), or use"
                " https."
            )
        if self._options.credential is not None:
            return asynchronous(self._options.credential)
        if self._settings.key is not None:
            return self._settings.key.get_secret_value()
        made = default_credential()
        self._to_close.append(made)
        return made
