"""A session as a timeline: who said what, which tools ran, what changed, and when."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from google.adk.events import Event
from google.adk.sessions import Session
from google.genai import types
from rich.console import Group, RenderableType
from rich.text import Text

from cosmosservice.cli.console import CONTROL, counted
from cosmosservice.cli.layout import Folded
from cosmosservice.cli.recalled import TOOLS, recalled

STYLES = {
    "text": "",
    "thought": "italic dim",
    "call": "cyan",
    "result": "green",
    "state": "magenta",
    "note": "yellow",
    "error": "bold red",
}
INDENT = 5  # of what an event says


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
        yield from _answer(part.function_response)
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


def _answer(answer: types.FunctionResponse) -> Iterator[Line]:
    memories = recalled(answer.response) if answer.name in TOOLS else None
    if memories is None:
        yield Line("result", f"← {answer.name}: {value_text(answer.response)}")
        return
    yield Line("result", f"← {answer.name}: {counted(len(memories), 'memory', 'memories')}")
    for each in memories:
        yield Line("result", each)


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
    return f"{used.prompt_token_count or 0:,} tokens in, {used.candidates_token_count or 0:,} out"


def when(event: Event, before: Event | None) -> str:
    """The time of the first event, and the time since the previous one for the others."""
    if before is None:
        return moment(event.timestamp)
    # The order is that of the log. The clocks of several hosts may contradict it.
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


def event_view(event: Event, number: int, before: Event | None = None) -> RenderableType:
    """A line with the author and the time, and the content below it."""
    head = Text.assemble(
        (f"#{number}".ljust(INDENT), "dim"),
        (one_line(event.author), "bold blue" if event.author == "user" else "bold"),
        (f"  {when(event, before)}", "dim"),
        (f"  {tokens_of(event)}".rstrip(), "dim"),
    )
    said = [Folded(Text(clean(each.text), STYLES[each.kind]), INDENT) for each in lines_of(event)]
    return Group(head, *said)


def event_views(
    events: Sequence[Event], first: int = 1, before: Event | None = None
) -> Iterator[RenderableType]:
    for number, event in enumerate(events, first):
        yield event_view(event, number, before)
        before = event


def session_view(session: Session, last: int | None = None) -> RenderableType:
    """Head, state and timeline; with `last`, only that many events."""
    begin = 0 if last is None else max(0, len(session.events) - last)
    known = summary(session.events) + (f" (the last {last:,} are shown)" if begin else "")
    head = (
        Text(one_line(session.id), "bold"),
        Text(f"{one_line(session.app_name)} / {one_line(session.user_id)}"),
        Text(f"{known}, last {moment(session.last_update_time)}", "dim"),
    )
    state = [state_line(key, session.state[key]) for key in sorted(session.state)]
    before = session.events[begin - 1] if begin else None
    events = event_views(session.events[begin:], begin + 1, before)
    parts = [head, state, list(events)]
    return Group(*[each for part in parts if part for each in (Text(), *part)][1:])


def summary(events: list[Event]) -> str:
    used = [event.usage_metadata for event in events if event.usage_metadata]
    tokens = sum((u.prompt_token_count or 0) + (u.candidates_token_count or 0) for u in used)
    return counted(len(events), "event") + (f", {tokens:,} tokens" if tokens else "")


def state_line(key: str, value: Any) -> RenderableType:
    text = Text.assemble((clean(key), STYLES["state"]), f" = {clean(value_text(value))}")
    return Folded(text, 2)


def clean(text: str) -> str:
    """Shows control characters as escapes instead of sending them to the terminal."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return CONTROL.sub(_escaped, text)


def one_line(text: str) -> str:
    """A name, which may contain any characters, on one line."""
    return re.sub(r"[\n\t]", _escaped, clean(text))


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def value_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return repr(value)
