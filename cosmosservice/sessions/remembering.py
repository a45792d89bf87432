"""A memory service to which sessions hand over what is appended to them."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Sequence
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
        app_name: str,
        user_id: str,
        session_id: str,
        events: Sequence[Event],
        *,
        beginning: bool,
        others: bool,
    ) -> int:
        """Adds the events of a session that follow those of the call before, or that `beginning`
        at the first one have been appended so far. `others`: another process may have added some.
        """

    async def erase(self, app_name: str, user_id: str, sessions: Collection[str] | None) -> int:
        """Erases what belongs to these sessions of a user; None: to the user."""


class MemoryKeeper:
    """Takes records to a memory service. Does not hold it, so that it can be dropped with the
    session service: this here lives as long as the connection."""

    def __init__(self, memory: SessionMemory) -> None:
        self._memory = weakref.ref(memory)

    async def keep(
        self, key: SessionKey, records: list[Record], *, beginning: bool, others: bool
    ) -> None:
        memory = self._memory()
        if memory is not None:
            await memory.remember(
                key.app_name,
                key.user_id,
                key.session_id,
                [event_object(record) for record in records],
                beginning=beginning,
                others=others,
            )

    async def erase(self, key: SessionKey) -> None:
        memory = self._memory()
        if memory is not None:
            await memory.erase(key.app_name, key.user_id, [key.session_id])
