"""The service that is measured, and the bare Cosmos SDK as the limit."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from azure.core.pipeline.transport import AioHttpTransport
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient
from google.adk.events.event import Event

from benchmarks.material import APP, USER
from benchmarks.peers import Peer
from cosmos_emulator import Emulator
from cosmosservice import CosmosSessionService
from cosmosservice.account.charges import RequestCharge
from cosmosservice.account.definitions import ContainerDefinition
from cosmosservice.account.transport import Transport
from cosmosservice.data_converters import event_to_fields
from cosmosservice.sessions.store.documents import (
    EVENT,
    EVENTS_CONTAINER,
    SESSIONS_CONTAINER,
    log_document,
)
from cosmosservice.sessions.store.keys import Marker, SessionKey

# The emulator's well-known key, which Microsoft publishes.
KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
NUMBERS = itertools.count()  # of documents, across all clients
EVERYTHING = {"indexingMode": "consistent", "includedPaths": [{"path": "/*"}]}


def service(port: int, **options: Any) -> CosmosSessionService:
    return CosmosSessionService(
        endpoint=f"http://127.0.0.1:{port}/", credential=KEY, database="bench", **options
    )


class Cosmos(Peer):
    """Our service, as ADK uses it, or in a block (`async with`). Keeps the charge of every
    request."""

    service: CosmosSessionService

    def __init__(
        self, label: str, port: int | None = None, *, block: bool = False, **options: Any
    ) -> None:
        super().__init__(label, port)
        self.block = block
        self.charges: list[RequestCharge] = []
        self.options = options | {"on_request_charge": self.charges.append}

    async def close(self) -> None:
        await self.service.close()

    async def drain(self) -> None:
        await self.service.flush()

    async def connect(self) -> None:
        if self.block:
            await self.service.__aenter__()  # close() exits it
        await self.service.get_session(app_name="none", user_id=USER, session_id="none")

    def spent(self) -> float:
        """Request units since the last call."""
        units = sum(charge.request_units for charge in self.charges)
        self.charges.clear()
        return units


class OverHttp(Cosmos):
    """Another instance writes the past of sessions, without the proxy. This one has not seen
    them."""

    store = "emulator"

    def __init__(self, label: str, port: int, direct: int, **options: Any) -> None:
        super().__init__(label, port, **options)
        self.direct = direct

    async def open(self) -> None:
        assert self.port is not None
        self.service = service(self.port, **self.options)
        self.seeder = service(self.direct)
        self.client = over_http(self.direct)
        await self.client.__aenter__()
        await self.connect()

    async def close(self) -> None:
        await super().close()
        await self.seeder.close()
        await self.client.close()

    async def seed(self, session_id: str, events: Sequence[Event]) -> None:
        await write_past(self.seeder, self.client, "bench", session_id, events)

    async def seed_sessions(self, user_id: str, session_ids: Sequence[str]) -> None:
        for session_id in session_ids:
            await self.seeder.create_session(app_name=APP, user_id=user_id, session_id=session_id)


class InProcess(Cosmos):
    """The emulator below the SDK, in this process: no socket, no server."""

    def __init__(
        self, label: str, latency: float = 0, *, path: str = ":memory:", **options: Any
    ) -> None:
        super().__init__(label, **options)
        self.latency, self.path = latency, path

    async def open(self) -> None:
        self.emulator = Emulator(self.path)
        self.service = CosmosSessionService.embedded(self.emulator, **self.options)
        self.client = in_process(self.emulator)
        await self.client.__aenter__()
        await self.connect()
        self.emulator.faults.latency = self.latency

    async def close(self) -> None:
        await super().close()
        await self.client.close()
        self.emulator.close()

    async def seed(self, session_id: str, events: Sequence[Event]) -> None:
        await write_past(self.service, self.client, "adk", session_id, events)

    async def stored(self, container: str) -> list[dict[str, Any]]:
        """The service's documents in a container, without the properties that Cosmos DB adds."""
        found = self.client.get_database_client("adk").get_container_client(container)
        return [
            {name: value for name, value in item.items() if not name.startswith("_")}
            async for item in found.read_all_items()
        ]


async def write_past(
    service: CosmosSessionService,
    client: CosmosClient,
    database: str,
    session_id: str,
    events: Sequence[Event],
) -> None:
    """Writes the documents that appends would have created, a hundred at a time."""
    session = await service.create_session(app_name=APP, user_id=USER, session_id=session_id)
    key = SessionKey.of(APP, USER, session_id)
    marker = Marker.parse(session._storage_update_marker, key)
    assert marker is not None
    documents = [
        log_document(
            key,
            kind=EVENT,
            incarnation=marker.incarnation,
            seq=seq,
            stamp=int(event.timestamp * 1e6),
            fields=event_to_fields(event),
        )
        for seq, event in enumerate(events, marker.seq + 1)
    ]
    container = client.get_database_client(database).get_container_client("events")
    for start in range(0, len(documents), 100):
        batch = [("create", (document,)) for document in documents[start : start + 100]]
        await container.execute_item_batch(batch, session_id)
    # The next reader brings the session document up to date.
    read = await service.get_session(app_name=APP, user_id=USER, session_id=session_id)
    assert read is not None
    assert len(read.events) == len(events)
    await service.flush()


def over_http(port: int, *, as_it_comes: bool = False) -> CosmosClient:
    """A client with the service's transport, or with the SDK's default one (`as_it_comes`)."""
    return CosmosClient(
        f"http://127.0.0.1:{port}/",
        credential=KEY,
        enable_endpoint_discovery=False,
        transport=AioHttpTransport() if as_it_comes else Transport(),
    )


def in_process(emulator: Emulator) -> CosmosClient:
    return CosmosClient(
        emulator.endpoint,
        credential=emulator.key,
        transport=emulator.async_transport(),
        enable_endpoint_discovery=False,
    )


class Bare:
    """The SDK with the service's settings and equivalent containers, on this loop."""

    def __init__(self, client: CosmosClient, port: int | None = None) -> None:
        self.client = client
        self.port = port
        self.units = 0.0
        self.events: ContainerProxy
        self.sessions: ContainerProxy

    async def open(self) -> None:
        await self.client.__aenter__()
        self.database = await self.client.create_database_if_not_exists("bare")
        self.events = await self.container("events", EVENTS_CONTAINER)
        self.sessions = await self.container("sessions", SESSIONS_CONTAINER)

    async def container(
        self, name: str, definition: ContainerDefinition, policy: dict[str, Any] | None = None
    ) -> ContainerProxy:
        return await self.database.create_container_if_not_exists(
            name,
            PartitionKey(definition.partition_key),
            indexing_policy=policy or definition.indexing_policy,
            default_ttl=definition.default_ttl,
        )

    async def close(self) -> None:
        await self.client.close()

    def charge(self, headers: Mapping[str, str], _: object) -> None:
        """A response hook that adds up request units."""
        self.units += float(headers["x-ms-request-charge"])

    async def create(
        self, document: dict[str, Any], container: ContainerProxy | None = None
    ) -> None:
        """Creates a document of this size under an unused id of the same length."""
        document["id"] = document["id"][:-9] + f"{next(NUMBERS):09}"
        into = container or self.events
        await into.create_item(document, no_response=True, response_hook=self.charge)
