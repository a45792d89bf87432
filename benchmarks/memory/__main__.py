"""Measures how well memories are found, and writes the tables into docs/memory.md.

python -m benchmarks.memory [--print]
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
from benchmarks.memory.measure import Answered, measure, of_half, score
from benchmarks.memory.peers import ABLATIONS, PEERS
from cosmosservice.memory.words import terms_of, words_of

PAGE = Path(__file__).parents[2] / "docs" / "memory.md"
_PART = re.compile(r"(<!-- measured: ([\w-]+) -->\n).*?(<!-- end of measured -->)", re.DOTALL)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="How well memories are found.")
    parser.add_argument("--print", action="store_true", help="only print the tables")
    options = parser.parse_args(arguments)
    parts = asyncio.run(_tables(users()))
    for name, table in parts.items():
        print(f"{name}\n\n{table}\n")
    if not options.print:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(
            _PART.sub(lambda found: f"{found[1]}{parts[found[2]]}\n{found[3]}", text),
            encoding="utf-8",
        )
    return 0


async def _tables(everybody: Sequence[User]) -> dict[str, str]:
    peers = {name: await measure(opened, everybody) for name, opened in PEERS.items()}
    ours = {name: await measure(opened, everybody) for name, opened in ABLATIONS.items()}
    reported = {name: of_half(answered, "report") for name, answered in peers.items()}
    without = {name: of_half(answered, "report") for name, answered in ours.items()}
    return {
        "found": _table("service", reported, _columns()),
        "found-by-language": _table("service", reported, _languages()),
        "found-by-kind": _table("service", reported, _kinds(everybody)),
        "ablation": _table("CosmosMemoryService", without, _columns()),
        "set": _described(everybody, next(iter(reported.values()))),
        "costs": _costs(await costs()),
    }


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
        words = set().union(*terms_of(answered.question.text))
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
