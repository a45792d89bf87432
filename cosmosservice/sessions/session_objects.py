"""ADK's session objects: made from snapshots, and kept up to date by appends."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from google.adk.events.event import Event
from google.adk.sessions.session import Session

from cosmosservice.data_converters.lazy_events import lazy_event, lazy_events
from cosmosservice.data_converters.state_scopes import merged
from cosmosservice.errors import InvalidIdError
from cosmosservice.sessions.store.held import Seen
from cosmosservice.sessions.store.keys import Marker, SessionKey

if TYPE_CHECKING:
    from cosmosservice.sessions.store.appending import Appended
    from cosmosservice.sessions.store.records import Record
    from cosmosservice.sessions.store.snapshot import Snapshot

# Several times as fast as loops, for thousands of events.
_text, _id, _time = map(attrgetter, ("raw", "event_id", "timestamp"))


def event_object(record: Record) -> Event:
    return lazy_event(record.raw, record.event_id, record.timestamp)


def session_object(snapshot: Snapshot) -> Session:
    session = Session(
        id=snapshot.key.session_id,
        app_name=snapshot.key.app_name,
        user_id=snapshot.key.user_id,
        state=merged(snapshot.state),
        events=lazy_events(
            list(map(_text, snapshot.records)),
            map(_id, snapshot.records),
            map(_time, snapshot.records),
        ),
        last_update_time=snapshot.last_update_time,
    )
    session._storage_update_marker = snapshot.marker.text(snapshot.key)
    return session


def seen_by(session: Session, key: SessionKey) -> Seen:
    """What the session object has seen of its log."""
    # Reading the attribute directly takes twenty times as long.
    private = session.__pydantic_private__
    text = private.get("_storage_update_marker") if private else None
    return Seen(Marker.parse(text, key), session.events, session.last_update_time)


def incarnation_of(session: Session) -> str | None:
    """Which incarnation of the session the object came from; None if it does not say."""
    try:
        key = SessionKey.of(session.app_name, session.user_id, session.id)
    except InvalidIdError:
        return None
    marker = seen_by(session, key).marker
    return None if marker is None else marker.incarnation


def apply(session: Session, key: SessionKey, event: Event, appended: Appended) -> None:
    """Adds a stored event to the session object, after those that others stored before it."""
    marker, private = appended.marker.text(key), session.__pydantic_private__
    if private is None:
        session._storage_update_marker = marker
    else:
        private["_storage_update_marker"] = marker
    for each in (*map(event_object, appended.newer), event):
        if each.actions and each.actions.state_delta:
            session.state.update(each.actions.state_delta)
        session.events.append(each)
        session.last_update_time = each.timestamp
