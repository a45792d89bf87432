"""Two sessions side by side: which events they share, and where they differ."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aiohttp import web
from markupsafe import Markup, escape

from cosmosservice.explore.addresses import session_of
from cosmosservice.explore.conversation import ImageBudget, Item, item_of
from cosmosservice.explore.past import compared
from cosmosservice.explore.session_log import Head, SessionLog
from cosmosservice.explore.texts import visible
from cosmosservice.hosting.concurrency import together
from cosmosservice.sessions.store.keys import SessionKey

if TYPE_CHECKING:
    from cosmosservice.cosmos_session_service import CosmosSessionService
    from cosmosservice.explore.rendering import Rendering

_MOST: Final = 500  # events of each session
_WORDS: Final = 1_500  # of a text whose words are compared
_MOST_KEYS: Final = 200


@dataclass(frozen=True)
class Side:
    """An event of one of the sessions. `text` is what was said, with what differs marked."""

    item: Item
    text: Markup | None = None


@dataclass(frozen=True)
class Stretch:
    """Events that are the same in both sessions, or pairs of events that differ."""

    same: bool
    pairs: list[tuple[Side | None, Side | None]]


class Comparing:
    def __init__(self, service: CosmosSessionService, rendering: Rendering) -> None:
        self._service = service
        self._rendering = rendering

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/compare", self.page)]

    async def page(self, request: web.Request) -> web.Response:
        left, query = session_of(request), request.query
        other_user = query.get("other_user") or left.user_id
        right = SessionKey.named(left.app_name, other_user, query.get("other", ""))
        (one, first), (two, second) = await together(self._read(left), self._read(right))
        state = [each for each in compared(one.state, two.state) if each.mark]
        return self._rendering.page(
            "compare.html",
            heads=(one, two),
            stretches=list(stretches(first, second)),
            state=state[:_MOST_KEYS],
            left_out=max(0, len(state) - _MOST_KEYS),
            cut=_MOST if max(one.last - one.first, two.last - two.first) > _MOST else 0,
        )

    async def _read(self, key: SessionKey) -> tuple[Head, list[Item]]:
        log = SessionLog(self._service, key)
        head = await log.head()
        page = await log.page(head, after=head.first, count=_MOST)
        return head, [item_of(entry, ImageBudget(0)) for entry in page.entries]


def stretches(left: list[Item], right: list[Item]) -> Iterator[Stretch]:
    keys, others = (list(map(_key, side)) for side in (left, right))
    matcher = difflib.SequenceMatcher(None, keys, others, autojunk=False)
    for what, begin, end, other, other_end in matcher.get_opcodes():
        pairs = itertools.zip_longest(left[begin:end], right[other:other_end])
        if what == "equal":
            yield Stretch(True, [(Side(one), Side(two)) for one, two in pairs])
        else:
            yield Stretch(False, [_pair(one, two) for one, two in pairs])


def _key(item: Item) -> tuple[str, ...]:
    """What makes two events the same: who said or did what, not when."""
    return item.author, *(f"{block.kind} {block.label} {block.text}" for block in item.blocks)


def _pair(one: Item | None, two: Item | None) -> tuple[Side | None, Side | None]:
    if one is None or two is None or not one.text or not two.text:
        return Side(one) if one else None, Side(two) if two else None
    words, others = (re.findall(r"\s+|\S+", visible(item.text)) for item in (one, two))
    if max(len(words), len(others)) > _WORDS:
        return Side(one), Side(two)
    left, right = Markup(), Markup()
    matcher = difflib.SequenceMatcher(None, words, others, autojunk=False)
    for what, begin, end, other, other_end in matcher.get_opcodes():
        left += _marked("".join(words[begin:end]), what)
        right += _marked("".join(others[other:other_end]), what)
    return Side(one, left), Side(two, right)


def _marked(text: str, what: str) -> Markup:
    if not text or what == "equal":
        return escape(text)
    return Markup("<mark>{}</mark>").format(text)
