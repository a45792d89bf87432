"""Ranking: which memories match, and how well.

    own       each word of the query that a memory has counts by its rarity, and more in a short
              text than in a long one; a word that is its author's name counts more
    lent      the turns around it lend it the words that it lacks, at a share that shrinks with its
              own length: "Yes, last May!" needs the words of the question before it, and an essay
              does not
    answers   the turn after a question that matches well, by another author, is a hit even if it
              has no word of the query. Nothing else is a hit without one
    spread    after a long hit, others of the same conversation count less: the first ones are not
              for one conversation that repeats what it is about

How often a text repeats a word does not count: in conversations that adds nothing (docs/memory.md).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from cosmosservice.memory.documents import at_in, parse_at
from cosmosservice.memory.words import Term


@dataclass(frozen=True)
class Weights:
    """Tuned on one half of each set of benchmarks/memory; docs/memory.md shows their effect."""

    saturation: float = 0.9  # k1 of BM25
    length: float = 0.9  # b of BM25: how much a long text counts less than a short one
    pivot: float = 90.0  # words of a text of medium length
    # The assumed number of an owner's memories: counting them would cost more than it gains.
    memories: float = 1_000.0
    author: float = 3.0  # a word that is the author's name
    # The shares of their words that the turns around a memory lend it.
    previous: float = 0.3
    next: float = 0.3
    second: float = 0.1  # two turns away, on either side
    brief: float = 40.0  # words of a text that gets half of these shares
    telling: float = 12.0  # words of a query that needs no more; a longer one is long
    fullness: float = 0.2  # how much less a text without words counts than one of twenty
    spread: float = 0.15  # how much less others of its conversation count after a very long hit
    most_spread: float = 0.8  # with a long query
    answer: float = 1.2  # the share of a question that matches well, instead of `previous`
    well: float = 0.4  # what that is: this share of the best match
    # With an embedder: the share of the nearest vector beside the best match by words.
    nearness: float = 0.45
    beside: float = 0.3  # the share of its nearness that a memory lends to those beside it
    unlike: float = 0.2  # the cosine similarity of texts that have nothing in common


WEIGHTS: Final = Weights()


@dataclass
class Match:
    """What a search knows of a memory that has one of the words."""

    document_id: str
    at: str
    time: float
    length: int
    asks: bool
    author: Any
    memory_id: str | None
    said: set[Term] = field(default_factory=set)
    named: set[Term] = field(default_factory=set)

    @property
    def having(self) -> set[Term]:
        return self.said | self.named


def matches_of(rows: Iterable[Mapping[str, Any]], terms: Sequence[Term]) -> list[Match]:
    """One match for each memory. A large memory has several rows."""
    said: dict[str, list[Term]] = defaultdict(list)
    named: dict[str, list[Term]] = defaultdict(list)
    for term in terms:
        for token in term.said:
            said[token].append(term)
        if term.name is not None:
            named[term.name].append(term)
    found: dict[str, Match] = {}
    for row in rows:
        document_id = row.get("of") or row["id"]
        match = found.get(document_id)
        if match is None:
            match = found[document_id] = Match(
                document_id,
                row.get("at") or row["beside"],
                row["time"],
                row["length"],
                row.get("asks") is True,
                row.get("author"),
                row.get("memory_id"),
            )
        for token in row["tokens"]:
            match.said.update(said.get(token, ()))
            match.named.update(named.get(token, ()))
    return list(found.values())


@dataclass(frozen=True)
class Candidate:
    """A memory that may be a hit. Author and length of one without a match are not known yet, and
    `score` is the most that it can have: see `Ranking.score_of`."""

    at: str
    time: float
    score: float
    document_id: str | None = None
    match: Match | None = None
    words: tuple[str, ...] = ()
    answer_to: Match | None = None
    nearness: float | None = None  # the cosine similarity of its vector
    near: float = 0.0  # the part of the score that is due to vectors


@dataclass(frozen=True)
class Near:
    """A memory whose vector is near to that of the query."""

    document_id: str
    at: str
    similarity: float


class Ranking:
    """All candidates, the best first; of equal ones, the newest first."""

    def __init__(
        self,
        matches: Sequence[Match],
        having: Mapping[Term, int],
        weights: Weights = WEIGHTS,
    ) -> None:
        """`having` says how many memories have each term."""
        self._weights = weights
        self._worth = {
            term: math.log(1 + weights.memories / (count + 0.5)) for term, count in having.items()
        }
        self._few = min(1.0, weights.telling / max(1, len(having)))
        self._own = {match.document_id: self._own_of(match) for match in matches}
        self._totals = {each: sum(own.values()) for each, own in self._own.items()}
        self._well = weights.well * max(self._totals.values(), default=0.0)
        self._by_at: dict[tuple[str, int], list[Match]] = defaultdict(list)
        for match in matches:
            self._by_at[parse_at(match.at)].append(match)
        self._found = [*map(self._matching, matches), *self._answers(matches)]
        self.candidates = self._spread(self._found)

    def share(self, length: int) -> float:
        """How much of what its neighbours lend a text of this length takes."""
        return self._few * self._weights.brief / (self._weights.brief + length)

    def score_of(self, candidate: Candidate, length: int) -> float:
        """Its score, now that the number of its words is known."""
        if candidate.match is not None:
            return candidate.score
        lent = self.share(length) * (candidate.score - candidate.near)
        return (lent + candidate.near / self._fullest) * self._fullness(length)

    def _fullness(self, length: int) -> float:
        return 1 + self._weights.fullness * min(math.log1p(length) / 3 - 1, 1.0)

    @property
    def _fullest(self) -> float:
        return 1 + self._weights.fullness

    def _weighed(self, candidate: Candidate) -> Candidate:
        """With the part of its score that is due to its length; the most that it can be, if that is
        not known. What neighbours lend is at most as much as for a text without words."""
        lent, near = candidate.score - candidate.near, candidate.near
        if candidate.match is None:
            near *= self._fullest
        else:
            fullness = self._fullness(candidate.match.length)
            lent, near = lent * fullness, near * fullness
        return replace(candidate, score=lent + near, near=near)

    def _spread(self, found: Iterable[Candidate]) -> list[Candidate]:
        """The best first, where each counts less by those of its conversation that are better."""
        weights = self._weights
        # A long query tells what a conversation is about, so that all its turns match.
        most = min(weights.most_spread, weights.spread / self._few**2)
        factors: dict[str, float] = defaultdict(lambda: 1.0)
        spread: list[Candidate] = []
        for each in sorted(map(self._weighed, found), key=_order):
            conversation, _ = parse_at(each.at)
            factor = factors[conversation]
            spread.append(replace(each, score=each.score * factor, near=each.near * factor))
            length = 0 if each.match is None else each.match.length
            factors[conversation] *= 1 - most * length / (weights.brief + length)
        return sorted(spread, key=_order)

    def add(self, given: Sequence[Near], *, all_of_them: bool) -> None:
        """Combines the scores with those of the memories whose vectors are nearest. Models differ
        in which similarities they give, so only the order of these and their distances count: the
        nearest has 1, and 0 has the last of them or, if they are all, one that is `unlike`."""
        weights = self._weights
        nearest = [each for each in given if each.similarity > weights.unlike]
        if not nearest:
            return
        low = weights.unlike if all_of_them else min(each.similarity for each in nearest)
        above = max(max(each.similarity for each in nearest) - low, 1e-9)
        near: dict[tuple[str, int], float] = defaultdict(float)
        for each in nearest:
            score = (each.similarity - low) / above
            at = parse_at(each.at)
            near[at] = max(near[at], score)
        best = max((each.score for each in self._found), default=0.0) or 1.0
        similar = {each.document_id: each for each in nearest}

        def combined(candidate: Candidate) -> Candidate:
            conversation, seq = parse_at(candidate.at)
            beside = (near.get((conversation, seq + step), 0.0) for step in (-1, 1))
            lent = weights.beside * sum(beside)
            added = weights.nearness * (near.get((conversation, seq), 0.0) + lent)
            of = similar.get(candidate.document_id or "")
            return replace(
                candidate,
                score=candidate.score / best + added,
                near=added,
                nearness=None if of is None else of.similarity,
            )

        matching = {each.document_id for each in self._found}
        others = [
            Candidate(each.at, 0.0, 0.0, each.document_id)
            for each in nearest
            if each.document_id not in matching
        ]
        self._found = [combined(each) for each in (*self._found, *others)]
        self.candidates = self._spread(self._found)

    def _own_of(self, match: Match) -> dict[Term, float]:
        k1, b = self._weights.saturation, self._weights.length
        norm = 1 + k1 * (1 - b + b * match.length / self._weights.pivot)
        said = (k1 + 1) / norm
        own = {term: self._worth[term] * said for term in match.said}
        for term in match.named:
            own[term] = max(own.get(term, 0.0), self._worth[term] * self._weights.author)
        return own

    def _question(self, match: Match) -> bool:
        return match.asks and self._totals[match.document_id] >= self._well

    def _lent(self, at: tuple[str, int], author: Any = None) -> dict[Term, float]:
        """What the turns around one lend to it. By default to an answer."""
        weights = self._weights
        lent: dict[Term, float] = {}
        around = ((-1, weights.previous), (1, weights.next), (-2, weights.second))
        for distance, share in (*around, (2, weights.second)):
            for other in self._by_at.get((at[0], at[1] + distance), ()):
                answers = distance == -1 and other.author != author and self._question(other)
                most = weights.answer if answers else share
                for term, own in self._own[other.document_id].items():
                    lent[term] = max(lent.get(term, 0.0), most * own)
        return lent

    def _matching(self, match: Match) -> Candidate:
        at = parse_at(match.at)
        lent = self._lent(at, match.author)
        share = self.share(match.length)
        own = self._own[match.document_id]
        score = sum(
            max(own.get(term, 0.0), share * lent.get(term, 0.0)) for term in own.keys() | lent
        )
        asked = [
            each
            for each in self._by_at.get((at[0], at[1] - 1), ())
            if each.author != match.author and self._question(each)
        ]
        words = sorted(match.having, key=lambda term: (-own[term], term.word))
        return Candidate(
            match.at,
            match.time,
            score,
            match.document_id,
            match,
            tuple(term.word for term in words),
            asked[0] if asked else None,
        )

    def _answers(self, matches: Sequence[Match]) -> Iterable[Candidate]:
        """The turns after questions that match well, of which no memory has a word of the query."""
        for match in matches:
            conversation, seq = parse_at(match.at)
            after = conversation, seq + 1
            if self._question(match) and after not in self._by_at:
                score = sum(self._lent(after, _NOBODY).values())
                at = at_in(*after)
                yield Candidate(at, match.time, score, answer_to=match)


_NOBODY: Final = object()  # equal to no author


def _order(candidate: Candidate) -> tuple[float, float, str, str]:
    return -candidate.score, -candidate.time, candidate.at, candidate.document_id or ""
