"""What `cosmosservice sessions show --at`, `diff` and `fork` do."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator
from typing import Any

from google.adk.sessions import Session
from google.adk.sessions.state import State
from rich.text import Text

from cosmosservice.cli.console import GivenName, Problem, counted, err, out, print_json
from cosmosservice.cli.session_work import everything_of, named, print_session, service_of
from cosmosservice.cli.timeline import clean, one_line, value_text
from cosmosservice.data_converters import encode_value
from cosmosservice.sessions.store.history import UnknownPoint

Point = int | str | datetime.datetime


def point_of(text: str) -> Point:
    """A number is a revision, an ISO date is a time, anything else is the id of an event."""
    if text.isdecimal():
        return int(text)
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError:
        return text
    return time if time.tzinfo is not None else time.astimezone()


async def show_at(
    uri: str | None, given: GivenName, at: str, *, last: int | None, as_json: bool
) -> None:
    async with service_of(uri) as service:
        name = await named(service, given)
        with _points():
            session = await service.get_session_at(**name._asdict(), at=point_of(at))
    print_session(session, last, as_json=as_json)


async def diff(
    uri: str | None, given: GivenName, first: str, second: str, *, as_json: bool
) -> None:
    async with service_of(uri) as service:
        name = await named(service, given)
        with _points():
            one = await service.get_session_at(**name._asdict(), at=point_of(first))
            other = await service.get_session_at(**name._asdict(), at=point_of(second))
    changes = changed(one.state | _shared(one), other.state | _shared(other))
    if as_json:
        for key, (before, after) in changes.items():
            line: dict[str, Any] = {"key": key}
            line |= {} if before is MISSING else {"before": encode_value(before)}
            print_json(line | ({} if after is MISSING else {"after": encode_value(after)}))
        return
    for key, (before, after) in changes.items():
        if before is not MISSING:
            out.print(Text(clean(f"- {key} = {value_text(before)}"), style="red"), soft_wrap=True)
        if after is not MISSING:
            out.print(Text(clean(f"+ {key} = {value_text(after)}"), style="green"), soft_wrap=True)
    if not changes:
        err.print("The state is the same at both points.")


MISSING = object()


@contextlib.contextmanager
def _points() -> Iterator[None]:
    """Says what a point is if there is no such point."""
    try:
        yield
        return
    except UnknownPoint as problem:
        reason = f"{problem.reason[0].upper()}{problem.reason[1:]}"
    raise Problem(
        f"{reason}. A point is a revision (0: before the first event), the id of an event, or a"
        " time such as 2026-05-01T10:30."
    )


def _shared(session: Session) -> dict[str, Any]:
    """The `user:` and `app:` values that the events of the session have set."""
    found: dict[str, Any] = {}
    for event in session.events:
        delta = event.actions.state_delta.items()
        found |= {k: v for k, v in delta if k.startswith((State.USER_PREFIX, State.APP_PREFIX))}
    return found


def changed(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The differences by key: (before, after). MISSING if there is no such key."""
    pairs = {
        key: (before.get(key, MISSING), after.get(key, MISSING))
        for key in sorted(before.keys() | after.keys())
    }
    return {key: (one, other) for key, (one, other) in pairs.items() if one != other}


async def fork(
    uri: str | None,
    given: GivenName,
    *,
    at: str | None,
    new_session_id: str | None,
    new_user_id: str | None,
    as_json: bool,
) -> None:
    async with everything_of(uri) as service:
        name = await named(service, given)
        with _points():
            made = await service.fork_session(
                **name._asdict(),
                at=None if at is None else point_of(at),
                new_session_id=new_session_id,
                new_user_id=new_user_id,
            )
    if as_json:
        print_json({"app_name": made.app_name, "user_id": made.user_id, "session_id": made.id})
        return
    err.print(f"Forked with {counted(len(made.events), 'event')}. The new session:")
    out.print(one_line(made.id), soft_wrap=True, markup=False)
