"""A Cosmos DB for one test, which says what it has: the embedded emulator, or any endpoint.

    COSMOS_TEST_ENDPOINT   run on this account, instead of an embedded emulator for each test
    COSMOS_TEST_KEY        its key (default: the public key of emulators)
    COSMOS_TEST_LIKE       what kind of account it is, see LACKS (default: "endpoint")

On an endpoint, a run has one database with a random name, and each test its own containers in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest import mock
from urllib.parse import urlsplit

from azure.cosmos import ContainerProxy, CosmosClient
from azure.cosmos.exceptions import CosmosHttpResponseError, CosmosResourceNotFoundError
from dotenv import dotenv_values, find_dotenv

from cosmos_emulator.auth import EMULATOR_KEY
from cosmos_emulator.serving import serving
from tests.support.raw import Raw, RawContainer, raw_client

if TYPE_CHECKING:
    from cosmos_emulator import Emulator

ENDPOINT, KEY, LIKE = "COSMOS_TEST_ENDPOINT", "COSMOS_TEST_KEY", "COSMOS_TEST_LIKE"
DATABASE = "COSMOS_TEST_DATABASE"  # set by the run, for its workers

# The settings that name containers, and the names that they have by default.
CONTAINERS = {
    "session_container": "sessions",
    "conversation_container": "events",
    "memory_container": "memories",
    "artifact_container": "artifacts",
}

# What a test may need, besides a store: @pytest.mark.needs("faults").
NEEDS = {
    "emulator": "the emulator itself: faults, request log, clock, replicas, files",
    "faults": "answers that fail on request",
    "requests": "a log of the requests",
    "clock": "time that can be moved",
    "lag": "replicas that lag on request",
    "charges": "request units",
    "vectors": "vector search",
    "conditional batches": "If-Match that is checked inside a transaction",
    "order": "objects whose keys stay in their order",
}

_OUTSIDE = {
    "emulator": "an endpoint cannot be looked into",
    "faults": "an endpoint does not fail on request",
    "requests": "an endpoint shows no log of its requests",
    "clock": "an endpoint's time cannot be moved",
    "lag": "an endpoint's replicas cannot be held",
}
# What the kinds of account lack, and why.
LACKS: dict[str, dict[str, str]] = {
    "embedded": {},
    "endpoint": _OUTSIDE,
    # Vectors need a capability of the account, and containers with their own throughput.
    "azure": _OUTSIDE | {"vectors": "a database with shared throughput has no vectors"},
    # Microsoft's container; the numbers are issues of Azure/azure-cosmos-db-emulator-docker.
    "vnext": _OUTSIDE
    | {
        "charges": "the container charges 1 for everything (recorded)",
        "vectors": "the container has no vector search (#162)",
        "conditional batches": "the container ignores If-Match inside a batch (#302)",
        "order": "the container sorts the keys of objects (recorded)",
    },
}


@dataclass(frozen=True)
class Endpoint:
    """An account outside of this process."""

    url: str
    key: str
    like: str

    @classmethod
    def from_environment(cls) -> Endpoint | None:
        if not (url := os.environ.get(ENDPOINT)):
            return None
        like = os.environ.get(LIKE) or "endpoint"
        if like not in LACKS:
            raise ValueError(f"{LIKE} is {like!r}; it must be one of {', '.join(sorted(LACKS))}")
        return cls(url, os.environ.get(KEY) or EMULATOR_KEY, like)

    @property
    def local(self) -> bool:
        return urlsplit(self.url).hostname in ("localhost", "127.0.0.1", "::1")

    @contextlib.contextmanager
    def client(self) -> Iterator[CosmosClient]:
        with CosmosClient(self.url, self.key, enable_endpoint_discovery=not self.local) as client:
            try:
                yield client
            finally:  # what it still checks in the background would fail, and log a traceback
                manager = client.client_connection._global_endpoint_manager
                if manager._refresh_thread is not None:
                    manager._refresh_thread.join(timeout=10)

    def create_database(self, name: str) -> None:
        """On Azure it is one database with throughput for all its containers: the cheapest that
        there is, unless the account is serverless."""
        with self.client() as client:
            try:
                options = {} if self.local else {"offer_throughput": 1_000}
                client.create_database(name, **options)
            except CosmosHttpResponseError as error:
                if self.local or error.status_code != 400:
                    raise
                client.create_database(name)

    def drop_database(self, name: str) -> None:
        with self.client() as client, contextlib.suppress(CosmosResourceNotFoundError):
            client.delete_database(name)


def forget_settings() -> None:
    """Takes COSMOSDB_* out of the environment of the tests, which name their stores themselves. An
    empty variable stands for one that a `.env` sets, here or in a folder above."""
    for name in [name for name in os.environ if name.startswith("COSMOSDB_")]:
        del os.environ[name]
    for name in dotenv_values(find_dotenv(usecwd=True)):
        if name.startswith("COSMOSDB_"):
            os.environ[name] = ""


def new_database() -> str:
    return f"cosmosservice-test-{uuid.uuid4().hex[:12]}"


@dataclass
class Cosmos:
    """The store of one test. What it opens, `close` closes."""

    like: str
    connection: Mapping[str, Any]  # arguments of services: the account and the database
    client: Callable[[], AbstractContextManager[CosmosClient]]
    database: str = "adk"
    names: Mapping[str, str] = field(default_factory=lambda: dict(CONTAINERS))
    emulator: Emulator | None = None

    def __post_init__(self) -> None:
        self._opened: list[Any] = []
        self._stack = contextlib.ExitStack()
        self._client: CosmosClient | None = None

    @property
    def lacks(self) -> Mapping[str, str]:
        return LACKS[self.like]

    # --- services: each call is one more process, as far as the store can tell

    def sessions(self, **options: Any) -> Any:
        from cosmosservice import CosmosSessionService

        return self._open(CosmosSessionService, options, "session", "conversation")

    def memory(self, **options: Any) -> Any:
        from cosmosservice import CosmosMemoryService

        return self._open(CosmosMemoryService, options, "memory")

    def artifacts(self, **options: Any) -> Any:
        from cosmosservice import CosmosArtifactService

        return self._open(CosmosArtifactService, options, "artifact")

    def account(self, **options: Any) -> Any:
        """One account for several services."""
        from cosmosservice import CosmosAccount
        from cosmosservice.account.settings import Settings

        given = dict(self.connection)
        settings = Settings(endpoint=given.pop("endpoint"), database=self.database, **self.names)
        given.pop("database", None)
        return self._keep(CosmosAccount(_settings=settings, **given | options))

    def _open(self, make: Callable[..., Any], options: dict[str, Any], *kinds: str) -> Any:
        if "account" in options:
            return self._keep(make(**options))
        names = {f"{kind}_container": self.names[f"{kind}_container"] for kind in kinds}
        with self._others_named(kinds):
            return self._keep(make(**self.connection | names | options))

    @contextlib.contextmanager
    def _others_named(self, kinds: Collection[str]) -> Iterator[None]:
        """The containers of the services that are not made too: a session service finds there what
        it erases, and must not look into those of other tests."""
        others = {
            f"COSMOSDB_{setting.upper()}": name
            for setting, name in self.names.items()
            if setting.removesuffix("_container") not in kinds and name != CONTAINERS[setting]
        }
        with mock.patch.dict(os.environ, others):
            yield

    def _keep(self, opened: Any) -> Any:
        self._opened.append(opened)
        return opened

    # --- documents, read and written without a service

    def container(self, setting: str) -> ContainerProxy:
        """With the plain SDK; `setting` is "conversation_container" or one of its siblings."""
        if self._client is None:
            self._client = self._stack.enter_context(self.client())
        database = self._client.get_database_client(self.database)
        return database.get_container_client(self.names[setting])

    def documents(self, setting: str, partition: str = "owner") -> RawContainer:
        return RawContainer(self.container(setting), partition)

    def raw(self) -> Raw:
        """The containers of sessions."""
        return Raw(self.container("conversation_container"), self.container("session_container"))

    # --- other processes

    def environment(self) -> dict[str, str]:
        """`COSMOSDB_*` for a process that uses this store. The emulator is served for it."""
        url, key = self.connection["endpoint"], self.connection.get("credential", EMULATOR_KEY)
        if self.emulator is not None:
            url = self._stack.enter_context(serving(self.emulator, patience=10))
        names = {f"COSMOSDB_{name.upper()}": value for name, value in self.names.items()}
        return {
            "COSMOSDB_ENDPOINT": url,
            "COSMOSDB_KEY": key,
            "COSMOSDB_DATABASE": self.database,
            **names,
        }

    async def close(self) -> None:
        for opened in self._opened:
            await opened.close()
        self._opened.clear()

    def drop(self) -> None:
        """Closes everything, and removes the containers if they are this test's alone."""
        try:
            if self._opened:  # in a thread: the test's plugin may keep an event loop for this one
                closing = threading.Thread(target=lambda: asyncio.run(self.close()))
                closing.start()
                closing.join()
            if self.emulator is None and self.names != CONTAINERS:
                self.container("session_container")
                assert self._client is not None
                database = self._client.get_database_client(self.database)
                for name in self.names.values():
                    with contextlib.suppress(CosmosResourceNotFoundError):
                        database.delete_container(name)
        finally:
            self._stack.close()


def account_on(store: Cosmos | Emulator) -> Any:
    """One account for several services, on a test's store or on an emulator."""
    from cosmosservice import CosmosAccount

    return store.account() if isinstance(store, Cosmos) else CosmosAccount.embedded(store)


@contextlib.contextmanager
def embedded(emulator: Emulator) -> Iterator[Cosmos]:
    """The test's own emulator, in process."""
    cosmos = Cosmos(
        "embedded",
        {"endpoint": "embedded::memory:", "_emulator": emulator},
        partial(raw_client, emulator),
        emulator=emulator,
    )
    try:
        yield cosmos
    finally:
        cosmos.drop()


@contextlib.contextmanager
def outside(endpoint: Endpoint, *, own: bool = True) -> Iterator[Cosmos]:
    """An account outside: with containers of this test's own, or with those that tests share."""
    mark = uuid.uuid4().hex[:8]
    database = os.environ[DATABASE]
    cosmos = Cosmos(
        endpoint.like,
        {"endpoint": endpoint.url, "credential": endpoint.key, "database": database},
        endpoint.client,
        database,
        {setting: f"{name}-{mark}" if own else name for setting, name in CONTAINERS.items()},
    )
    try:
        yield cosmos
    finally:
        cosmos.drop()
