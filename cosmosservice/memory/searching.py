"""Searching: the matching memories' words, their ranking, and the contents of the hits.

    1  which memories have one of the words?   their small fields, the newest CANDIDATES of them
    2  if there were more: the same for the rarer words, so that a common one does not hide them
    3  the contents of the best places

Places are ranked before it is known whether each has a memory. The third query finds out, and reads
the content.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cosmosservice.account.chunks import Damaged, load_json
from cosmosservice.account.container import Container, Document
from cosmosservice.account.failures import NotFound
from cosmosservice.memory import documents, queries
from cosmosservice.memory.damage import Damage
from cosmosservice.memory.documents import Owner
from cosmosservice.memory.lives import lives_of
from cosmosservice.memory.queries import CANDIDATES, MOST_TOKENS
from cosmosservice.memory.ranking import (
    NOTHING,
    WEIGHTS,
    Match,
    Ranked,
    Weights,
    matches_of,
    ranked,
    scores_of,
)
from cosmosservice.memory.words import Term, terms_of

ROUNDS: Final = 3
_AT_LEAST: Final = 3.0  # least ratio of all matches to those returned, if there were more
EVER: Final = 1e300  # seconds: later than any time


@dataclass(frozen=True)
class Filter:
    """Which memories may be found."""

    session_id: str | None = None
    author: str | None = None
    since: float | None = None
    until: float | None = None
    incarnation: str | None = None  # of the session: memories of its other lives are not found

    def may_have(self, document: Document) -> bool:
        """Whether it is of this session, and not known to be of another life of it."""
        if self.session_id is None:
            return True
        return any(
            each.session_id == self.session_id
            and (self.incarnation is None or each.incarnation in (None, self.incarnation))
            for each in lives_of(document)
        )

    @property
    def of_hits(self) -> dict[str, Any]:
        """Author and time, as parameters. They apply to hits only: a question by another author,
        or from before that time, may lead to the answer."""
        found: dict[str, Any] = {} if self.author is None else {"author": self.author}
        if self.has_time:
            found["since"] = -EVER if self.since is None else self.since
            found["until"] = EVER if self.until is None else self.until
        return found

    @property
    def has_time(self) -> bool:
        return self.since is not None or self.until is not None

    @property
    def of_session(self) -> dict[str, Any]:
        return {} if self.session_id is None else {"session_id": self.session_id}

    @property
    def is_narrow(self) -> bool:
        """Whether the filter may exclude many of the best places."""
        return self.author is not None or self.has_time


@dataclass(frozen=True)
class Start:
    """Where a page begins: at a time, without the memories of that time that were seen."""

    time: float = -EVER
    seen: frozenset[str] = frozenset()

    def after(self, rows: Sequence[Document]) -> Start:
        last = rows[-1]["time"]
        seen = frozenset(each["id"] for each in rows if each["time"] == last)
        return Start(last, seen | self.seen if last == self.time else seen)


class Searching:
    """Looks for memories by their words."""

    def __init__(self, container: Container, damage: Damage, weights: Weights = WEIGHTS) -> None:
        self._container = container
        self._damage = damage
        self._weights = weights

    async def rank(self, owner: Owner, query: str, chosen: Filter) -> Ranked:
        """The places that match, the best first."""
        terms = _asked_for(terms_of(query))
        if not terms:
            return NOTHING
        matches, having = await self._matches(owner, terms, chosen)
        scores = scores_of(matches, having, self._weights)
        return ranked(matches, scores, self._weights)

    async def contents(self, owner: Owner, places: Sequence[str], chosen: Filter) -> list[Document]:
        """The memories at these places that may be found, except damaged ones."""
        found: list[Document] = []
        for start in range(0, len(places), MOST_TOKENS):
            tokens = [f"#{at}" for at in places[start : start + MOST_TOKENS]]
            size = queries.slots(len(tokens))
            text = queries.CONTENTS[size, chosen.author is not None, chosen.has_time]
            parameters = queries.filled(tokens) | chosen.of_hits
            found += await self._container.query(text, parameters, owner.key)
        return [each for each in found if self._damage.is_memory(each) and chosen.may_have(each)]

    async def _matches(
        self, owner: Owner, terms: Sequence[Term], chosen: Filter
    ) -> tuple[list[Match], Mapping[Term, float]]:
        """Memories that have one of the terms, and how many have each of them."""
        found: dict[str, Match] = {}
        asked = list(terms)
        rounds: list[tuple[list[Term], list[Match]]] = []
        while True:
            rows = await self._having(owner, asked, chosen)
            usable = [row for row in rows if "of" in row or chosen.may_have(row)]
            matches = matches_of(filter(self._damage.is_match, usable), terms)
            rounds.append((asked, matches))
            found |= {match.document_id: match for match in matches}
            rarer = _rarer(asked, matches)
            if len(rows) < CANDIDATES or len(rounds) == ROUNDS or not rarer:
                return list(found.values()), _estimated(rounds)
            asked = rarer

    async def _having(self, owner: Owner, terms: Sequence[Term], chosen: Filter) -> list[Document]:
        tokens = sorted({token for term in terms for token in term})
        text = queries.HAVING[queries.slots(len(tokens)), chosen.session_id is not None]
        parameters = queries.filled(tokens) | chosen.of_session
        return await self._container.query(text, parameters, owner.key)


def _asked_for(terms: list[Term]) -> list[Term]:
    """As many terms as a query takes; for a long text its longest words, which are the rarest."""
    chosen: list[Term] = []
    tokens: set[str] = set()
    for term in sorted(terms, key=lambda term: -max(map(len, term))):
        if len(tokens | term) <= MOST_TOKENS:
            tokens |= term
            chosen.append(term)
    return [term for term in terms if term in chosen]


def _counted(matches: Sequence[Match]) -> Counter[Term]:
    return Counter(term for match in matches for term in match.having)


def _rarer(terms: Sequence[Term], matches: Sequence[Match]) -> list[Term]:
    """The rarest terms, as long as together they occur in at most a quarter of the matches."""
    counts = _counted(matches)
    chosen: list[Term] = []
    total = 0
    for term in sorted(terms, key=lambda term: counts[term]):
        total += counts[term]
        if total > len(matches) / 4:
            break
        chosen.append(term)
    return chosen


def _estimated(rounds: Sequence[tuple[list[Term], list[Match]]]) -> dict[Term, float]:
    """How many memories have each term. The last round found all memories with one of its terms.
    The share of those that an earlier round found shows how many of the others it missed."""
    having: dict[Term, float] = {}
    scale = 1.0
    seen: set[str] = set()
    for terms, matches in reversed(rounds):
        if seen:
            again = sum(match.document_id in seen for match in matches)
            scale *= max(_AT_LEAST, len(seen) / max(again, 1))
        counts = _counted(matches)
        having |= {term: counts[term] * scale for term in terms if term not in having}
        seen = {match.document_id for match in matches}
    return having


async def content_of(container: Container, document: Document) -> Any:
    """A memory's content, from its chunks if it is large. None if it was forgotten meanwhile.
    Raises Damaged."""
    if "content" in document:
        return document["content"]
    try:
        ids = documents.chunk_ids(document)
        return await load_json(container, ids, document["owner"], document["chunks"])
    except Damaged as problem:
        damage = problem
    try:
        found = await container.read(document["id"], document["owner"])
    except NotFound:
        return None
    if isinstance(found, dict) and found.get("kind") == documents.FORGOTTEN:
        return None
    raise damage
