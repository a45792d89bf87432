"""`cosmosservice sessions tail`: the changes of sessions, for people and for programs."""

from __future__ import annotations

import sys

from google.adk.events.event import Event
from rich.text import Text

from cosmosservice import SessionChange
from cosmosservice.cli.console import (
    GivenName,
    SessionName,
    UsageProblem,
    out,
    print_continuation,
    print_json,
)
from cosmosservice.cli.session_work import existing, named, service_of
from cosmosservice.cli.timeline import INDENT, event_view, event_views, one_line
from cosmosservice.data_converters import event_to_fields


async def tail(
    uri: str | None,
    app_name: str | None,
    user_id: str | None,
    session_id: str | None,
    *,
    since: str | None,
    last: int,
    interval: float,
    as_json: bool,
) -> None:
    async with service_of(uri) as service:
        if session_id is not None:
            given = GivenName(app_name, user_id, session_id)
            app_name, user_id, _ = await named(service, given, deleted=None)
        assert app_name is not None
        try:
            watch = service.watch(
                app_name=app_name,
                user_id=user_id,
                session_id=session_id,
                since=since or "now",
                interval=interval,
            )
            await watch.ready()
        except ValueError:
            raise UsageProblem(
                "--since takes now, beginning, or a continuation of the same app, user or session"
                " in this store."
            ) from None
        screen = _Screen(as_json, several=session_id is None)
        shown: set[str] = set()
        if session_id is not None and since is None:
            # After the watch has started: what is appended in between is in both.
            name = SessionName(app_name, str(user_id), session_id)
            session = await existing(service, name)
            begin = max(0, len(session.events) - last)
            shown = {event.id for event in session.events}
            screen.earlier(name, session.events[begin:], begin + 1)
        try:
            async for change in watch:
                if change.event is None or change.event.id not in shown:
                    screen.change(change)
        finally:
            words = ["sessions", "tail", *filter(None, [session_id])]
            names = {"--app": app_name, "--user": user_id}
            print_continuation(words, {**names, "--since": watch.continuation or "now"}, uri)


class _Screen:
    """Shows changes as they come."""

    def __init__(self, as_json: bool, *, several: bool) -> None:
        self._as_json = as_json
        self._name: SessionName | None = None
        self._several = several
        # What was shown last: the first event shows its time, each later one the time since.
        self._before: Event | None = None

    def earlier(self, name: SessionName, events: list[Event], first: int) -> None:
        if self._as_json:
            for event in events:
                print_json({"kind": "event", **name._asdict(), "event": event_to_fields(event)})
        elif events:
            out.print(*event_views(events, first), sep="", soft_wrap=True)
            self._before = events[-1]
        sys.stdout.flush()

    def change(self, change: SessionChange) -> None:
        name = SessionName(change.app_name, change.user_id, change.session_id)
        event = change.event
        if self._as_json:
            line = {"kind": change.kind, **name._asdict(), "revision": change.revision}
            if event is not None:
                line["event"] = event_to_fields(event)
            print_json(line | {"continuation": change.continuation})
        else:
            if self._several and name != self._name:
                head = (one_line(name.session_id), "bold"), f"  {one_line(name.user_id)}"
                out.print(Text.assemble(*head), soft_wrap=True)
                self._before = None
            if event is None:
                number = f"#{change.revision}".ljust(INDENT)
                out.print(Text.assemble((number, "dim"), (change.kind, "yellow")))
            else:
                out.print(event_view(event, change.revision, self._before), soft_wrap=True)
                self._before = event
        self._name = name
        sys.stdout.flush()
