"""The current incarnation of a session, for services that name a session by its id only."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Protocol

from cosmosservice.account.container import Container
from cosmosservice.account.failures import NotFound
from cosmosservice.errors import InvalidIdError
from cosmosservice.sessions.store.documents import (
    EVENTS_CONTAINER,
    PURGED,
    PURGING,
    SESSIONS_CONTAINER,
)
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.queries import INCARNATIONS_WITH_EVENTS

if TYPE_CHECKING:
    from cosmosservice.account.connection import Connection
    from cosmosservice.account.settings import Settings


class _User(Protocol):
    @property
    def app_name(self) -> str: ...

    @property
    def user_id(self) -> str: ...


class Incarnations:
    """Reads the containers of sessions, which need not exist."""

    def __init__(self, sessions: Container, events: Container) -> None:
        self._sessions, self._events = sessions, events

    @classmethod
    async def open(cls, connection: Connection, settings: Settings) -> Incarnations:
        return cls(
            connection.existing(SESSIONS_CONTAINER, settings.session_container),
            connection.existing(EVENTS_CONTAINER, settings.conversation_container),
        )

    async def current(self, owner: _User, session_id: str) -> str | None:
        """The incarnation of the session now, even if a replica lags. None if there is no such
        session in this store."""
        key = _key(owner, session_id)
        if key is None or not await self._sessions.probe(key.document_id, key.user_id):
            return None
        try:
            found: Any = await self._sessions.read(key.document_id, key.user_id)
        except NotFound:
            return None
        incarnation = found.get("incarnation")
        exists = found.get("status") not in (PURGING, PURGED) and isinstance(incarnation, str)
        return incarnation if exists else None

    async def with_events(
        self, owner: _User, session_id: str, event_ids: Collection[str]
    ) -> dict[str, set[str]]:
        """The incarnations whose logs have these events, by event id. What is purged counts too:
        stubs keep the ids."""
        key = _key(owner, session_id)
        if key is None:
            return {}
        parameters = {"first": key.first_id(0), "last": key.last_id, "ids": list(event_ids)}
        found: dict[str, set[str]] = {}
        try:
            rows = await self._events.query(INCARNATIONS_WITH_EVENTS, parameters, key.session_id)
        except NotFound:
            return {}
        for row in rows:
            found.setdefault(str(row.get("event_id")), set()).add(str(row.get("incarnation")))
        return found


def _key(owner: _User, session_id: str) -> SessionKey | None:
    """None if there can be no such session: memories may have any names."""
    try:
        return SessionKey.of(owner.app_name, owner.user_id, session_id)
    except InvalidIdError:
        return None
