"""Sessions in a file, one JSON value per line, without loss.

    {"format": "cosmosservice-sessions", "version": 1}
    {"session": {"app_name", "user_id", "id", "state", "last_update_time", "events": 2}}
    {"event": {…}}
    {"event": {…}}
    {"session": …}

State is the merged state of all scopes with ADK's prefixes, as `get_session` returns it. A deleted
session has "deleted": true. What else may follow the sessions is described in `archived`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import IO, Any, NamedTuple

from google.adk.sessions import Session

from cosmosservice.cli.archived import Memory, Version, version_of
from cosmosservice.cli.console import Problem, json_line
from cosmosservice.data_converters import decode_state, fields_to_event, from_json
from cosmosservice.sessions.archive_lines import HEAD, session_lines


class Deleted(NamedTuple):
    """A session that was deleted and can be restored."""

    session: Session


async def write(
    sessions: AsyncIterator[Session], file: IO[bytes], *, deleted: bool = False
) -> AsyncIterator[Session]:
    """Yields each session after all of it was written."""
    async for session in sessions:
        for each in session_lines(session, deleted=deleted):
            file.write(line(each))
        file.flush()
        yield session


def line(value: dict[str, Any]) -> bytes:
    return json_line(value).encode() + b"\n"


def read(lines: Iterable[bytes]) -> Iterator[Session | Deleted | Memory | Version]:
    """Reads session by session, then the rest. Raises at a session that the end of the file cuts
    off."""
    numbered = enumerate(lines, 1)
    _, head = next(numbered, (1, b""))
    if not _is_head(head):
        raise Problem("This is not a file that `cosmosservice sessions export` wrote.")
    for number, text in numbered:
        value = _value(number, text)
        other = _other(number, value)
        if other is not None:
            yield other
            continue
        body = value.get("session")
        if not isinstance(body, dict):
            raise Problem(f"Line {number} is not a session.")
        session, count = _session(number, body)
        for _ in range(count):
            number, text = next(numbered, (number, b""))
            fields = _value(number, text).get("event")
            if not isinstance(fields, dict):
                raise Problem(f"Line {number}: the events of a session are cut off.")
            session.events.append(fields_to_event(fields))
        yield Deleted(session) if body.get("deleted") is True else session


def _other(number: int, value: dict[str, Any]) -> Memory | Version | None:
    try:
        if isinstance(memory := value.get("memory"), dict):
            return Memory({**memory, "id": str(memory["id"]), "owner": str(memory["owner"])})
        if isinstance(artifact := value.get("artifact"), dict):
            return version_of(artifact)
    except (KeyError, ValueError, TypeError):
        raise Problem(f"Line {number}: the memory or the artifact cannot be read.") from None
    return None


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
