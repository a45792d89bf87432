"""Searching: the small fields of the matching memories, their ranking, and the contents of hits.

    1  the memories that have one of the words, the shortest CANDIDATES of them. Usually that is all
    2  if there are more: how many memories have each word, which the index answers; of a long query
       only some are counted
    3  all that have one of the rare words, and the shortest of those with several common ones
    4  the turns around the best of these, as far as they have a common word
    5  the contents of the best

A memory is missed only if all its words of the query are common, it has one of them (two, of a long
query) or is longer than a hundred others that have as many, and it is not beside one of the best.
tests/memory/test_exactness.py compares with a ranking of everything.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cosmosservice.account.chunks import Damaged, load_json
from cosmosservice.account.container import Container, Document
from cosmosservice.account.failures import NotFound
from cosmosservice.memory import documents, queries
from cosmosservice.memory.damage import Damage
from cosmosservice.memory.documents import Owner, at_in, parse_at
from cosmosservice.memory.queries import (
    CANDIDATES,
    MOST_COMMON,
    MOST_COUNTED,
    MOST_FORMS,
    MOST_TOKENS,
)
from cosmosservice.memory.ranking import WEIGHTS, Candidate, Match, Ranking, Weights, matches_of
from cosmosservice.memory.sources import sources_of
from cosmosservice.memory.words import Term, terms_of

_BEST: Final = 15  # turns whose neighbours are asked for
EVER: Final = 1e300  # seconds: later than any time


@dataclass(frozen=True)
class Filter:
    """Which memories may be found."""

    session_id: str | None = None
    author: str | None = None
    since: float | None = None
    until: float | None = None
    incarnation: str | None = None  # those of other incarnations are not found

    def may_have(self, document: Document) -> bool:
        """Whether it is of this session, and not known to be of another incarnation of it."""
        if self.session_id is None:
            return True
        return any(
            each.session_id == self.session_id
            and (self.incarnation is None or each.incarnation in (None, self.incarnation))
            for each in sources_of(document)
        )

    def allows(self, author: Any, time: float) -> bool:
        """Whether a hit may have this author and time. A question by somebody else, or from before
        that time, may still lead to the answer."""
        return (
            self.author in (None, author)
            and (self.since is None or time >= self.since)
            and (self.until is None or time <= self.until)
        )

    @property
    def of_hits(self) -> dict[str, Any]:
        """Author and time, as parameters."""
        found: dict[str, Any] = {} if self.author is None else {"author": self.author}
        found["since"] = -EVER if self.since is None else self.since
        found["until"] = EVER if self.until is None else self.until
        return found

    @property
    def of_session(self) -> dict[str, Any]:
        return {} if self.session_id is None else {"session_id": self.session_id}

    @property
    def is_narrow(self) -> bool:
        """Whether it may exclude many of the best matches."""
        return self.author is not None or self.since is not None or self.until is not None


@dataclass(frozen=True)
class Start:
    """Where a page begins: at a time, without the memories of that time that were seen."""

    time: float = -EVER
    seen: frozenset[str] = frozenset()

    def after(self, rows: Sequence[Document]) -> Start:
        last = rows[-1]["time"]
        seen = frozenset(each["id"] for each in rows if each["time"] == last)
        return Start(last, seen | self.seen if last == self.time else seen)


@dataclass(frozen=True)
class Hit:
    """A memory that was found, with its score and why."""

    document: Document
    score: float
    words: tuple[str, ...] = ()
    answer_to: str | None = None
    nearness: float | None = None

    @property
    def match(self) -> dict[str, Any]:
        """For the metadata of the memory."""
        why: dict[str, Any] = {"words": list(self.words), "score": round(self.score, 4)}
        if self.answer_to is not None:
            why["answer_to"] = self.answer_to
        if self.nearness is not None:
            why["nearness"] = round(self.nearness, 4)
        return why


class Searching:
    """Looks for memories by their words."""

    def __init__(self, container: Container, damage: Damage, weights: Weights = WEIGHTS) -> None:
        self._container = container
        self._damage = damage
        self._weights = weights

    async def rank(self, owner: Owner, query: str, chosen: Filter) -> Ranking:
        """The memories that match, the best first."""
        terms = _asked_for(terms_of(query))
        if not terms:
            return Ranking([], {}, self._weights)
        return await _Search(self._container, self._damage, self._weights, owner, chosen).of(terms)

    async def hits(self, owner: Owner, ranking: Ranking, limit: int, chosen: Filter) -> list[Hit]:
        """The best memories, as far as they still exist and the filter allows them. A few more than
        the limit, since some may turn out to be damaged."""
        found: list[Hit] = []
        rest = [
            each
            for each in ranking.candidates
            if each.match is None or chosen.allows(each.match.author, each.match.time)
        ]
        count = MOST_TOKENS if chosen.is_narrow else min(limit + _SPARE, MOST_TOKENS)
        while rest and (len(found) < limit or found[limit - 1].score < rest[0].score):
            some, rest = rest[:count], rest[count:]
            there = await self.contents(owner, list(dict.fromkeys(each.at for each in some)))
            usable = [each for each in there if chosen.may_have(each)]
            found += _hits_of(some, usable, ranking, chosen)
            found.sort(key=_order)
        return found

    async def contents(self, owner: Owner, turns: Sequence[str]) -> list[Document]:
        """The memories of these turns, except damaged ones."""
        found: list[Document] = []
        for start in range(0, len(turns), MOST_TOKENS):
            tokens = [f"#{at}" for at in turns[start : start + MOST_TOKENS]]
            text = queries.contents(queries.slots(len(tokens)))
            found += await self._container.query(text, queries.filled("p", tokens), owner.key)
        return list(filter(self._damage.is_memory, found))


_SPARE: Final = 4


def _hits_of(
    candidates: Sequence[Candidate],
    there: Sequence[Document],
    ranking: Ranking,
    chosen: Filter,
) -> list[Hit]:
    matching = {each.document_id: each for each in candidates if each.document_id is not None}
    answers = {each.at: each for each in candidates if each.document_id is None}
    hits: list[Hit] = []
    for document in there:
        if not chosen.allows(document.get("author"), document["time"]):
            continue
        mine = [
            _matching(document, matching.get(document["id"]), ranking),
            _answering(document, answers.get(document["at"]), ranking),
        ]
        possible = [each for each in mine if each is not None]
        if possible:
            hits.append(max(possible, key=lambda each: each.score))
    return hits


def _matching(document: Document, candidate: Candidate | None, ranking: Ranking) -> Hit | None:
    if candidate is None or not isinstance(document.get("length"), int):
        return None
    asked = candidate.answer_to
    asked_id = None if asked is None else asked.memory_id
    score = ranking.score_of(candidate, document["length"])
    return Hit(document, score, ranking.words_of(candidate), asked_id, candidate.nearness)


def _answering(document: Document, candidate: Candidate | None, ranking: Ranking) -> Hit | None:
    """A memory without a word of the query, if it follows a question by somebody else."""
    if candidate is None or candidate.answer_to is None:
        return None
    asked, length = candidate.answer_to, document.get("length")
    if document.get("author") == asked.author or not isinstance(length, int):
        return None
    return Hit(document, ranking.score_of(candidate, length), (), asked.memory_id)


def _order(hit: Hit) -> tuple[float, float, str, str]:
    document = hit.document
    return -hit.score, -document["time"], document["at"], document["id"]


class _Search:
    """One search."""

    def __init__(
        self,
        container: Container,
        damage: Damage,
        weights: Weights,
        owner: Owner,
        chosen: Filter,
    ) -> None:
        self._container = container
        self._damage = damage
        self._weights = weights
        self._owner = owner
        self._chosen = chosen
        self._in_session = chosen.session_id is not None
        self._terms: Sequence[Term] = ()
        self._found: dict[str, Match] = {}

    async def of(self, terms: Sequence[Term]) -> Ranking:
        self._terms = terms
        rows = await self._having(terms)
        first = self._note(rows)
        if len(rows) < CANDIDATES:
            counts = Counter(term for match in first for term in match.having)
            return self._ranking({term: counts[term] for term in terms})
        having = await self._counted(Counter(term for match in first for term in match.having))
        rare, common = _divided(having)
        await self._look_further(first, rare, common)
        await self._look_around(self._ranking(having), common)
        return self._ranking(having)

    async def _counted(self, among: Mapping[Term, int]) -> dict[Term, float]:
        """How many memories have each word, of which `among` so many of the first ones do. Of a
        long query, the rarest and the most common word are counted. The others are taken to be as
        common, compared with the most common one, as they are among the first."""
        *others, most = sorted(self._terms, key=lambda term: among[term])
        counted = [*others[: MOST_COUNTED - 1], most]
        numbers = await asyncio.gather(*map(self._how_many, counted))
        known = dict(zip(counted, numbers, strict=True))
        scale = known[most] / max(1, among[most])
        return {term: known.get(term, among[term] * scale) for term in self._terms}

    async def _how_many(self, term: Term) -> int:
        tokens = sorted(term.tokens)
        text = queries.how_many(queries.slots(len(tokens)), in_session=self._in_session)
        found: list[Any] = await self._query(text, queries.filled("t", tokens))
        return int(found[0]) if found and isinstance(found[0], int | float) else 0

    def _ranking(self, having: Mapping[Term, float]) -> Ranking:
        return Ranking(list(self._found.values()), having, self._weights)

    async def _having_and_noted(self, terms: Sequence[Term]) -> None:
        self._note(await self._having(terms))

    async def _having(self, terms: Sequence[Term]) -> list[Document]:
        tokens = _tokens(terms)
        text = queries.having(queries.slots(len(tokens)), in_session=self._in_session)
        return await self._query(text, queries.filled("t", tokens))

    async def _look_further(
        self, first: Sequence[Match], rare: Sequence[Term], common: Sequence[Term]
    ) -> None:
        """Reads all memories with a rare word, and the best of those with common ones."""
        tokens = _tokens(self._terms)
        size = queries.slots(len(tokens))
        looks: list[Coroutine[Any, Any, object]] = []
        if rare:
            looks.append(self._having_and_noted(rare))
        if len(common) > 1:
            looks.append(self._together(common[:MOST_COMMON]))
        names = sorted({str(term.name) for match in first for term in match.named})
        if names:
            text = queries.newest(queries.slots(len(names)), in_session=self._in_session)
            looks.append(self._look(text, queries.filled("t", names)))
        if self._chosen.is_narrow:
            of_author = self._chosen.author is not None
            text = queries.chosen(size, of_author=of_author, in_session=self._in_session)
            looks.append(self._look(text, queries.filled("t", tokens) | self._chosen.of_hits))
        await asyncio.gather(*looks)

    async def _together(self, terms: Sequence[Term]) -> None:
        """Memories that have two of these words; if there are too many, three, and so on. Of a long
        query, too many have two."""
        parameters: dict[str, Any] = {}
        for number, term in enumerate(terms):
            forms = sorted(term.tokens)[:MOST_FORMS]
            parameters |= queries.filled(f"w{number}_", forms, MOST_FORMS)
        fewest = 2 if len(self._terms) <= MOST_COUNTED else min(3, len(terms))
        for level in range(fewest, len(terms) + 1):
            text = queries.together(len(terms), level, in_session=self._in_session)
            if await self._look(text, parameters) < queries.TOGETHER:
                return

    async def _look_around(self, ranking: Ranking, common: Sequence[Term]) -> None:
        """Reads the turns around the best that have one of the common words."""
        turns: dict[str, None] = {}
        for candidate in ranking.candidates[:_BEST]:
            conversation, seq = parse_at(candidate.at)
            for distance in (-1, 1, -2, 2):
                if seq + distance >= 0:
                    turns[f"#{at_in(conversation, seq + distance)}"] = None
        tokens = _tokens(common)
        around = list(turns)[:MOST_TOKENS]
        text = queries.around(
            queries.slots(len(around)), queries.slots(len(tokens)), in_session=self._in_session
        )
        await self._look(text, queries.filled("p", around) | queries.filled("t", tokens))

    async def _look(self, text: str, parameters: Mapping[str, Any]) -> int:
        rows = await self._query(text, parameters)
        self._note(rows)
        return len(rows)

    async def _query(self, text: str, parameters: Mapping[str, Any]) -> list[Document]:
        every = {**parameters, **self._chosen.of_session}
        return await self._container.query(text, every, self._owner.key)

    def _note(self, rows: Sequence[Document]) -> list[Match]:
        usable = [row for row in rows if "of" in row or self._chosen.may_have(row)]
        matches = matches_of(filter(self._damage.is_match, usable), self._terms)
        for match in matches:
            known = self._found.setdefault(match.document_id, match)
            known.said |= match.said
            known.named |= match.named
            known.memory_id = known.memory_id or match.memory_id
        return matches


def _tokens(terms: Sequence[Term]) -> list[str]:
    return sorted({token for term in terms for token in term.tokens})


def _asked_for(terms: list[Term]) -> list[Term]:
    """As many terms as a query takes; for a long text its longest words, which are the rarest."""
    chosen: list[Term] = []
    tokens: set[str] = set()
    for term in sorted(terms, key=lambda term: -len(term.word)):
        if len(tokens | term.tokens) <= MOST_TOKENS:
            tokens |= term.tokens
            chosen.append(term)
    return [term for term in terms if term in chosen]


def _divided(having: Mapping[Term, float]) -> tuple[list[Term], list[Term]]:
    """The rarest words, as many as one query can read all memories of, and the others."""
    rarest = sorted(having, key=lambda term: having[term])
    total = 0.0
    for number, term in enumerate(rarest):
        total += having[term]
        if total >= CANDIDATES:
            return rarest[:number], rarest[number:]
    return rarest, []


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
