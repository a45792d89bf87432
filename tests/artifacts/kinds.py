"""The artifact services that run the contract, and which parts of it each one claims.

A store opens any number of services on the same data, like several processes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.adk.artifacts import FileArtifactService, InMemoryArtifactService
from google.genai import types

from cosmosservice.artifacts.stores import Sizes
from tests.support.adk import ADK
from tests.support.stores import cosmos_kinds, on_endpoint

MODERN = "modern"
"""What ADK's own services do since 2.x; ours does it on every version."""

REFERENCES = "references"
"""Parts that are URIs, and references to other artifacts: a FileArtifactService refuses them."""

EXACT = "exact"
"""Every field of a part comes back as it was saved, names are any text, lists are sorted."""

DURABLE = "durable"
"""Several processes, versions without gaps, values of any size."""

EVERYTHING = MODERN, REFERENCES, EXACT, DURABLE

# A thousandth of the real sizes: the same requests, with less data.
SMALL = Sizes(header=16, inline=256, piece=384, blob_piece=1024)


@dataclass(frozen=True)
class Kind:
    name: str
    claims: frozenset[str]


class Store:
    """Where artifacts are kept. `open()` is one more process."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        self._opened: list[Any] = []

    def open(self, **options: Any) -> Any:
        service = self._make(**options)
        self._opened.append(service)
        return service

    async def close(self) -> None:
        for service in self._opened:
            if hasattr(service, "close"):
                await service.close()


def kinds() -> list[Kind]:
    modern = {MODERN} if ADK >= (2, 13) else set()
    ours = [Kind(name, frozenset(EVERYTHING)) for name in cosmos_kinds("small")]
    if on_endpoint():
        return [*ours, Kind("small", frozenset(EVERYTHING))]
    return [
        Kind("in_memory", frozenset(modern | {REFERENCES, EXACT})),
        Kind("file", frozenset(modern)),
        *ours,
    ]


def memory_store() -> Store:
    only = InMemoryArtifactService()
    return Store(lambda: only)


def file_store(folder: Path) -> Store:
    return Store(lambda: FileArtifactService(root_dir=folder))


def blob(data: bytes, mime_type: str = "image/png", **fields: Any) -> types.Part:
    return types.Part(inline_data=types.Blob(data=data, mime_type=mime_type, **fields))


def text(value: str) -> types.Part:
    return types.Part(text=value)


def refer(uri: str) -> types.Part:
    return types.Part(file_data=types.FileData(file_uri=uri))
