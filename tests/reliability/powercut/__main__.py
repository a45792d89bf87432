"""`python -m tests.reliability.powercut`: kill -9 during 10,000 writes, ten times over."""

from __future__ import annotations

import argparse
import pathlib
import random
import sys
import tempfile

from tests.reliability.powercut.cut import Ledger, cut
from tests.support.figures import record

CUTS, WRITES = 10, 10_000  # figures of fewer are not kept


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.reliability.powercut")
    parser.add_argument("--writes", type=int, default=WRITES, help="in each life of the writer")
    parser.add_argument("--cuts", type=int, default=CUTS)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng, ledger = random.Random(given.seed), Ledger()
    acknowledged = problems = 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "store.db"
        for number in range(given.cuts):
            made = cut(path, ledger, number * given.writes, given.writes, rng)
            acknowledged += made.acknowledged
            problems += len(made.problems)
            print(f"cut {number + 1:>3}: {made.acknowledged:>6,} writes acknowledged", flush=True)
            for problem in made.problems[:10]:
                print(f"    {problem}")
    if given.cuts >= CUTS and given.writes >= WRITES:
        record("power-cut", cuts=given.cuts, acknowledged=acknowledged, broken=problems)
    print(f"{given.cuts} cuts, {acknowledged:,} acknowledged writes, {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
