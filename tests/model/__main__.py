"""Check the protocol: `python -m tests.model [names] [--without RULE] [--short]`."""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import os
import sys

from tests.model.checker import Result
from tests.model.report import describe_result
from tests.model.suite import SCENARIOS, scenario
from tests.support.figures import record

# The longest ones start first, so that no process waits for one of them at the end.
LARGEST = ("S10", "R12", "S11", "P11b", "E3c", "L4c", "L5b", "L4b")


def check(left_out: tuple[str, ...], limit: int, name: str) -> tuple[str, Result, bool]:
    """Runs a scenario. Returns the result, and whether something is wrong with it."""
    case = scenario(name, *left_out)
    result = case.check(limit)
    return name, result, result.truncated or bool(set(result.violations) - case.residues)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("names", nargs="*", help="scenarios (all if none is named)")
    parser.add_argument(
        "--without", metavar="RULE", action="append", help="leave out a rule of the protocol"
    )
    parser.add_argument("--short", action="store_true", help="no traces")
    parser.add_argument("--limit", type=int, default=3_000_000)
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    args = parser.parse_args()
    names = args.names or sorted(SCENARIOS, key=lambda name: name not in LARGEST)
    states = seconds = 0
    failed = []
    with multiprocessing.Pool(min(args.jobs, len(names)), maxtasksperchild=1) as pool:
        run = functools.partial(check, tuple(args.without or ()), args.limit)
        for name, result, bad in pool.imap_unordered(run, names):
            states += result.states
            seconds += result.seconds
            title = f"{name} ({SCENARIOS[name].__doc__})"
            print(describe_result(title, result, not args.short), flush=True)
            if bad:
                failed.append(name)
    if not args.names and not args.without:
        record("model", scenarios=len(names), states=states, broken=len(failed))
    print(f"{states} states in {seconds:.0f} s of CPU; failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
