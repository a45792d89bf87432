"""The session store as an account opens it: one on each event loop that needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cosmosservice.sessions.store.documents import EVENTS_CONTAINER, SESSIONS_CONTAINER

if TYPE_CHECKING:
    from cosmosservice.account.connection import Connection
    from cosmosservice.account.settings import Settings
    from cosmosservice.sessions.store.store import SessionStore

# Operations that are about the log; most others are about the sessions container.
_ON_EVENTS = frozenset({"append_event", "iter_events"})


class SessionStores:
    """Names the containers of a session service, and opens its stores."""

    def __init__(self, settings: Settings, *, cache_bytes: int, rebase: bool) -> None:
        self._session_container = settings.session_container
        self._conversation_container = settings.conversation_container
        self._cache_bytes = cache_bytes
        self._rebase = rebase

    async def open(self, connection: Connection) -> SessionStore:
        from cosmosservice.sessions.store.store import SessionStore

        return SessionStore(
            sessions=await connection.container(SESSIONS_CONTAINER, self._session_container),
            events=await connection.container(EVENTS_CONTAINER, self._conversation_container),
            clock=connection.clock,
            cache_bytes=self._cache_bytes,
            rebase=self._rebase,
        )

    def target(self, operation: str) -> str | None:
        if operation == "flush":
            return None
        on_events = operation in _ON_EVENTS
        return self._conversation_container if on_events else self._session_container
