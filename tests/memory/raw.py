"""The raw documents, read and written without the service."""

from __future__ import annotations

from typing import Any

from cosmos_emulator import Emulator
from tests.support.cosmos import Cosmos
from tests.support.raw import RawContainer, raw_client


def documents_of(
    store: Emulator | Cosmos, *, database: str = "adk", container: str = "memories"
) -> list[dict[str, Any]]:
    if isinstance(store, Cosmos):
        return store.documents("memory_container").all()
    with raw_client(store) as client:
        proxy = client.get_database_client(database).get_container_client(container)
        return RawContainer(proxy, "owner").all()


def memories_of(store: Emulator | Cosmos) -> list[str]:
    """The texts of the memories, in the order in which they were added."""
    found = [each for each in documents_of(store) if each["kind"] == "memory"]
    return [each["content"]["parts"][0]["text"] for each in sorted(found, key=lambda d: d["at"])]
