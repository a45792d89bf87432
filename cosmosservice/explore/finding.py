"""Events of one session that match: a text, an author, a tool, errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from google.adk.events import Event

from cosmosservice.explore.conversation import ImageBudget, Item, item_of
from cosmosservice.explore.session_log import Entry, Head, SessionLog
from cosmosservice.explore.texts import whole_text

_SHOWN: Final = 50
_AT_ONCE: Final = 200
_MOST: Final = 2_000  # events that are read for one page of results


@dataclass(frozen=True)
class Wanted:
    text: str = ""
    author: str = ""
    tool: str = ""
    errors: bool = False

    @classmethod
    def of(cls, request: web.Request) -> Wanted:
        query = request.query
        return cls(
            query.get("q", "").strip(),
            query.get("author", ""),
            query.get("tool", ""),
            query.get("errors") == "yes",
        )

    def __bool__(self) -> bool:
        return self != Wanted()

    @property
    def parameters(self) -> dict[str, str]:
        errors = "yes" if self.errors else ""
        return {"q": self.text, "author": self.author, "tool": self.tool, "errors": errors}

    def fits(self, item: Item, event: Event | None) -> bool:
        if self.author and item.author != self.author:
            return False
        if self.tool and self.tool not in item.tools:
            return False
        if self.errors and not item.errors:
            return False
        text = self.text.casefold()
        return not text or any(text in each.casefold() for each in _texts(item, event))


@dataclass(frozen=True)
class Choices:
    """What the form offers: the authors and tools of the events that were read."""

    authors: list[str]
    tools: list[str]

    @classmethod
    def of(cls, items: Iterable[Item], wanted: Wanted) -> Choices:
        authors, tools = {wanted.author}, {wanted.tool}
        for item in items:
            authors.add(item.author)
            tools.update(item.tools)
        return cls(sorted(authors - {""}), sorted(tools - {""}))


@dataclass(frozen=True)
class Found:
    """The events that match, in order."""

    entries: list[Entry]
    choices: Choices
    looked: int
    before: int | None  # where to continue, further back


async def find(log: SessionLog, head: Head, wanted: Wanted, before: int | None) -> Found:
    """The newest matches before a revision."""
    found: list[Entry] = []
    items: list[Item] = []
    looked, end = 0, head.last + 1 if before is None else before
    while end > head.first + 1 and looked < _MOST and len(found) < _SHOWN:
        page = await log.page(head, before=end, count=_AT_ONCE)
        if not page.entries:
            break
        for entry in reversed(page.entries):
            looked, end = looked + 1, entry.revision
            items.append(item_of(entry, ImageBudget(0)))
            if wanted.fits(items[-1], entry.event):
                found.append(entry)
                if len(found) == _SHOWN:
                    break
    choices = Choices.of(items, wanted)
    return Found(found[::-1], choices, looked, end if end > head.first + 1 else None)


def _texts(item: Item, event: Event | None) -> Iterator[str]:
    """What is shown, and the rest of texts that are cut there."""
    for block in item.blocks:
        yield block.label
        if block.kind != "image":
            yield block.text
    if event is None:
        return
    for part in (event.content.parts if event.content else None) or []:
        yield part.text or ""
        if part.function_call:
            yield whole_text(part.function_call.args)
        if part.function_response:
            yield whole_text(part.function_response.response)
    for key, value in (event.actions.state_delta if event.actions else {}).items():
        yield key
        yield whole_text(value)
