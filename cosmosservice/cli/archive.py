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

from cosmosservice.cli.console import Problem, json_line
from cosmosservice.data_converters import (
    decode_state,
    encode_state,
    event_to_fields,
    fields_to_event,
    from_json,
)

HEAD = {"format": "cosmosservice-sessions", "version": 1}


async def write(sessions: AsyncIterator[Session], file: IO[bytes]) -> AsyncIterator[Session]:
    """Yields each session after all of it was written."""
    file.write(_line(HEAD))
    async for session in sessions:
        for line in session_lines(session):
            file.write(_line(line))
        file.flush()
        yield session


def _line(value: dict[str, Any]) -> bytes:
    return json_line(value).encode() + b"\n"


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
    """Reads session by session. Raises at a session that the end of the file cuts off."""
    numbered = enumerate(lines, 1)
    _, head = next(numbered, (1, b""))
    if not _is_head(head):
        raise Problem("This is not a file that `cosmosservice sessions export` wrote.")
    for number, line in numbered:
        body = _value(number, line).get("session")
        if not isinstance(body, dict):
            raise Problem(f"Line {number} is not a session.")
        session, count = _session(number, body)
        for _ in range(count):
            number, line = next(numbered, (number, b""))
            fields = _value(number, line).get("event")
            if not isinstance(fields, dict):
                raise Problem(f"Line {number}: the events of a session are cut off.")
            session.events.append(fields_to_event(fields))
        yield session


def _session(number: int, body: dict[str, Any]) -> tuple[Session, int]:
    """The session without its events, and the number of its events."""
    names = [body.get(name) for name in ("app_name", "user_id", "id")]
    count, state, time = body.get("events"), body.get("state"), body.get("last_update_time")
    if (
        not all(isinstance(name, str) for name in names)
        or type(count) is not int
        or count < 0
        or not isinstance(state, dict)
        or not isinstance(time, int | float)
        or isinstance(time, bool)
    ):
        raise Problem(f"Line {number} is not a session: a field is missing or of another type.")
    app_name, user_id, session_id = map(str, names)
    try:
        decoded = decode_state(state)
    except (ValueError, TypeError, RecursionError):
        raise Problem(f"Line {number}: the state of the session cannot be read.") from None
    made = Session(
        app_name=app_name,
        user_id=user_id,
        id=session_id,
        state=decoded,
        events=[],
        last_update_time=time,
    )
    return made, count


def _is_head(line: bytes) -> bool:
    try:
        return bool(from_json(line) == HEAD)
    except ValueError:
        return False


def _value(number: int, line: bytes) -> dict[str, Any]:
    try:
        value = from_json(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Problem(f"Line {number} is not JSON: the file is damaged or cut off.")
    return value
