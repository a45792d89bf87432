"""Ranking: BM25 over the owner's own memories, and what their neighbours lend them.

An answer such as "Yes, last May!" has none of the words that are asked for. The question before it
has them. So a memory that matches lends a share of its score to the places around it, and most of
it to the place behind a question.
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
    """What was found on one half of benchmarks/memory; docs/memory.md has what each brings."""

    saturation: float = 1.2  # k1: how soon a word that is said again counts no more
    length: float = 0.3  # b: how much more often a long text has to say it
    # How many memories an owner is taken to have: counting them would cost more than it brings.
    memories: float = 500.0
    answer: float = 1.0  # lent by a question to the place behind it
    next: float = 0.4  # lent by anything else to the place behind it
    previous: float = 0.2
    second: float = 0.1  # two places away, on either side
    author: float = 1.0  # a word that is in the author's name, beside one that was said


WEIGHTS: Final = Weights()

_RECIPROCAL: Final = 60  # the usual constant: the first ranks do not count too much


@dataclass
class Match:
    """What a search knows of a memory that has one of the words."""

    document_id: str
    at: str
    time: float
    length: int
    asks: bool
    counts: dict[str, int]


def matches_of(rows: Iterable[Mapping[str, Any]]) -> list[Match]:
    """One for each memory, of rows of which a large memory has several."""
    found: dict[str, Match] = {}
    for row in rows:
        document_id = row.get("of") or row["id"]
        tokens = row["tokens"]
        match = found.get(document_id)
        if match is None:
            match = found[document_id] = Match(
                document_id=document_id,
                at=row["at"],
                time=row["time"],
                length=row["length"],
                asks=bool(row.get("asks")),
                counts={},
            )
        match.counts.update(dict.fromkeys(tokens, 1))
        match.counts.update(row["counts"])
    return list(found.values())


def rarity(having: float, weights: Weights) -> float:
    """What a word is worth that so many memories have."""
    return math.log(1 + weights.memories / (having + 0.5))


def frequency(match: Match, term: Term) -> int:
    return max((match.counts.get(token, 0) for token in term), default=0)


def direct_scores(
    terms: Sequence[Term],
    matches: Sequence[Match],
    having: Mapping[Term, float],
    weights: Weights,
) -> dict[str, float]:
    """BM25, by document id."""
    if not matches:
        return {}
    average = sum(match.length for match in matches) / len(matches) or 1
    worth = {
        term: rarity(having.get(term, 0.0), weights)
        * (weights.author if min(term).startswith(AUTHOR) else 1)
        for term in terms
    }
    k1, b = weights.saturation, weights.length
    scores: dict[str, float] = {}
    for match in matches:
        norm = k1 * (1 - b + b * match.length / average)
        score = 0.0
        for term in terms:
            count = frequency(match, term)
            if count:
                score += worth[term] * count * (k1 + 1) / (count + norm)
        if score:
            scores[match.document_id] = score
    return scores


@dataclass(frozen=True)
class Ranked:
    """Places, the best first, and the scores of the memories that match by themselves."""

    places: list[str]
    direct: Mapping[str, float]  # by document id

    def sorted(self, found: Sequence[Document]) -> list[Document]:
        """Memories by their places; at one place the one that matches better, or is newer."""
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


def ranked(matches: Sequence[Match], direct: Mapping[str, float], weights: Weights) -> Ranked:
    """All places that have a score, the best first and of equals the newest."""
    scores: dict[str, float] = {}
    lent: dict[str, float] = defaultdict(float)
    times: dict[str, float] = {}
    for match in matches:
        score = direct.get(match.document_id)
        if score is None:
            continue
        scores[match.at] = max(scores.get(match.at, 0.0), score)
        times[match.at] = max(times.get(match.at, 0.0), match.time)
        conversation, place = parse_place(match.at)
        shares = (
            (1, weights.answer if match.asks else weights.next),
            (-1, weights.previous),
            (2, weights.second),
            (-2, weights.second),
        )
        for distance, share in shares:
            if share and place + distance >= 0:
                other = place_in(conversation, place + distance)
                lent[other] += share * score
                times.setdefault(other, match.time)
    for at, share in lent.items():
        scores[at] = scores.get(at, 0.0) + share
    return Ranked(sorted(scores, key=lambda at: (-scores[at], -times[at], at)), direct)


def fused(*rankings: Ranked) -> Ranked:
    """Several rankings as one, by reciprocal rank: what stands high in any of them stands high."""
    scores: dict[str, float] = defaultdict(float)
    direct: dict[str, float] = {}
    for ranking in rankings:
        direct |= ranking.direct
        for number, at in enumerate(ranking.places):
            scores[at] += 1 / (_RECIPROCAL + number)
    return Ranked(sorted(scores, key=lambda at: (-scores[at], at)), direct)
