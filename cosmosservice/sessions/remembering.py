"""The memory service that receives the events appended to sessions."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from google.adk.events.event import Event

from cosmosservice.sessions.session_objects import event_object
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.records import Record


@runtime_checkable
class SessionMemory(Protocol):
    """CosmosMemoryService is one."""

    async def remember(
        self,
        session: SessionKey,
        events: Sequence[Event],
        *,
        incarnation: str | None,
        beginning: bool,
        others: bool,
    ) -> int:
        """Adds events of one incarnation of a session: those after the previous call, or with
        `beginning` all events since the first one. `others`: another process may have added
        some of them."""

    async def erase_session_memories(self, session: SessionKey, incarnation: str) -> int:
        """Erases the memories of one incarnation of a session."""


class MemorySink:
    """Passes records to a memory service. This object lives as long as the connection, and so it
    must not keep the memory service alive, except while there is something to add (`hold`)."""

    def __init__(self, memory: SessionMemory) -> None:
        self._memory = weakref.ref(memory)

    def hold(self) -> object:
        return self._memory()

    async def add(
        self, key: SessionKey, records: list[Record], *, beginning: bool, others: bool
    ) -> None:
        memory = self._memory()
        if memory is not None:
            await memory.remember(
                key,
                [event_object(record) for record in records],
                incarnation=records[0].incarnation,
                beginning=beginning,
                others=others,
            )

    async def erase(self, key: SessionKey, incarnation: str) -> None:
        memory = self._memory()
        if memory is not None:
            await memory.erase_session_memories(key, incarnation)
