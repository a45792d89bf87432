"""Measures how well memories are found, and writes docs/memory.json.

python -m benchmarks.memory [--locomo FILE] [--longmemeval FILE] [--conversations FILE]...
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.memory.costs import costs, units
from benchmarks.memory.figures import Figures, of_set, record, scores, tokens
from benchmarks.memory.long import long_users
from benchmarks.memory.material import User, users
from benchmarks.memory.measure import Answered, measure, of_half
from benchmarks.memory.peers import ABLATIONS, OURS, Open, peers
from benchmarks.memory.public import conversations, locomo, longmemeval

PRICED = (10, 20)  # results of a search


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="How well memories are found.")
    parser.add_argument("--locomo", type=Path, help="locomo10.json")
    parser.add_argument("--longmemeval", type=Path, help="longmemeval_s.json or another of them")
    parser.add_argument(
        "--conversations",
        type=Path,
        action="append",
        default=[],
        help="further ones, in the form that benchmarks/memory/public.py describes",
    )
    parser.add_argument("--only-given", action="store_true", help="measure only the given files")
    options = parser.parse_args(arguments)
    sets: dict[str, list[User]] = {}
    if not options.only_given:
        sets |= {"own": users(), "long": long_users()}
    if options.locomo:
        sets["locomo"] = locomo(options.locomo)
    if options.longmemeval:
        sets["longmemeval"] = longmemeval(options.longmemeval)
    sets |= {path.stem: conversations(path) for path in options.conversations}
    asyncio.run(_run(sets))
    return 0


async def _run(sets: Mapping[str, Sequence[User]]) -> None:
    for name, everybody in sets.items():
        asked = await _asked(name, everybody, peers())
        record({name: of_set(everybody, asked) | {"prices": await _prices(everybody, asked[OURS])}})
    if "own" in sets:
        without = await _asked("without", sets["own"], ABLATIONS)
        reported = {name: scores(of_half(each, "report")) for name, each in without.items()}
        record({"without": reported, "costs": [dataclasses.asdict(each) for each in await costs()]})


async def _asked(
    name: str, everybody: Sequence[User], services: Mapping[str, Open]
) -> dict[str, list[Answered]]:
    asked = {}
    for service, opened in services.items():
        started = time.monotonic()
        asked[service] = await measure(opened, everybody)
        hit = scores(asked[service])["10"]["hit"]
        print(f"{name}: {service} {hit:.3f} in {time.monotonic() - started:.0f} s", flush=True)
    return asked


async def _prices(everybody: Sequence[User], answered: Sequence[Answered]) -> list[Figures]:
    """Of searches with 10 and with 20 results. The request units are those of the first user."""
    found = scores(answered)
    spent = await units(everybody[0], PRICED)
    return [
        {
            "results": results,
            "units": round(each, 2),
            "tokens": tokens(answered, results),
            "hit": found[f"{results}"]["hit"],
        }
        for results, each in zip(PRICED, spent, strict=True)
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
