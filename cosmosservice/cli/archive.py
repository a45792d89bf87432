"""Sessions in a file, one JSON value per line, without loss.

    {"format": "cosmosservice-sessions", "version": 1}
    {"session": {"app_name", "user_id", "id", "state", "last_update_time", "events": 2}}
    {"event": {…}}
    {"event": {…}}
    {"session": …}

State is the merged state of all scopes with ADK's prefixes, as `get_session` returns it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import IO, Any

from google.adk.sessions import Session

from cosmosservice.cli.console import Problem
from cosmosservice.data_converters import (
    decode_state,
    encode_state,
    event_to_fields,
    fields_to_event,
    from_json,
    to_json,
)

HEAD = {"format": "cosmosservice-sessions", "version": 1}


async def write(sessions: AsyncIterator[Session], file: IO[bytes]) -> int:
    """Returns how many sessions were written."""
    count = 0
    file.write(to_json(HEAD) + b"\n")
    async for session in sessions:
        for line in session_lines(session):
            file.write(to_json(line) + b"\n")
        count += 1
    file.flush()
    return count


def session_lines(session: Session) -> Iterator[dict[str, Any]]:
    """A session and then its events."""
    yield {
        "session": {
            "app_name": session.app_name,
            "user_id": session.user_id,
            "id": session.id,
            "state": encode_state(session.state),
            "last_update_time": session.last_update_time,
            "events": len(session.events),
        }
    }
    for event in session.events:
        yield {"event": event_to_fields(event)}


def read(lines: Iterable[bytes]) -> Iterator[Session]:
    """Session by session. A file that ends early is refused at the session that is cut."""
    numbered = enumerate(lines, 1)
    _, head = next(numbered, (1, b""))
    if not _is_head(head):
        raise Problem("This is not a file that `cosmosservice sessions export` wrote.")
    for number, line in numbered:
        body = _value(number, line).get("session")
        if not isinstance(body, dict):
            raise Problem(f"Line {number} is not a session.")
        events = []
        for _ in range(int(body["events"])):
            number, line = next(numbered, (number, b""))
            fields = _value(number, line).get("event")
            if not isinstance(fields, dict):
                raise Problem(f"Line {number}: the events of session {body['id']!r} are cut off.")
            events.append(fields_to_event(fields))
        yield Session(
            app_name=body["app_name"],
            user_id=body["user_id"],
            id=body["id"],
            state=decode_state(body["state"]),
            events=events,
            last_update_time=body["last_update_time"],
        )


def _is_head(line: bytes) -> bool:
    try:
        return bool(from_json(line) == HEAD)
    except ValueError:
        return False


def _value(number: int, line: bytes) -> dict[str, Any]:
    try:
        value = from_json(line)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Problem(f"Line {number} is not JSON: the file is damaged or cut off.")
    return value
