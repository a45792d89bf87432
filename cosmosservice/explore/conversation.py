"""A session's events as people read them: turns, and what was said in each."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from google.adk.events import Event
from google.genai import types

from cosmosservice.explore.session_log import Entry
from cosmosservice.explore.texts import shortened, value_text

# Types that a browser shows and that cannot act. An SVG can.
_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
IMAGE_BYTES: Final = 4_000_000  # of one page


@dataclass(frozen=True)
class Block:
    """A part of what an event says. Those with a `summary` are folded."""

    kind: str  # text, thought, call, result, image, note, error
    text: str
    summary: str = ""


@dataclass(frozen=True)
class Item:
    """One event."""

    revision: int
    author: str
    timestamp: float
    by_user: bool
    blocks: list[Block]
    changes: list[tuple[str, str]] = field(default_factory=list)  # of the state
    tokens: tuple[int, int] = (0, 0)  # in, out


@dataclass(frozen=True)
class Turn:
    """What one message led to: the events of one invocation."""

    invocation_id: str
    items: list[Item]

    @property
    def seconds(self) -> float:
        return self.items[-1].timestamp - self.items[0].timestamp

    @property
    def tokens(self) -> tuple[int, int]:
        return sum(each.tokens[0] for each in self.items), sum(
            each.tokens[1] for each in self.items
        )


class ImageBudget:
    """How many bytes of images a page still may have."""

    def __init__(self, left: int = IMAGE_BYTES) -> None:
        self._left = left

    def take(self, size: int) -> bool:
        if size > self._left:
            return False
        self._left -= size
        return True


def turns(entries: Iterable[Entry]) -> list[Turn]:
    budget = ImageBudget()
    found = groupby(entries, key=lambda entry: entry.event.invocation_id if entry.event else "")
    return [
        Turn(invocation_id, [_item(entry, budget) for entry in group])
        for invocation_id, group in found
    ]


def _item(entry: Entry, budget: ImageBudget) -> Item:
    event = entry.event
    if event is None:
        note = Block(
            "note", f"The session was {'deleted' if entry.kind == 'tombstone' else entry.kind}."
        )
        return Item(entry.revision, "", entry.timestamp, False, [note])
    delta = event.actions.state_delta if event.actions else {}
    return Item(
        entry.revision,
        event.author,
        event.timestamp,
        event.author == "user",
        list(_blocks(event, budget)),
        [(str(key), value_text(value)) for key, value in delta.items()],
        tokens_of(event),
    )


def tokens_of(event: Event) -> tuple[int, int]:
    used = event.usage_metadata
    if used is None:
        return 0, 0
    return used.prompt_token_count or 0, used.candidates_token_count or 0


def _blocks(event: Event, budget: ImageBudget) -> Iterator[Block]:
    for part in (event.content.parts if event.content else None) or []:
        yield from part_blocks(part, budget)
    yield from _notes(event)
    if event.error_code or event.error_message:
        yield Block("error", shortened(_joined(event.error_code, event.error_message)))
    if event.interrupted:
        yield Block("note", "interrupted")


def part_blocks(part: types.Part, budget: ImageBudget) -> Iterator[Block]:
    if part.text:
        text = shortened(part.text)
        yield Block("thought", text, "Thought") if part.thought else Block("text", text)
    if part.function_call:
        call = part.function_call
        yield Block("call", value_text(call.args or {}, 2), f"Calls {call.name}")
    if part.function_response:
        answer = part.function_response
        yield Block("result", value_text(answer.response, 2), f"{answer.name} returned")
    if part.executable_code:
        yield Block("call", shortened(part.executable_code.code or ""), "Runs code")
    if part.code_execution_result:
        result = part.code_execution_result
        yield Block("result", shortened(result.output or str(result.outcome)), "The code printed")
    if part.inline_data:
        yield _data(part.inline_data, budget)
    if part.file_data:
        yield Block("note", f"file {part.file_data.file_uri}")


def _data(blob: types.Blob, budget: ImageBudget) -> Block:
    kind, data = (blob.mime_type or "data").lower(), blob.data or b""
    told = f"{kind}, {len(data):,} bytes"
    if kind not in _IMAGES or not budget.take(len(data)):
        return Block("note", told)
    return Block("image", f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}", told)


def _notes(event: Event) -> Iterator[Block]:
    actions = event.actions
    if actions is None:
        return
    if actions.transfer_to_agent:
        yield Block("note", f"transfers to {actions.transfer_to_agent}")
    if actions.escalate:
        yield Block("note", "escalates")
    for name, version in (actions.artifact_delta or {}).items():
        yield Block("note", f"artifact {name}, version {version}")
    if actions.requested_auth_configs:
        yield Block("note", "asks for credentials")
    if getattr(actions, "requested_tool_confirmations", None):
        yield Block("note", "asks for a confirmation")
    if getattr(actions, "rewind_before_invocation_id", None):
        yield Block("note", f"rewinds to before {actions.rewind_before_invocation_id}")
    if getattr(actions, "compaction", None):
        yield Block("note", "compacts what came before")


def _joined(*texts: Any) -> str:
    return " ".join(str(text) for text in texts if text)
