"""Ranking: BM25 over the owner's own memories, plus a share of their neighbours' scores.

An answer such as "Yes, last May!" has none of the words of the query. The question before it has
them. So a memory that matches gives a share of its score to the places around it, and all of it to
the place after a question.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cosmosservice.account.container import Document
from cosmosservice.memory.documents import parse_place, place_in
from cosmosservice.memory.words import AUTHOR, Term


@dataclass(frozen=True)
class Weights:
    """Tuned on one half of benchmarks/memory; docs/memory.md shows the effect of each."""

    saturation: float = 1.2  # k1: how soon repeating a word stops counting
    length: float = 0.2  # b: how much more often a long text must contain a word
    # The assumed number of an owner's memories: counting them would cost more than it gains.
    memories: float = 1_000.0
    # The share of its score that a memory gives to the places around it.
    answer: float = 1.1  # a question to the one after it: the answer is wanted, not the question
    next: float = 0.3  # anything else to the one after it
    previous: float = 0.1
    second: float = 0.1  # two places away, on either side
    author: float = 1.0  # a word that is in the author's name, beside one that was said


WEIGHTS: Final = Weights()

_RECIPROCAL: Final = 60  # the usual constant, which keeps the first ranks from dominating


@dataclass
class Match:
    """What a search knows of a memory that has one of the words."""

    document_id: str
    at: str
    time: float
    length: int
    asks: bool
    having: dict[Term, int]  # the terms that it has, and how often


def matches_of(rows: Iterable[Mapping[str, Any]], terms: Sequence[Term]) -> list[Match]:
    """One match for each memory. A large memory has several rows."""
    terms_of: dict[str, list[Term]] = defaultdict(list)
    for term in terms:
        for token in term:
            terms_of[token].append(term)
    found: dict[str, Match] = {}
    for row in rows:
        document_id = row.get("of") or row["id"]
        match = found.get(document_id)
        if match is None:
            at = row.get("at") or row["beside"]
            match = found[document_id] = Match(
                document_id, at, row["time"], row["length"], bool(row.get("asks")), {}
            )
        having, counts = match.having, row["counts"]
        for token in terms_of.keys() & row["tokens"]:
            count = counts.get(token, 1)
            for term in terms_of[token]:
                having[term] = max(having.get(term, 0), count)
    return list(found.values())


def rarity(having: float, weights: Weights) -> float:
    """The weight of a word that this many memories have."""
    return math.log(1 + weights.memories / (having + 0.5))


def scores_of(
    matches: Sequence[Match], having: Mapping[Term, float], weights: Weights
) -> dict[str, dict[Term, float]]:
    """BM25, by document id and term. `having` says how many memories have each term."""
    if not matches:
        return {}
    average = sum(match.length for match in matches) / len(matches) or 1
    worth = {
        term: rarity(count, weights) * (weights.author if min(term).startswith(AUTHOR) else 1)
        for term, count in having.items()
    }
    k1, b = weights.saturation, weights.length
    scores: dict[str, dict[Term, float]] = {}
    for match in matches:
        norm = k1 * (1 - b + b * match.length / average)
        scores[match.document_id] = {
            term: worth[term] * count * (k1 + 1) / (count + norm)
            for term, count in match.having.items()
        }
    return scores


@dataclass(frozen=True)
class Ranked:
    """Places, the best first, and the scores of the memories that match by themselves."""

    places: list[str]
    direct: Mapping[str, float]  # by document id

    def sorted(self, found: Sequence[Document]) -> list[Document]:
        """Memories by their places; at the same place, the better match or the newer one first."""
        order = {at: number for number, at in enumerate(self.places)}
        last = len(order)
        return sorted(
            found,
            key=lambda each: (
                order.get(each["at"], last),
                -self.direct.get(each["id"], 0.0),
                -each["time"],
                each["id"],
            ),
        )


NOTHING: Final = Ranked([], {})


def ranked(
    matches: Sequence[Match], scores: Mapping[str, Mapping[Term, float]], weights: Weights
) -> Ranked:
    """All places that have a score, the best first; of equal ones, the newest first.

    A term counts once for a place: by the memory there or by a neighbour's share, whichever is
    more. Otherwise a long conversation about one topic would rank above everything else.
    """
    places: dict[tuple[str, int], dict[Term, float]] = {}
    times: dict[tuple[str, int], float] = {}
    around = ((-1, weights.previous), (2, weights.second), (-2, weights.second))
    of_others = ((0, 1.0), (1, weights.next), *around)
    of_questions = ((0, 1.0), (1, weights.answer), *around)
    for match in matches:
        conversation, place = parse_place(match.at)
        own = scores[match.document_id].items()
        for distance, share in of_questions if match.asks else of_others:
            if not share or place + distance < 0:
                continue
            at = conversation, place + distance
            here = places.get(at)
            if here is None:
                places[at] = {term: share * score for term, score in own}
                times[at] = match.time
                continue
            for term, score in own:
                lent = share * score
                if lent > here.get(term, 0.0):
                    here[term] = lent
            if not distance:
                times[at] = match.time
    order = sorted((-sum(terms.values()), -times[at], at) for at, terms in places.items())
    direct = {document_id: sum(terms.values()) for document_id, terms in scores.items()}
    return Ranked([place_in(*at) for _, _, at in order], direct)


def fused(*rankings: Ranked) -> Ranked:
    """Combines rankings by reciprocal rank: a place that is high in any of them stays high."""
    scores: dict[str, float] = defaultdict(float)
    direct: dict[str, float] = {}
    for ranking in rankings:
        direct |= ranking.direct
        for number, at in enumerate(ranking.places):
            scores[at] += 1 / (_RECIPROCAL + number)
    return Ranked(sorted(scores, key=lambda at: (-scores[at], at)), direct)
