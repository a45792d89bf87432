"""A session's events as people read them: turns, and what was said in each."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from google.adk.events import Event
from google.genai import types

from cosmos_emulator import charges
from cosmosservice.explore.session_log import Entry
from cosmosservice.explore.texts import brief, shortened, value_text

# Types that a browser shows and that cannot run scripts. An SVG can.
IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
IMAGE_BYTES: Final = 4_000_000  # of one page
_CHANGE: Final = 300  # characters of a value that an event has set
_CHANGES: Final = 50


@dataclass(frozen=True)
class Block:
    """A part of an event's content. Blocks with a `label` are folded."""

    kind: str  # text, thought, call, result, failure, image, artifact, note, error
    text: str
    label: str = ""
    preview: str = ""  # beside the label
    version: int = 0  # of an artifact, whose name is the text
    is_image: bool = False


@dataclass(frozen=True)
class Item:
    """One event."""

    revision: int
    author: str
    timestamp: float
    by_user: bool
    blocks: list[Block]
    size: int
    changes: list[tuple[str, str]] = field(default_factory=list)  # of the state: the first ones
    tokens: tuple[int, int] = (0, 0)  # in, out


@dataclass
class Turn:
    """What one message led to: the events of one invocation."""

    invocation_id: str
    items: list[Item] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return self.items[-1].timestamp - self.items[0].timestamp

    @property
    def tokens(self) -> tuple[int, int]:
        each = [item.tokens for item in self.items]
        return sum(given for given, _ in each), sum(made for _, made in each)

    @property
    def request_units(self) -> float:
        """The approximate charge for storing its events, estimated from their sizes."""
        return sum(charges.write(item.size, 1) for item in self.items)


class ImageBudget:
    """How many more bytes of images a page may have."""

    def __init__(self, left: int = IMAGE_BYTES) -> None:
        self._left = left

    def take(self, size: int) -> bool:
        if size > self._left:
            return False
        self._left -= size
        return True


def turns(entries: Iterable[Entry]) -> list[Turn]:
    """Groups events by invocation. A user's event without an invocation begins a turn."""
    budget = ImageBudget()
    found: list[Turn] = []
    for entry in entries:
        invocation = entry.event.invocation_id if entry.event else ""
        item = _item(entry, budget)
        alone = not invocation and item.by_user
        if not found or alone or found[-1].invocation_id != invocation:
            found.append(Turn(invocation))
        found[-1].items.append(item)
    return found


def _item(entry: Entry, budget: ImageBudget) -> Item:
    event = entry.event
    if event is None:
        what = {"tombstone": "deleted", "lost": "damaged here: an event is missing"}
        note = Block("note", f"The session was {what.get(entry.kind, entry.kind)}.")
        return Item(entry.revision, "", entry.timestamp, False, [note], entry.size)
    delta = event.actions.state_delta if event.actions else {}
    return Item(
        entry.revision,
        event.author,
        event.timestamp,
        event.author == "user",
        list(_blocks(event, budget)),
        entry.size,
        [(str(key), value_text(value, _CHANGE)) for key, value in islice(delta.items(), _CHANGES)],
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
        if part.thought:
            yield Block("thought", text, "Thought", brief(part.text))
        else:
            yield Block("text", text)
    if part.function_call:
        yield _call(part.function_call)
    if part.function_response:
        yield _result(part.function_response)
    if part.executable_code:
        code = part.executable_code.code or ""
        yield Block("call", shortened(code), "Runs code", brief(code))
    if part.code_execution_result:
        output = part.code_execution_result.output or str(part.code_execution_result.outcome)
        yield Block("result", shortened(output), "The code printed", brief(output))
    if part.inline_data:
        yield _data(part.inline_data, budget)
    if part.file_data:
        yield Block("note", f"file {part.file_data.file_uri}")


def _call(call: types.FunctionCall) -> Block:
    given = call.args or {}
    preview = ", ".join(f"{name}: {value_text(value)}" for name, value in given.items())
    return Block("call", value_text(given, indent=2), f"Calls {call.name}", brief(preview))


def _result(answer: types.FunctionResponse) -> Block:
    response = answer.response
    failed = isinstance(response, dict) and bool(response.get("error"))
    return Block(
        "failure" if failed else "result",
        value_text(response, indent=2),
        f"{answer.name} {'failed' if failed else 'returned'}",
        brief(value_text(response)),
    )


def _data(blob: types.Blob, budget: ImageBudget) -> Block:
    kind, data = (blob.mime_type or "data").lower(), blob.data or b""
    caption = f"{kind}, {len(data):,} bytes"
    if kind not in IMAGES or not budget.take(len(data)):
        return Block("note", caption)
    return Block("image", f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}", caption)


def _notes(event: Event) -> Iterator[Block]:
    actions = event.actions
    if actions is None:
        return
    for name, version in (actions.artifact_delta or {}).items():
        is_image = mimetypes.guess_type(name)[0] in IMAGES
        yield Block("artifact", name, "Artifact", version=version, is_image=is_image)
    if actions.transfer_to_agent:
        yield Block("note", f"transfers to {actions.transfer_to_agent}")
    if actions.escalate:
        yield Block("note", "escalates")
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
