"""A session as a person reads it: who said what, which tools ran, what changed, and when."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from google.adk.events import Event
from google.adk.sessions import Session
from google.genai import types
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cosmosservice.cli.console import CONTROL, counted

STYLES = {
    "text": "",
    "thought": "italic dim",
    "call": "cyan",
    "result": "green",
    "state": "magenta",
    "note": "yellow",
    "error": "bold red",
}
_LONGEST = 2_000


class Line(NamedTuple):
    kind: str
    text: str


def lines_of(event: Event) -> Iterator[Line]:
    """What an event says, line by line."""
    for part in (event.content.parts if event.content else None) or []:
        yield from _part(part)
    for key, value in event.actions.state_delta.items():
        yield Line("state", f"{key} = {value_text(value)}")
    yield from _actions(event)
    if event.error_code or event.error_message:
        yield Line("error", " ".join(filter(None, (event.error_code, event.error_message))))
    if event.interrupted:
        yield Line("note", "interrupted")


def _part(part: types.Part) -> Iterator[Line]:
    if part.text:
        yield Line("thought" if part.thought else "text", part.text)
    if part.function_call:
        arguments = (part.function_call.args or {}).items()
        inside = ", ".join(f"{name}={value_text(value)}" for name, value in arguments)
        yield Line("call", f"→ {part.function_call.name}({inside})")
    if part.function_response:
        answer = part.function_response
        yield Line("result", f"← {answer.name}: {value_text(answer.response)}")
    if part.executable_code:
        yield Line("call", f"→ code: {part.executable_code.code}")
    if part.code_execution_result:
        result = part.code_execution_result
        yield Line("result", f"← code: {result.output or result.outcome}")
    if part.inline_data:
        size = len(part.inline_data.data or b"")
        yield Line("note", f"{part.inline_data.mime_type or 'data'}, {size:,} bytes")
    if part.file_data:
        yield Line("note", f"file {part.file_data.file_uri}")


def _actions(event: Event) -> Iterator[Line]:
    actions = event.actions
    if actions.transfer_to_agent:
        yield Line("note", f"transfers to {actions.transfer_to_agent}")
    if actions.escalate:
        yield Line("note", "escalates")
    for name, version in actions.artifact_delta.items():
        yield Line("note", f"artifact {name}, version {version}")
    for _ in actions.requested_auth_configs:
        yield Line("note", "asks for credentials")
    for _ in getattr(actions, "requested_tool_confirmations", None) or ():
        yield Line("note", "asks for a confirmation")
    if getattr(actions, "rewind_before_invocation_id", None):
        yield Line("note", f"rewinds to before {actions.rewind_before_invocation_id}")
    if getattr(actions, "compaction", None):
        yield Line("note", "compacts what came before")


def tokens_of(event: Event) -> str:
    used = event.usage_metadata
    if used is None:
        return ""
    return f"{used.prompt_token_count or 0:,} in, {used.candidates_token_count or 0:,} out"


def when(event: Event, before: Event | None) -> str:
    """The time of the first event, and how much later each other one came."""
    if before is None:
        return moment(event.timestamp)
    # Order is that of the log; clocks of several hosts may run against it.
    return duration(event.timestamp - before.timestamp)


def duration(seconds: float) -> str:
    sign, seconds = "-" if seconds < 0 else "+", abs(seconds)
    if seconds < 1:
        return f"{sign}{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{sign}{seconds:.1f} s"
    whole = datetime.timedelta(seconds=round(seconds))
    return f"{sign}{whole}"


def moment(timestamp: float) -> str:
    try:
        at = datetime.datetime.fromtimestamp(timestamp, datetime.UTC).astimezone()
    except (OverflowError, ValueError, OSError):
        return str(timestamp)
    return at.isoformat(" ", "seconds")


def event_rows(events: list[Event], first: int = 1, before: Event | None = None) -> Table:
    """One row per event."""
    table = Table.grid(padding=(0, 2))
    # So wide that what `tail` prints later stands below what it printed before.
    table.add_column(justify="right", style="dim", no_wrap=True, min_width=4)
    table.add_column(justify="right", style="dim", no_wrap=True, min_width=len(moment(0)))
    table.add_column(style="bold", no_wrap=True, min_width=8)
    table.add_column(ratio=1)
    table.add_column(justify="right", style="dim", no_wrap=True)
    for number, event in enumerate(events, first):
        said = Text()
        for line in lines_of(event):
            said.append("\n" if said else "").append(clean(line.text), STYLES[line.kind])
        author = Text(clean(event.author), "blue" if event.author == "user" else "")
        table.add_row(f"#{number}", when(event, before), author, said, tokens_of(event))
        before = event
    return table


def session_view(session: Session) -> RenderableType:
    """Head, state and timeline."""
    head = Text.assemble(
        (clean(session.id), "bold"),
        f"  {clean(session.app_name)} / {clean(session.user_id)}",
        (f"  {summary(session.events)}, last {moment(session.last_update_time)}", "dim"),
    )
    return Group(head, Text(), state_rows(session.state), Text(), event_rows(session.events))


def summary(events: list[Event]) -> str:
    used = [event.usage_metadata for event in events if event.usage_metadata]
    tokens = sum((u.prompt_token_count or 0) + (u.candidates_token_count or 0) for u in used)
    return counted(len(events), "event") + (f", {tokens:,} tokens" if tokens else "")


def state_rows(state: Mapping[str, Any]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="magenta", no_wrap=True)
    table.add_column(ratio=1)
    for key in sorted(state):
        table.add_row(Text(clean(key)), Text(clean(value_text(state[key]))))
    return table


def clean(text: str) -> str:
    """Control characters are shown, not sent to the terminal, and what is endless is cut."""
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]} … ({len(text) - _LONGEST:,} more characters)"
    text = text.encode("utf-8", "backslashreplace").decode()
    return CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def value_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return repr(value)
