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
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
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
    # With an embedder: what a standard deviation of nearness is, beside the best match by words.
    nearness: float = 0.08
    below: float = 1.0  # standard deviations below the mean, from which nearness counts
    beside: float = 0.4  # the share of its nearness that a memory lends to those beside it


WEIGHTS: Final = Weights()


@dataclass(slots=True)
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
            if token in said:
                match.said.update(said[token])
            if token in named:
                match.named.update(named[token])
    return list(found.values())


@dataclass(slots=True)
class Candidate:
    """A memory that may be a hit. Author and length of one without a match are not known yet, and
    `score` is the most that it can have: see `Ranking.score_of`."""

    at: str
    time: float
    by_words: float  # what its words are worth, and those that it is lent
    document_id: str | None = None
    match: Match | None = None
    answer_to: Match | None = None
    nearness: float | None = None  # the cosine similarity of its vector
    by_meaning: float = 0.0
    near: float = 0.0  # the part of the score that is due to vectors
    score: float = 0.0


@dataclass(frozen=True)
class Near:
    """A memory whose vector was compared with that of the query."""

    document_id: str
    at: str
    similarity: float


class Ranking:
    """All candidates, the best first; of equal ones, the newest first."""

    def __init__(
        self,
        matches: Sequence[Match],
        having: Mapping[Term, float],
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
        self._found: list[Candidate] = []
        for at, there in self._by_at.items():
            self._found += [self._matching(at, match) for match in there]
        self._found += self._answers()
        self.candidates = self._spread()

    def share(self, length: int) -> float:
        """How much of what its neighbours lend a text of this length takes."""
        return self._few * self._weights.brief / (self._weights.brief + length)

    def score_of(self, candidate: Candidate, length: int) -> float:
        """Its score, now that the number of its words is known."""
        if candidate.match is not None:
            return candidate.score
        lent = self.share(length) * (candidate.score - candidate.near)
        return (lent + candidate.near / self._fullest) * self._fullness(length)

    def words_of(self, candidate: Candidate) -> tuple[str, ...]:
        """The words of the query that it has, the most telling first."""
        if candidate.match is None:
            return ()
        own = self._own[candidate.match.document_id]
        return tuple(term.word for term in sorted(own, key=lambda term: (-own[term], term.word)))

    def _fullness(self, length: int) -> float:
        return 1 + self._weights.fullness * min(math.log1p(length) / 3 - 1, 1.0)

    @property
    def _fullest(self) -> float:
        return 1 + self._weights.fullness

    def _weigh(self, candidate: Candidate) -> None:
        """Adds the part of its score that is due to its length; the most that it can be, if that is
        not known. What neighbours lend is at most as much as for a text without words."""
        if candidate.match is None:
            candidate.near = candidate.by_meaning * self._fullest
            candidate.score = candidate.by_words + candidate.near
        else:
            fullness = self._fullness(candidate.match.length)
            candidate.near = candidate.by_meaning * fullness
            candidate.score = candidate.by_words * fullness + candidate.near

    def _spread(self) -> list[Candidate]:
        """The best first, where each counts less by those of its conversation that are better."""
        weights = self._weights
        # A long query tells what a conversation is about, so that all its turns match.
        most = min(weights.most_spread, weights.spread / self._few**2)
        for each in self._found:
            self._weigh(each)
        self._found.sort(key=_order)
        factors: dict[str, float] = {}
        for each in self._found:
            conversation, _, _ = each.at.rpartition(".")
            factor = factors.get(conversation, 1.0)
            each.score *= factor
            each.near *= factor
            if each.match is not None:
                length = each.match.length
                factors[conversation] = factor * (1 - most * length / (weights.brief + length))
        return sorted(self._found, key=_order)

    def best_by_words(self, count: int) -> list[str]:
        """The documents of the best of those that have a word of the query."""
        matching = (each.document_id for each in self.candidates if each.document_id is not None)
        return list(islice(matching, count))

    def add(self, nearest: Sequence[Near], others: Sequence[Near] = ()) -> None:
        """Combines the scores with how near the vectors are. The nearest are candidates, the others
        are only compared. Models differ in which similarities they give, so what counts is by how
        many standard deviations one is above the mean of all that were compared."""
        weights = self._weights
        compared = [*nearest, *others]
        if not compared:
            return
        mean = statistics.fmean(each.similarity for each in compared)
        deviation = statistics.pstdev((each.similarity for each in compared), mean) or 1.0
        above = {
            each.document_id: (each.similarity - mean) / deviation + weights.below
            for each in compared
        }
        near: dict[tuple[str, int], float] = {}
        for vector in compared:
            at = parse_at(vector.at)
            near[at] = max(near.get(at, 0.0), above[vector.document_id])
        best = max((each.by_words for each in self._found), default=0.0) or 1.0
        matching = {each.document_id for each in self._found}
        self._found += [
            Candidate(each.at, 0.0, 0.0, each.document_id)
            for each in nearest
            if each.document_id not in matching and above[each.document_id] > 1e-9
        ]
        similar = {each.document_id: each.similarity for each in compared}
        for each in self._found:
            conversation, seq = parse_at(each.at)
            beside = (near.get((conversation, seq + step), 0.0) for step in (-1, 1))
            lent = weights.beside * sum(beside)
            each.by_words /= best
            each.by_meaning = weights.nearness * (near.get((conversation, seq), 0.0) + lent)
            each.nearness = similar.get(each.document_id or "")
        self.candidates = self._spread()

    def _own_of(self, match: Match) -> dict[Term, float]:
        k1, b = self._weights.saturation, self._weights.length
        norm = 1 + k1 * (1 - b + b * match.length / self._weights.pivot)
        said = (k1 + 1) / norm
        own = {term: self._worth[term] * said for term in match.said}
        for term in match.named:
            own[term] = max(own.get(term, 0.0), self._worth[term] * self._weights.author)
        return own

    def _asked(self, at: tuple[str, int], author: Any) -> Match | None:
        """A question before this turn, by another author, that matches well."""
        for other in self._by_at.get((at[0], at[1] - 1), ()):
            if other.author != author and self._is_question(other):
                return other
        return None

    def _is_question(self, match: Match) -> bool:
        return match.asks and self._totals[match.document_id] >= self._well

    def _lent(self, at: tuple[str, int], author: Any) -> dict[Term, float]:
        """What the turns around one lend to it."""
        weights = self._weights
        conversation, seq = at
        lent: dict[Term, float] = {}
        for distance, share in (
            (-1, weights.previous),
            (1, weights.next),
            (-2, weights.second),
            (2, weights.second),
        ):
            for other in self._by_at.get((conversation, seq + distance), ()):
                answers = distance == -1 and other.author != author and self._is_question(other)
                most = weights.answer if answers else share
                for term, own in self._own[other.document_id].items():
                    lent[term] = max(lent.get(term, 0.0), most * own)
        return lent

    def _matching(self, at: tuple[str, int], match: Match) -> Candidate:
        score = self._totals[match.document_id]
        lent = self._lent(at, match.author)
        if lent:
            own, share = self._own[match.document_id], self.share(match.length)
            for term, most in lent.items():
                score += max(0.0, share * most - own.get(term, 0.0))
        asked = self._asked(at, match.author)
        return Candidate(match.at, match.time, score, match.document_id, match, asked)

    def _answers(self) -> Iterable[Candidate]:
        """The turns after questions that match well, of which no memory has a word of the query."""
        for (conversation, seq), there in list(self._by_at.items()):
            after = conversation, seq + 1
            for match in there:
                if self._is_question(match) and after not in self._by_at:
                    score = sum(self._lent(after, _NOBODY).values())
                    yield Candidate(at_in(*after), match.time, score, answer_to=match)


_NOBODY: Final = object()  # equal to no author


def _order(candidate: Candidate) -> tuple[float, float, str, str]:
    return -candidate.score, -candidate.time, candidate.at, candidate.document_id or ""
