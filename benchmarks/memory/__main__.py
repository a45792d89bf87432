"""Measures how well memories are found, and writes the tables into docs/memory.md.

python -m benchmarks.memory [--print] [--locomo FILE] [--longmemeval FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.memory.costs import Cost, costs
from benchmarks.memory.material import USERS, User, users
from benchmarks.memory.measure import Answered, by_session, measure, of_half, score
from benchmarks.memory.peers import ABLATIONS, peers
from benchmarks.memory.public import locomo, longmemeval
from cosmosservice.memory.words import terms_of, words_of

PAGE = Path(__file__).parents[2] / "docs" / "memory.md"
_PART = re.compile(r"(<!-- measured: ([\w-]+) -->\n).*?(<!-- end of measured -->)", re.DOTALL)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="How well memories are found.")
    parser.add_argument("--print", action="store_true", help="only print the tables")
    parser.add_argument("--locomo", type=Path, help="locomo10.json")
    parser.add_argument(
        "--longmemeval", type=Path, help="longmemeval_s.json or another of its files"
    )
    parser.add_argument("--only-public", action="store_true", help="measure only the given files")
    options = parser.parse_args(arguments)
    parts = {} if options.only_public else asyncio.run(_tables(users()))
    for name, path, read in (
        ("locomo", options.locomo, locomo),
        ("longmemeval", options.longmemeval, longmemeval),
    ):
        if path is not None:
            parts |= asyncio.run(_public(name, read(path)))
    for name, table in parts.items():
        print(f"{name}\n\n{table}\n")
    if not options.print:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(
            _PART.sub(
                lambda found: (
                    f"{found[1]}{parts[found[2]]}\n{found[3]}" if found[2] in parts else found[0]
                ),
                text,
            ),
            encoding="utf-8",
        )
    return 0


async def _tables(everybody: Sequence[User]) -> dict[str, str]:
    asked = {name: await measure(opened, everybody) for name, opened in peers().items()}
    ours = {name: await measure(opened, everybody) for name, opened in ABLATIONS.items()}
    reported = {name: of_half(answered, "report") for name, answered in asked.items()}
    without = {name: of_half(answered, "report") for name, answered in ours.items()}
    return {
        "found": _table("service", reported, _columns()),
        "found-by-language": _table("service", reported, _languages()),
        "found-by-kind": _table("service", reported, _kinds(everybody)),
        "ablation": _table("CosmosMemoryService", without, _columns()),
        "set": _described(everybody, next(iter(reported.values()))),
        "costs": _costs(await costs()),
    }


async def _public(name: str, everybody: Sequence[User]) -> dict[str, str]:
    """By turn and by session, and by category, on all conversations and on those that were not
    used for tuning."""
    session_of = {
        event.id: session.id
        for user in everybody
        for session in user.sessions
        for event in session.events
    }
    turns = {each: await measure(opened, everybody) for each, opened in peers().items()}
    sessions = {each: by_session(answered, session_of) for each, answered in turns.items()}
    held_out = {each: of_half(answered, "report") for each, answered in turns.items()}
    categories = sorted({q.category for user in everybody for q in user.questions})
    return {
        name: _table("by turn", turns, _depths()),
        f"{name}-held-out": _table("by turn", held_out, _depths()),
        f"{name}-by-session": _table("by session", sessions, _depths()),
        f"{name}-by-category": _table("hit@10", turns, _of_categories(categories)),
        f"{name}-whole-by-category": _table(
            "all evidence@10", turns, _of_categories(categories, whole=True)
        ),
    }


def _depths() -> dict[str, Column]:
    def at(count: int, name: str) -> Column:
        return lambda answered: f"{getattr(score(answered, count), name):.3f}"

    columns = {f"hit@{count}": at(count, "hit") for count in (5, 10, 20)}
    columns |= {f"recall@{count}": at(count, "recall") for count in (5, 10, 20)}
    columns |= {f"all@{count}": at(count, "whole") for count in (10, 20)}
    return columns | {"MRR@10": at(10, "mrr")}


def _of_categories(categories: Sequence[str], *, whole: bool = False) -> dict[str, Column]:
    def of(category: str) -> Column:
        def tell(answered: list[Answered]) -> str:
            found = score([each for each in answered if each.question.category == category])
            return f"{found.whole if whole else found.hit:.3f} of {found.questions}"

        return tell

    return {category: of(category) for category in categories}


def _costs(measured: Sequence[Cost]) -> str:
    head = ["memories of the user", "RU to add one", "requests of a search", "median RU"]
    lines = [
        [*head, "most RU", "median ms of the processor", "the first of a process"],
        ["---"] * 7,
    ]
    lines += [
        [
            f"{each.memories:,}",
            f"{each.add_units:.1f}",
            f"{each.requests:.1f}",
            f"{each.median_units:.1f}",
            f"{each.largest_units:.1f}",
            f"{each.median_ms:.1f}",
            f"{each.cold_ms:.1f}",
        ]
        for each in measured
    ]
    return _joined(lines)


Column = Callable[[list[Answered]], str]


def _columns() -> dict[str, Column]:
    return {
        "hit@10": lambda answered: f"{score(answered).hit:.3f}",
        "recall@10": lambda answered: f"{score(answered).recall:.3f}",
        "MRR": lambda answered: f"{score(answered).mrr:.3f}",
    }


def _languages() -> dict[str, Column]:
    def of(language: str) -> Column:
        return lambda answered: _hit(
            [each for each in answered if each.question.language == language]
        )

    return {language: of(language) for language in USERS}


def _kinds(everybody: Sequence[User]) -> dict[str, Column]:
    """Splits the questions by whether an answer contains a word of the question."""
    texts = {
        event.id: event.content.parts[0].text  # type: ignore[union-attr, index]
        for user in everybody
        for session in user.sessions
        for event in session.events
    }

    def shares(answered: Answered) -> bool:
        words = set().union(*(term.said for term in terms_of(answered.question.text)))
        return any(
            not words.isdisjoint(words_of(texts[each] or "")) for each in answered.question.answers
        )

    return {
        "the answer has a word of the question": lambda a: _hit([e for e in a if shares(e)]),
        "it has none": lambda a: _hit([e for e in a if not shares(e)]),
    }


def _hit(answered: list[Answered]) -> str:
    found = score(answered)
    return f"{found.hit:.3f} of {found.questions}"


def _table(head: str, rows: dict[str, list[Answered]], columns: dict[str, Column]) -> str:
    lines = [[head, *columns], ["---"] * (len(columns) + 1)]
    lines += [
        [name, *(tell(answered) for tell in columns.values())] for name, answered in rows.items()
    ]
    return _joined(lines)


def _joined(lines: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _described(everybody: Sequence[User], reported: list[Answered]) -> str:
    turns = sum(len(session.events) for user in everybody for session in user.sessions)
    questions = sum(len(user.questions) for user in everybody)
    return (
        f"{len(everybody)} users, {len(USERS)} languages, {turns:,} turns, {questions} questions,"
        f" of which {len(reported)} are reported."
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
