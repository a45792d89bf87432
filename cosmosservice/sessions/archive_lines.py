"""The lines of a file of sessions, as `cosmosservice sessions export` and the page write it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from google.adk.sessions import Session

from cosmosservice.data_converters import encode_state, event_to_fields

HEAD: Final = {"format": "cosmosservice-sessions", "version": 1}


def session_lines(session: Session, *, deleted: bool = False) -> Iterator[dict[str, Any]]:
    """A session and then its events."""
    yield {
        "session": {
            "app_name": session.app_name,
            "user_id": session.user_id,
            "id": session.id,
            "state": encode_state(session.state),
            "last_update_time": session.last_update_time,
            "events": len(session.events),
            **({"deleted": True} if deleted else {}),
        }
    }
    for event in session.events:
        yield {"event": event_to_fields(event)}
