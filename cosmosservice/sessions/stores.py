"""How an account opens session stores: one for each event loop that needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cosmosservice.sessions.store.documents import EVENTS_CONTAINER, SESSIONS_CONTAINER

if TYPE_CHECKING:
    from cosmosservice.account.connection import Connection
    from cosmosservice.account.settings import Settings
    from cosmosservice.sessions.store.parts import StoreOptions
    from cosmosservice.sessions.store.store import SessionStore

# Operations on the log; most others are on the sessions container.
_ON_EVENTS = frozenset({"append_event", "iter_events", "watch"})


class SessionStores:
    """Names the containers of a session service, and opens its stores."""

    def __init__(self, settings: Settings, options: StoreOptions) -> None:
        self._session_container = settings.session_container
        self._conversation_container = settings.conversation_container
        self._options = options

    async def open(self, connection: Connection) -> SessionStore:
        from cosmosservice.sessions.store.store import SessionStore

        sessions = await connection.container(SESSIONS_CONTAINER, self._session_container)
        events = await connection.container(EVENTS_CONTAINER, self._conversation_container)
        return SessionStore(sessions, events, connection, self._options)

    def target(self, operation: str) -> str | None:
        if operation == "flush":
            return None
        on_events = operation in _ON_EVENTS
        return self._conversation_container if on_events else self._session_container
