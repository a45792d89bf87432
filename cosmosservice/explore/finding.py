"""Events of one session that match: a text, an author, a tool, errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from cosmosservice.explore.conversation import ImageBudget, Item, Turn, item_of
from cosmosservice.explore.session_log import Entry, Head, SessionLog

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

    def fits(self, item: Item) -> bool:
        if self.author and item.author != self.author:
            return False
        if self.tool and self.tool not in item.tools:
            return False
        if self.errors and not item.errors:
            return False
        text = self.text.casefold()
        return not text or any(text in each.casefold() for each in _texts(item))


@dataclass(frozen=True)
class Choices:
    """What the form offers: the authors and tools of the page."""

    authors: list[str]
    tools: list[str]

    @classmethod
    def of(cls, turns: Iterable[Turn], wanted: Wanted) -> Choices:
        items = [item for turn in turns for item in turn.items]
        authors = {wanted.author, *(item.author for item in items)}
        tools = {wanted.tool, *(tool for item in items for tool in item.tools)}
        return cls(sorted(authors - {""}), sorted(tools - {""}))


@dataclass(frozen=True)
class Found:
    """The events that match, in order."""

    entries: list[Entry]
    looked: int
    before: int | None  # where to continue, further back


async def find(log: SessionLog, head: Head, wanted: Wanted, before: int | None) -> Found:
    """The newest matches before a revision."""
    found: list[Entry] = []
    looked, end = 0, head.last + 1 if before is None else before
    while end > head.first + 1 and looked < _MOST and len(found) < _SHOWN:
        page = await log.page(head, before=end, count=_AT_ONCE)
        if not page.entries:
            break
        for entry in reversed(page.entries):
            looked, end = looked + 1, entry.revision
            if wanted.fits(item_of(entry, ImageBudget(0))):
                found.append(entry)
                if len(found) == _SHOWN:
                    break
    return Found(found[::-1], looked, end if end > head.first + 1 else None)


def _texts(item: Item) -> Iterable[str]:
    for block in item.blocks:
        yield block.label
        if block.kind != "image":
            yield block.text
    for key, value in item.changes:
        yield key
        yield value
