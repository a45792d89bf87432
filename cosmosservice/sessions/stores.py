"""How an account opens session stores: one for each event loop that needs it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from cosmosservice.sessions.store.documents import EVENTS_CONTAINER, SESSIONS_CONTAINER

if TYPE_CHECKING:
    from cosmosservice.account.companions import Declaration
    from cosmosservice.account.connection import Connection
    from cosmosservice.account.settings import Settings
    from cosmosservice.sessions.store.held import Incarnations
    from cosmosservice.sessions.store.remembering import Keeper
    from cosmosservice.sessions.store.store import SessionStore

# Operations that the timeout limits. Others take as long as there is work to do.
_BOUNDED = frozenset(
    {"create_session", "get_session", "append_event", "delete_session", "restore_session"}
    | {"get_user_state", "get_session_at", "list_sessions", "count_sessions", "iter_events"}
)
# Operations on the log; most others are on the sessions container.
_ON_EVENTS = frozenset({"append_event", "iter_events", "watch"})


class SessionStores:
    """Names the containers of a session service, and opens its stores."""

    def __init__(
        self,
        settings: Settings,
        *,
        cache_bytes: int,
        rebase: bool,
        incarnations: Incarnations,
        companions: Callable[[], Iterable[Declaration]],
        keeper: Keeper | None = None,
    ) -> None:
        self._session_container = settings.session_container
        self._conversation_container = settings.conversation_container
        self._timeout = settings.timeout
        self._cache_bytes = cache_bytes
        self._rebase = rebase
        self._companions = companions
        self._keeper = keeper
        self._incarnations = incarnations

    async def open(self, connection: Connection) -> SessionStore:
        from cosmosservice.account.companions import Companions
        from cosmosservice.sessions.store.store import SessionStore

        return SessionStore(
            sessions=await connection.container(SESSIONS_CONTAINER, self._session_container),
            events=await connection.container(EVENTS_CONTAINER, self._conversation_container),
            clock=connection.clock,
            erase_remnants=connection.erase_remnants,
            leaves_remnants=connection.leaves_remnants,
            timeout=self._timeout,
            cache_bytes=self._cache_bytes,
            rebase=self._rebase,
            incarnations=self._incarnations,
            companions=Companions(self._companions, connection),
            keeper=self._keeper,
        )

    @property
    def bounded(self) -> Collection[str]:
        return _BOUNDED

    def target(self, operation: str) -> str | None:
        if operation == "flush":
            return None
        on_events = operation in _ON_EVENTS
        return self._conversation_container if on_events else self._session_container
