"""The stores that the suites run on, and what each store claims.

A store opens any number of services on the same data. What one writes, another reads. So a test can
look at a session as a second process would.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from google.adk.sessions import BaseSessionService, InMemorySessionService

from tests.support.adk import ADK
from tests.support.cosmos import Endpoint

MODERN = "modern"
"""Behaviour that ADK's own in-memory service has since 2.x; ours has it on every version."""

DURABLE = "durable"
"""What only a store can do: several objects of one session, conflicts, survival, exact values."""


class Store(Protocol):
    """Where sessions are kept."""

    def open(self, **options: Any) -> BaseSessionService:
        """A service on this store."""

    async def close(self) -> None:
        """Closes every service that was opened."""


class MemoryStore:
    """ADK's own service. It shares no data, so `open` returns the same one each time."""

    def __init__(self) -> None:
        self._service = InMemorySessionService()

    def open(self, **options: Any) -> BaseSessionService:
        assert not options, "ADK's service has no options"
        return self._service

    async def close(self) -> None:
        pass


class CosmosStore:
    """Our service. `connect(**options)` makes one more service on the same data."""

    def __init__(self, connect: Callable[..., Any]) -> None:
        self._connect = connect
        self._opened: list[Any] = []

    def open(self, **options: Any) -> Any:
        service = self._connect(**options)
        self._opened.append(service)
        return service

    async def close(self) -> None:
        for service in self._opened:
            await service.close()


@dataclass(frozen=True)
class Kind:
    """A named kind of store."""

    name: str
    claims: frozenset[str]


def kinds() -> list[Kind]:
    """Every kind of store that is available here."""
    ours = [Kind(name, frozenset({MODERN, DURABLE})) for name in cosmos_kinds("block")]
    if on_endpoint():
        return ours
    return [Kind("in_memory", frozenset({MODERN} if ADK >= (2, 13) else ())), *ours]


def on_endpoint() -> bool:
    return Endpoint.from_environment() is not None


def cosmos_kinds(*more: str) -> list[str]:
    """The ways to reach Cosmos DB. In a run on an endpoint there is one."""
    return ["endpoint"] if on_endpoint() else ["embedded", *more, "http"]


def opened_store(service: Any) -> Any:
    """What a service keeps on its I/O thread, for inspection."""
    resources = service.account.executor.current.resources
    return resources.store_of(service._stores).opened.value
