"""Helpers that make sessions, and the stores of memories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.adk.events import Event
from google.adk.memory import BaseMemoryService, InMemoryMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session

from tests.support.adk import event

USER = "ann"


def session(
    *said: str | Event, app: str = "app", user: str = USER, id: str = "s", author: str = "user"
) -> Session:
    """A session with these texts by `author`."""
    events = [each if isinstance(each, Event) else event(each, author=author) for each in said]
    return Session(app_name=app, user_id=user, id=id, events=events)


def conversation(*said: str, **names: str) -> Session:
    """The agent and the user in turn, the agent first."""
    events = [event(text, author="user" if at % 2 else "assistant") for at, text in enumerate(said)]
    return session(*events, **names)


def texts(memories: Sequence[MemoryEntry]) -> list[str]:
    return ["".join(part.text or "" for part in memory.content.parts or []) for memory in memories]


async def found(
    service: BaseMemoryService, query: str, *, app: str = "app", user: str = USER, **options: Any
) -> list[MemoryEntry]:
    response = await service.search_memory(app_name=app, user_id=user, query=query, **options)
    return response.memories


async def found_texts(service: BaseMemoryService, query: str, **options: Any) -> list[str]:
    return texts(await found(service, query, **options))


class AdkStore:
    """ADK's own service. It shares no data, so `open` returns the same one each time."""

    def __init__(self) -> None:
        self._service = InMemoryMemoryService()

    def open(self, **options: Any) -> BaseMemoryService:
        assert not options, "ADK's service has no options"
        return self._service

    async def close(self) -> None:
        pass
