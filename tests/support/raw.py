"""Raw documents, read and written without the service, to inspect or damage them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from azure.cosmos import ContainerProxy, CosmosClient

from cosmos_emulator import Emulator

if TYPE_CHECKING:
    from tests.support.cosmos import Cosmos

Document = dict[str, Any]

PARTITION = {"events": "session_id", "sessions": "user_id"}


class RawContainer:
    """One container of the service, accessed with the plain SDK."""

    def __init__(self, proxy: ContainerProxy, partition: str) -> None:
        self._proxy = proxy
        self._partition = partition

    def all(self, **having: Any) -> list[Document]:
        """Every document with these values, in the order of their ids."""
        chosen = [body for body in self._query() if having.items() <= body.items()]
        return sorted(chosen, key=lambda body: str(body["id"]))

    def _query(self) -> list[Document]:
        text = "SELECT * FROM c"
        while True:
            # The synchronous SDK refreshes its account on a thread. That thread may write into the
            # headers while they are copied here.
            with contextlib.suppress(RuntimeError):
                return list(self._proxy.query_items(text, enable_cross_partition_query=True))

    def one(self, **having: Any) -> Document:
        (found,) = self.all(**having)
        return found

    def put(self, body: Document) -> None:
        self._proxy.upsert_item(body)

    def remove(self, body: Document) -> None:
        self._proxy.delete_item(body["id"], body[self._partition])


class Raw:
    """Both containers of sessions."""

    def __init__(self, events: ContainerProxy, sessions: ContainerProxy) -> None:
        self.events = RawContainer(events, PARTITION["events"])
        self.sessions = RawContainer(sessions, PARTITION["sessions"])

    def everything(self) -> list[Document]:
        return self.events.all() + self.sessions.all()

    def contains(self, text: str) -> bool:
        """Whether a document of either container has this text in a key, a value or a chunk."""
        return any(text in str(body) for body in self.everything())


def raw_client(emulator: Emulator) -> CosmosClient:
    """Uses the emulator's own transport, so that injected faults do not reach its requests."""
    return CosmosClient(
        emulator.endpoint,
        credential=emulator.key,
        transport=emulator.transport(),
        enable_endpoint_discovery=False,
    )


@contextlib.contextmanager
def raw_store(store: Emulator | Cosmos, database: str = "adk") -> Iterator[Raw]:
    """Of a test's store, or of an emulator with the names of the default settings."""
    if not isinstance(store, Emulator):
        yield store.raw()
        return
    with raw_client(store) as client:
        proxy = client.get_database_client(database)
        yield Raw(proxy.get_container_client("events"), proxy.get_container_client("sessions"))
