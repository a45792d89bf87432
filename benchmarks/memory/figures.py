"""What was measured, as JSON, of which docs/generate/memory.py makes the tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.memory.material import User
from benchmarks.memory.measure import Answered, by_session, of_half, score
from cosmosservice.memory.words import terms_of, words_of

FILE = Path(__file__).parents[2] / "docs" / "memory.json"
DEPTHS = (5, 10, 20)
CHARACTERS_OF_A_TOKEN = 4

Figures = dict[str, Any]


def record(figures: Mapping[str, Any]) -> None:
    """Replaces these figures; those that this run did not measure stay."""
    known = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    lines = [
        f"{json.dumps(name)}: {json.dumps(found, sort_keys=True)}"
        for name, found in sorted((known | dict(figures)).items())
    ]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def of_set(everybody: Sequence[User], asked: Mapping[str, list[Answered]]) -> Figures:
    return {
        "users": len(everybody),
        "turns": sum(len(session.events) for user in everybody for session in user.sessions),
        "questions": sum(len(user.questions) for user in everybody),
        "services": {name: _of_service(everybody, each) for name, each in asked.items()},
    }


def _of_service(everybody: Sequence[User], answered: list[Answered]) -> Figures:
    session_of = {
        event.id: session.id
        for user in everybody
        for session in user.sessions
        for event in session.events
    }
    held_out = of_half(answered, "report")
    return {
        "all": scores(answered),
        "tuned on": scores(of_half(answered, "tune")),
        "held out": scores(held_out),
        "by session": scores(by_session(answered, session_of)),
        "by category": _by(answered, lambda each: each.question.category),
        "held out, by language": _by(held_out, lambda each: each.question.language),
        "held out, by category": _by(held_out, lambda each: each.question.category),
        "held out, by kind": _by(held_out, _kind_of(everybody)),
    }


def scores(answered: Iterable[Answered]) -> Figures:
    answered = list(answered)
    found: Figures = {"questions": len(answered)}
    for depth in DEPTHS:
        each = score(answered, depth)
        found[f"{depth}"] = {
            "hit": round(each.hit, 4),
            "recall": round(each.recall, 4),
            "all": round(each.whole, 4),
            "mrr": round(each.mrr, 4),
        }
    return found


def tokens(answered: Sequence[Answered], count: int) -> float:
    """What the first `count` hits of a search are to the model, on average."""
    total = sum(sum(each.characters[:count]) for each in answered)
    return round(total / len(answered) / CHARACTERS_OF_A_TOKEN)


def _by(answered: Iterable[Answered], name: Any) -> Figures:
    parts: dict[str, list[Answered]] = {}
    for each in answered:
        parts.setdefault(name(each), []).append(each)
    return {each: scores(parts[each]) for each in sorted(parts) if each}


def _kind_of(everybody: Sequence[User]) -> Any:
    """Whether an answer contains a word of the question."""
    texts = {
        event.id: event.content.parts[0].text  # type: ignore[union-attr, index]
        for user in everybody
        for session in user.sessions
        for event in session.events
    }

    def kind(answered: Answered) -> str:
        words = set().union(*(term.said for term in terms_of(answered.question.text)))
        shares = any(
            not words.isdisjoint(words_of(texts[each] or "")) for each in answered.question.answers
        )
        return "a word of the question" if shares else "no word of it"

    return kind
