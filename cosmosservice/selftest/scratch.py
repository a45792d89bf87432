"""Where the self-test works: a database of its own, or names of its own in the given one."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from cosmosservice.account.account import CosmosAccount
from cosmosservice.account.charges import RequestCharge
from cosmosservice.account.connection import Connection
from cosmosservice.account.options import ConnectionOptions
from cosmosservice.account.settings import PREFIX, Settings
from cosmosservice.artifacts.keys import Scope
from cosmosservice.containers import CONTAINERS
from cosmosservice.cosmos_artifact_service import CosmosArtifactService
from cosmosservice.cosmos_memory_service import CosmosMemoryService
from cosmosservice.cosmos_session_service import CosmosSessionService
from cosmosservice.errors import AuthenticationError
from cosmosservice.memory.documents import Owner
from cosmosservice.sessions.store.keys import StateKey

THROUGHPUT = 1_000  # RU/s of a scratch database on a provisioned account, for all containers


class Client:
    """The three services on a connection of their own, as another instance of an agent has them."""

    def __init__(self, account: CosmosAccount) -> None:
        self.account = account
        self.sessions = CosmosSessionService(account=account)
        self.memory = CosmosMemoryService(account=account)
        self.artifacts = CosmosArtifactService(account=account)


class Meter:
    """Counts the request units of operations."""

    def __init__(self) -> None:
        self.units = 0.0

    def __call__(self, charge: RequestCharge) -> None:
        self.units += charge.request_units


class Scratch:
    """Names that nobody else uses, clients, and all documents that mention those names."""

    def __init__(self, settings: Settings, *, in_place: bool) -> None:
        self.mark = f"selftest-{secrets.token_hex(6)}"
        self.in_place = in_place
        self._sessions: set[str] = set()
        self._made_none = False
        self.folder: tempfile.TemporaryDirectory[str] | None = None
        update: dict[str, Any] = {} if in_place else {"database": self.mark}
        if settings.embedded_path == ":memory:":  # several processes must see it
            self.folder = tempfile.TemporaryDirectory(prefix="cosmosservice-")
            update["endpoint"] = f"embedded:{Path(self.folder.name) / 'selftest.db'}"
        self.settings = settings.model_copy(update=update)

    @property
    def who(self) -> dict[str, Any]:
        return {"app_name": self.mark, "user_id": self.users[0]}

    @property
    def users(self) -> list[str]:
        return [f"{self.mark}-{name}" for name in ("ada", "bob")]

    def session(self, name: str) -> dict[str, Any]:
        session_id = f"{self.mark}-{name}"
        self._sessions.add(session_id)
        return self.who | {"session_id": session_id}

    @property
    def environment(self) -> dict[str, str]:
        """For another process: the same store. The key is passed here and not as an argument."""
        found = {k: v for k, v in os.environ.items() if not k.startswith(PREFIX)}
        for name in type(self.settings).model_fields:
            value = getattr(self.settings, name)
            if value is not None:
                text = value.get_secret_value() if hasattr(value, "get_secret_value") else value
                found[PREFIX + name.upper()] = str(text)
        return found

    @asynccontextmanager
    async def client(
        self, meter: Meter | None = None, timeout: float | None = None
    ) -> AsyncIterator[Client]:
        key = self.settings.key
        account = CosmosAccount(
            endpoint=self.settings.endpoint,
            credential=None if key is None else key.get_secret_value(),
            database=self.settings.database,
            timeout=timeout or self.settings.timeout,
            on_request_charge=meter,
        )
        async with account:
            yield Client(account)

    async def prepare(self) -> None:
        """Creates the database, unless it is there or costs nothing."""
        if self.in_place or self.settings.embedded_path is not None:
            return
        try:
            async with self._connection() as connection:
                await connection.create_shared_database(THROUGHPUT)
        except AuthenticationError:
            self._made_none = True
            raise

    async def documents(self) -> list[dict[str, Any]]:
        """Everything in the four containers that mentions the names of this run. In a database
        that others use, only the partitions of these names are read."""
        found: list[dict[str, Any]] = []
        async with self._connection() as connection:
            for definition in CONTAINERS:
                name = definition.name(self.settings)
                container = await connection.existing_container(definition, name)
                if container is None:
                    continue
                await container.probe_everywhere()
                partitions = self._partitions[definition.setting] if self.in_place else [None]
                for partition in partitions:
                    every = await container.query("SELECT * FROM c", {}, partition)
                    found += [each for each in every if self.mark in repr(each)]
        return found

    @property
    def _partitions(self) -> dict[str, list[str]]:
        """By the setting that names their container."""
        scopes = [
            Scope.named(self.mark, user, session)
            for user in self.users
            for session in (None, *self._sessions)
        ]
        return {
            "session_container": [*self.users, StateKey.of_app(self.mark).user_id],
            "conversation_container": [*self._sessions],
            "memory_container": [Owner.of(self.mark, user).key for user in self.users],
            "artifact_container": [each.partition for each in scopes],
        }

    async def remove(self) -> None:
        """The database, or what was stored under names of this run."""
        if self.in_place:
            async with self.client() as client:
                for user in self.users:
                    await client.sessions.purge_user(
                        app_name=self.mark, user_id=user, include_state=True
                    )
        elif not self._made_none:
            async with self._connection() as connection:
                await connection.drop_database()
        if self.folder is not None:
            self.folder.cleanup()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        options = ConnectionOptions(ensure="never", allow_multiple_write_regions=True)
        connection = await Connection.open(self.settings, options, _Nobody())
        async with AsyncExitStack() as stack:
            stack.push_async_callback(connection.close)
            yield connection


class _Nobody:
    def request(self, charge: RequestCharge, seconds: float) -> None:
        """Nobody looks at the requests of a scan."""
