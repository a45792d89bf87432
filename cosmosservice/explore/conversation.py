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

from cosmosservice.explore.session_log import Entry
from cosmosservice.explore.texts import brief, shortened, value_text
from cosmosservice.sessions.store.usage import stored_units

# Types that a browser shows and that cannot run scripts. An SVG can.
IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
IMAGE_BYTES: Final = 4_000_000  # of one page
_CHANGE: Final = 300  # characters of a value that an event has set
_CHANGES: Final = 50
_LONG_LINES: Final = 40  # a longer text is folded
_LONG_TEXT: Final = 3_000


@dataclass(frozen=True)
class Block:
    """A part of an event's content. Blocks with a `label` are folded."""

    kind: str  # text, thought, call, result, failure, image, artifact, note, error
    text: str
    label: str = ""
    preview: str = ""  # beside the label
    version: int = 0  # of an artifact, whose name is the text
    is_image: bool = False
    tool: str = ""  # that was called or has answered

    @property
    def is_long(self) -> bool:
        return len(self.text) > _LONG_TEXT or self.text.count("\n") > _LONG_LINES

    @property
    def is_error(self) -> bool:
        return self.kind in ("error", "failure")


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

    @property
    def errors(self) -> int:
        return sum(block.is_error for block in self.blocks)

    @property
    def text(self) -> str:
        """What was said, without thoughts."""
        return "\n\n".join(block.text for block in self.blocks if block.kind == "text")

    @property
    def tools(self) -> list[str]:
        return [block.tool for block in self.blocks if block.tool]

    @property
    def answering(self) -> list[str]:
        """The tools whose results it has."""
        answers = ("result", "failure")
        return [block.tool for block in self.blocks if block.tool and block.kind in answers]


@dataclass(frozen=True)
class Step:
    """An event in the waterfall of a turn: what took the time before it."""

    item: Item
    kind: str  # user, model, tool
    name: str
    begin: float  # seconds after the turn's first event
    seconds: float
    share: tuple[float, float]  # begin and length, of 1000


@dataclass
class Turn:
    """What one message led to: the events of one invocation."""

    invocation_id: str
    items: list[Item] = field(default_factory=list)

    @property
    def errors(self) -> int:
        return sum(item.errors for item in self.items)

    @property
    def steps(self) -> list[Step]:
        """Where the time went: an event took the time since the one before it."""
        first, whole = self.items[0].timestamp, max(self.seconds, 1e-6)
        found, at = [], 0.0
        for item in self.items[1:]:
            begin, at = at, max(at, item.timestamp - first)
            tools = item.answering
            share = 1000 * begin / whole, max(1000 * (at - begin) / whole, 4.0)
            found.append(
                Step(
                    item,
                    "tool" if tools else "user" if item.by_user else "model",
                    ", ".join(tools) or item.author or "session",
                    begin,
                    at - begin,
                    (min(share[0], 996.0), share[1]),
                )
            )
        return found

    def seconds_of(self, kind: str) -> float:
        return sum(step.seconds for step in self.steps if step.kind == kind)

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
        return sum(stored_units(item.size) for item in self.items)


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
        item = item_of(entry, budget)
        alone = not invocation and item.by_user
        if not found or alone or found[-1].invocation_id != invocation:
            found.append(Turn(invocation))
        found[-1].items.append(item)
    return found


def item_of(entry: Entry, budget: ImageBudget) -> Item:
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
    text, name = value_text(given, indent=2), call.name or ""
    return Block("call", text, f"Calls {name}", brief(preview), tool=name)


def _result(answer: types.FunctionResponse) -> Block:
    response = answer.response
    failed = isinstance(response, dict) and bool(response.get("error"))
    return Block(
        "failure" if failed else "result",
        value_text(response, indent=2),
        f"{answer.name} {'failed' if failed else 'returned'}",
        brief(value_text(response)),
        tool=answer.name or "",
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
