"""Copies memories from ADK's SQLite file or from another store of this service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, Protocol

from google.adk.events import Event
from google.genai import types

from cosmosservice import CosmosMemoryService
from cosmosservice.account.container import Document
from cosmosservice.account.files import rows_of
from cosmosservice.cli.reports import TO_COPY, Copies
from cosmosservice.hosting.operation import Background
from cosmosservice.memory import copying
from cosmosservice.memory.documents import MEMORY, Owner
from cosmosservice.memory.store import MemoryStore

_NO_SESSION = "__unknown_session_id__"  # what ADK's service calls it
_ROWS = (
    "SELECT app_name, user_id, session_id, event_id, author, timestamp, content_json"
    " FROM memory_events ORDER BY id"
)

Work = Callable[[MemoryStore], Coroutine[Any, Any, copying.Outcomes]]
BySession = dict[str | None, list[Event]]


class MemorySource(Protocol):
    """Memories that can be copied."""

    def portions(self, apps: Sequence[str]) -> AsyncIterator[tuple[int, Work]]:
        """For each user, the number of memories and a function that copies them."""
        ...


class MemoryFile:
    """A file of ADK's SqliteMemoryService: its rows, which are events."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def portions(self, apps: Sequence[str]) -> AsyncIterator[tuple[int, Work]]:
        for owner, sessions in self._by_owner(apps).items():
            yield sum(map(len, sessions.values())), _events_of(owner, sessions)

    def _by_owner(self, apps: Sequence[str]) -> dict[Owner, BySession]:
        found: dict[Owner, BySession] = {}
        for app_name, user_id, session, event_id, author, at, content in rows_of(self._path, _ROWS):
            if apps and app_name not in apps:
                continue
            event = Event(
                id=event_id,
                author=author,
                timestamp=at,
                content=types.Content.model_validate_json(content),
            )
            sessions = found.setdefault(Owner.of(app_name, user_id), {})
            sessions.setdefault(None if session == _NO_SESSION else session, []).append(event)
        return found


class CosmosMemories:
    """Another store of this service. Its documents are copied unchanged, without vectors."""

    def __init__(self, service: CosmosMemoryService) -> None:
        self._service = service

    async def look(self) -> None:
        """Raises ContainerMismatchError if there is no container."""
        await self._owners([""])

    async def portions(self, apps: Sequence[str]) -> AsyncIterator[tuple[int, Work]]:
        for owner in await self._owners(apps):
            found = await self._service.in_store(Background("migrate"), _reading(owner))
            yield sum(each.get("kind") == MEMORY for each in found), documents_of(found)

    async def _owners(self, apps: Sequence[str]) -> list[str]:
        return await self._service.in_store(
            Background("migrate"), lambda store: copying.owners_in(store.container, apps)
        )


async def copy_memories(
    source: MemorySource, target: CosmosMemoryService | None, apps: Sequence[str], copies: Copies
) -> None:
    async for count, work in source.portions(apps):
        if target is None:
            copies.outcomes[TO_COPY] += count
        else:
            copies.outcomes.update(await target.in_store(Background("migrate"), work))
    for wrong in (copying.DIFFERENT, copying.LOST):
        if copies.outcomes[wrong]:
            copies.problems.append(f"memories: {copies.outcomes[wrong]:,} are {wrong}")


def _reading(owner: str) -> Callable[[MemoryStore], Coroutine[Any, Any, list[Document]]]:
    return lambda store: copying.documents_in(store.container, owner)


def _events_of(owner: Owner, sessions: BySession) -> Work:
    return lambda store: copying.put_events(store, owner, sessions)


def documents_of(found: Sequence[Document]) -> Work:
    return lambda store: copying.put_documents(store, found)
