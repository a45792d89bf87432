"""The raw documents, read and written without the service."""

from __future__ import annotations

from typing import Any

from cosmos_emulator import Emulator
from tests.support.raw import RawContainer, raw_client


def documents_of(
    emulator: Emulator, *, database: str = "adk", container: str = "memories"
) -> list[dict[str, Any]]:
    with raw_client(emulator) as client:
        proxy = client.get_database_client(database).get_container_client(container)
        return RawContainer(proxy, "owner").all()


def memories_of(emulator: Emulator) -> list[str]:
    """The texts of the memories, in the order of their places."""
    found = [each for each in documents_of(emulator) if each["kind"] == "memory"]
    return [each["content"]["parts"][0]["text"] for each in sorted(found, key=lambda d: d["at"])]
