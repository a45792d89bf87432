"""ADK's session objects: made from snapshots, and kept up to date by appends."""

from __future__ import annotations

import asyncio

from google.adk.events.event import Event
from google.adk.sessions.session import Session

from cosmosservice.data_converters import same_event
from cosmosservice.data_converters.lazy_events import lazy_event
from cosmosservice.data_converters.state_scopes import merged
from cosmosservice.errors import EventIdReusedError, InvalidIdError
from cosmosservice.sessions.store.held import Held
from cosmosservice.sessions.store.keys import Marker, SessionKey
from cosmosservice.sessions.store.records import Record
from cosmosservice.sessions.store.snapshot import Snapshot


def event_object(record: Record) -> Event:
    return lazy_event(record.raw, record.event_id, record.timestamp)


def session_object(snapshot: Snapshot) -> Session:
    session = Session(
        id=snapshot.key.session_id,
        app_name=snapshot.key.app_name,
        user_id=snapshot.key.user_id,
        state=merged(snapshot.state),
        events=[event_object(record) for record in snapshot.records],
        last_update_time=snapshot.last_update_time,
    )
    session._storage_update_marker = snapshot.marker.text(snapshot.key)
    return session


def _marker_of(session: Session) -> str | None:
    # Reading the attribute directly takes twenty times as long.
    private = session.__pydantic_private__
    return private.get("_storage_update_marker") if private else None


def incarnation_of(session: Session) -> str | None:
    """Which life of the session the object came from; None if it does not say."""
    try:
        key = SessionKey.of(session.app_name, session.user_id, session.id)
    except InvalidIdError:
        return None
    marker = Marker.parse(_marker_of(session), key)
    return None if marker is None else marker.incarnation


class Holding:
    """Adds a stored event to the session object, on the caller's own loop.

    The store calls `take` on its own event loop when the event has its place in the log. Events
    are passed on in that order, even if the caller has been cancelled since, so that the object
    and the store agree.
    """

    def __init__(
        self, session: Session, event: Event, loop: asyncio.AbstractEventLoop, memory: object = None
    ) -> None:
        self._session, self._event, self._loop = session, event, loop
        self._memory = memory  # alive until the event is stored, even if the caller gives up

    def held(self) -> Held:
        session = self._session
        last = session.events[-1].id if session.events else None
        return Held(_marker_of(session), last, session.last_update_time)

    def take(self, marker: str, newer: list[Record]) -> None:
        private = self._session.__pydantic_private__
        if private is None:
            self._session._storage_update_marker = marker
        else:
            private["_storage_update_marker"] = marker
        if asyncio.get_running_loop() is self._loop:
            self._commit(newer)
            return
        try:
            self._loop.call_soon_threadsafe(self._commit, newer)
        except RuntimeError:  # the loop is closed, so nobody is using the object
            self._commit(newer)

    def holds_event(self) -> bool:
        for held in self._session.events:
            if held.id == self._event.id:
                if not same_event(held, self._event):
                    raise EventIdReusedError(self._event.id)
                return True
        return False

    def _commit(self, newer: list[Record]) -> None:
        for record in newer:
            self._take(event_object(record))
        self._take(self._event)

    def _take(self, event: Event) -> None:
        if event.actions and event.actions.state_delta:
            self._session.state.update(event.actions.state_delta)
        self._session.events.append(event)
        self._session.last_update_time = event.timestamp
