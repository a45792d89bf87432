"""Opening and closing: the client is entered once, account and containers looked at once."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from cosmosservice.account.charges import Observer, note_answer
from cosmosservice.account.container import Container
from cosmosservice.account.definitions import ContainerDefinition
from cosmosservice.account.failures import Failure
from cosmosservice.errors import (
    ConfigurationError,
    ContainerMismatchError,
    MultipleWriteRegionsError,
    UnavailableError,
)
from cosmosservice.sessions.store.documents import EVENTS_CONTAINER, SESSIONS_CONTAINER

if TYPE_CHECKING:
    from azure.cosmos.aio import CosmosClient, DatabaseProxy

    from cosmos_emulator import Emulator
    from cosmosservice.account.settings import Settings

logger = logging.getLogger("cosmosservice")

Ensure = Literal["create", "verify", "never"]


@dataclass(frozen=True)
class Account:
    """What an account says of itself."""

    write_regions: list[str]
    multiple_write_regions: bool
    consistency: str


def embedded_emulator(path: str) -> Emulator:
    try:
        from cosmos_emulator import Emulator
    except ImportError as missing:
        raise ConfigurationError(
            "The embedded emulator needs a package that is not installed"
            f" ({missing.name}): pip install 'cosmosservice[emulator]'."
        ) from None
    return Emulator(path)


class Connection:
    """One client of one account. Lives on the event loop that opens it."""

    def __init__(
        self,
        settings: Settings,
        *,
        credential: Any = None,
        emulator: Emulator | None = None,
        ensure: Ensure | None = None,
        allow_multiple_write_regions: bool = False,
        observer: Observer,
    ) -> None:
        if ensure not in (None, "create", "verify", "never"):
            raise ConfigurationError("ensure is 'create', 'verify' or 'never'.")
        self._settings = settings
        self._credential = credential
        self._emulator = emulator
        self._owns_emulator = False
        self._ensure = ensure
        self._allow_multiple_write_regions = allow_multiple_write_regions
        self._observer = observer
        self._client: CosmosClient | None = None
        self._own_credential: Any = None
        self._opening = asyncio.Lock()
        self.sessions: Container
        self.events: Container

    async def open(self) -> None:
        """Connects at the first call; later ones cost nothing."""
        if self._client is not None:
            return
        async with self._opening:
            if self._client is None:
                await self._open()

    async def _open(self) -> None:
        client = self._make_client()
        problem: Exception | None
        try:
            try:
                await client.__aenter__()
                await self._look_at_account(client)
                database = client.get_database_client(self._settings.database)
                await self._ensure_containers(client, database)
                problem = None
            except ConfigurationError:
                raise
            except Exception as error:
                problem = self._problem(Failure(error))
            if problem is not None:
                raise problem
        except BaseException:
            # An aio client whose entering failed leaks its HTTP session unless it is closed.
            await self._close(client)
            raise
        names = self._settings.session_container, self._settings.conversation_container
        self.sessions, self.events = (
            Container(database.get_container_client(name), self._observer) for name in names
        )
        self._client = client
        logger.info("Connected to %s, database %r.", self._settings.endpoint, database.id)

    def _problem(self, failure: Failure) -> Exception:
        endpoint = self._settings.endpoint
        if failure.known and failure.status is None:
            return UnavailableError(
                f"connect: {endpoint} cannot be reached: {failure.told}. Nothing was stored."
            )
        return failure.translated(f"the connection to {endpoint}")

    def _make_client(self) -> CosmosClient:
        from azure.cosmos.aio import CosmosClient

        settings = self._settings
        if settings.embedded_path is not None or self._emulator is not None:
            emulator = self._embedded()
            return CosmosClient(
                emulator.endpoint,
                credential=emulator.key,
                transport=emulator.async_transport(),
                enable_endpoint_discovery=False,
                raw_response_hook=note_answer,
            )
        from cosmosservice.account.transport import Transport

        host = urlsplit(settings.endpoint)
        azure = host.scheme == "https" and host.hostname not in ("localhost", "127.0.0.1", "::1")
        return CosmosClient(
            settings.endpoint,
            credential=self._make_credential(),
            enable_endpoint_discovery=azure,
            raw_response_hook=note_answer,
            transport=Transport(),
        )

    def _embedded(self) -> Emulator:
        if self._emulator is None:
            self._emulator = embedded_emulator(self._settings.embedded_path or ":memory:")
            self._owns_emulator = True
        return self._emulator

    def _make_credential(self) -> Any:
        if self._credential is not None:
            return self._credential if isinstance(self._credential, str) else _aio(self._credential)
        if self._settings.key is not None:
            return self._settings.key.get_secret_value()
        try:
            from azure.identity.aio import DefaultAzureCredential
        except ImportError:
            raise ConfigurationError(
                "COSMOSDB_KEY is not set, so Entra ID is used, which needs azure-identity:"
                " pip install 'cosmosservice[entra]', or set COSMOSDB_KEY."
            ) from None
        self._own_credential = DefaultAzureCredential()
        return self._own_credential

    @property
    def uses_key(self) -> bool:
        embedded = self._emulator is not None or self._settings.embedded_path is not None
        given = isinstance(self._credential, str) or (
            self._credential is None and self._settings.key is not None
        )
        return embedded or given

    async def _look_at_account(self, client: CosmosClient) -> None:
        account = await _account(client)
        if account.multiple_write_regions and not self._allow_multiple_write_regions:
            raise MultipleWriteRegionsError(
                "The account accepts writes in several regions. Two regions could accept the same"
                " place in a session's log, and one event would be lost by last-writer-wins."
                " Use an account with one write region, or, if all writers of a session are"
                " certain to use the same region, pass allow_multiple_write_regions=True."
            )

    async def _ensure_containers(self, client: CosmosClient, database: DatabaseProxy) -> None:
        from azure.cosmos.exceptions import CosmosResourceExistsError

        ensure = self._ensure or ("create" if self.uses_key else "verify")
        if ensure == "never":
            return
        if ensure == "create":
            with contextlib.suppress(CosmosResourceExistsError):  # by another process just now
                await client.create_database_if_not_exists(self._settings.database)
        for name, definition in (
            (self._settings.session_container, SESSIONS_CONTAINER),
            (self._settings.conversation_container, EVENTS_CONTAINER),
        ):
            if ensure == "create":
                await create_container(database, name, definition)
            check_container(name, definition, await _properties(database, name))

    async def account(self) -> Account:
        assert self._client is not None, "open() comes first"
        return await _account(self._client)

    async def properties(self, container: str) -> Mapping[str, Any]:
        """As Cosmos DB has them. Raises ContainerMismatchError if there is no such container."""
        assert self._client is not None, "open() comes first"
        return await _properties(
            self._client.get_database_client(self._settings.database), container
        )

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await self._close(client)

    async def _close(self, client: CosmosClient) -> None:
        try:
            await client.close()
        finally:
            if self._own_credential is not None:
                await self._own_credential.close()
                self._own_credential = None
            if self._owns_emulator and self._emulator is not None:
                self._emulator.close()
                self._emulator, self._owns_emulator = None, False


async def _account(client: CosmosClient) -> Account:
    found = await client._get_database_account()
    policy = found.ConsistencyPolicy or {}
    return Account(
        write_regions=[str(each["name"]) for each in found._WritableLocations],
        multiple_write_regions=bool(found._EnableMultipleWritableLocations),
        consistency=str(policy.get("defaultConsistencyLevel", "Session")),
    )


async def create_container(
    database: DatabaseProxy, name: str, definition: ContainerDefinition
) -> None:
    from azure.cosmos import PartitionKey
    from azure.cosmos.exceptions import CosmosResourceExistsError

    with contextlib.suppress(CosmosResourceExistsError):  # by another process just now
        await database.create_container_if_not_exists(
            name,
            PartitionKey(definition.partition_key),
            indexing_policy=definition.indexing_policy,
            default_ttl=definition.default_ttl,
        )


async def _properties(database: DatabaseProxy, name: str) -> Mapping[str, Any]:
    from azure.cosmos.exceptions import CosmosResourceNotFoundError

    try:
        return await database.get_container_client(name).read()
    except CosmosResourceNotFoundError:
        pass
    raise ContainerMismatchError(
        f"There is no container {name!r} in database {database.id!r}, or this identity may not"
        " see it. Create both with `cosmosservice init` or the Bicep file in deploy/; an identity"
        " of Entra ID cannot create them through the data plane."
    )


def check_container(
    name: str, definition: ContainerDefinition, properties: Mapping[str, Any]
) -> None:
    """Raises for what would break the service, logs what only makes it dearer."""
    paths = list(properties.get("partitionKey", {}).get("paths", []))
    if paths != [definition.partition_key]:
        raise ContainerMismatchError(
            f"Container {name!r} has the partition key {', '.join(paths) or '(none)'}; the service"
            f" needs {definition.partition_key}, which is fixed at creation. Name another"
            " container, or create this one anew."
        )
    for problem in container_advice(definition, properties):
        logger.warning("Container %r: %s", name, problem)


def container_advice(definition: ContainerDefinition, properties: Mapping[str, Any]) -> list[str]:
    """What is not as the service would create it, one sentence each."""
    advice = []
    if properties.get("defaultTtl") is None:
        advice.append(
            "time to live is switched off, so that sessions with a ttl and purged events are"
            " never removed; set its default TTL to -1 (on, no default)."
        )
    policy = properties.get("indexingPolicy", {})
    wanted = definition.indexing_policy
    included = {path["path"] for path in policy.get("includedPaths", [])}
    needed = {path["path"] for path in wanted["includedPaths"]} - {"/id/?"}  # indexed in any case
    if not included >= needed and "/*" not in included:
        advice.append("its indexing policy leaves out paths that queries use.")
    elif "/*" in included:
        advice.append("it indexes every path, which makes each write dearer than it needs to be.")
    if wanted.get("compositeIndexes") and not policy.get("compositeIndexes"):
        advice.append("the composite index for listing sessions is missing.")
    return advice


def _aio(credential: Any) -> Any:
    """Any token credential, as an asynchronous one."""
    get = getattr(credential, "get_token_info", None) or getattr(credential, "get_token", None)
    if get is None:
        raise ConfigurationError(
            "credential is a key (str) or a token credential of azure-core, such as"
            f" azure.identity.DefaultAzureCredential; not a {type(credential).__name__}."
        )
    return credential if inspect.iscoroutinefunction(get) else _ThreadedCredential(credential)


class _ThreadedCredential:
    """A synchronous token credential, asked in a thread."""

    def __init__(self, credential: Any) -> None:
        self._credential = credential

    async def get_token(self, *scopes: str, **options: Any) -> Any:
        return await asyncio.to_thread(self._credential.get_token, *scopes, **options)

    async def close(self) -> None:
        """The credential belongs to the caller."""

    async def __aenter__(self) -> _ThreadedCredential:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
