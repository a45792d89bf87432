"""Differences between the supported versions of ADK, and small factories of ADK objects."""

from __future__ import annotations

import itertools
from importlib.metadata import version
from typing import Any

from google.adk.events import Event, EventActions
from google.adk.sessions import BaseSessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types

ADK = tuple(int(part) for part in version("google-adk").split(".")[:2])

_moments = itertools.count(1_700_000_000)


def moment() -> float:
    """A timestamp later than all that were returned before, with a fraction that a double can
    hold."""
    return next(_moments) + 0.123456


def event(text: str | None = None, *, delta: dict[str, Any] | None = None, **fields: Any) -> Event:
    """An event as a user or an agent would make it. Its time is fixed unless given."""
    fields.setdefault("author", "user")
    fields.setdefault("timestamp", moment())
    if text is not None:
        role = "user" if fields["author"] == "user" else "model"
        fields.setdefault("content", types.Content(role=role, parts=[types.Part(text=text)]))
    if delta is not None:
        fields.setdefault("actions", EventActions(state_delta=delta))
    return Event(**fields)


def texts(session: Session) -> list[str | None]:
    """The texts of the events, in order."""
    return [
        item.content.parts[0].text if item.content and item.content.parts else None
        for item in session.events
    ]


async def reload(
    service: BaseSessionService,
    session: Session,
    *,
    recent: int | None = None,
    after: float | None = None,
) -> Session:
    """The session as the store has it now."""
    config = None
    if recent is not None or after is not None:
        config = GetSessionConfig(num_recent_events=recent, after_timestamp=after)
    found = await service.get_session(
        app_name=session.app_name, user_id=session.user_id, session_id=session.id, config=config
    )
    assert found is not None
    return found
