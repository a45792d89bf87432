"""Check the protocol: `python -m tests.model [names] [--without RULE] [--short]`."""

from __future__ import annotations

import argparse
import sys

from tests.model.report import describe_result
from tests.model.suite import SCENARIOS, scenario


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("names", nargs="*", help="scenarios (all if none is named)")
    parser.add_argument("--without", metavar="RULE", help="leave out one rule of the protocol")
    parser.add_argument("--short", action="store_true", help="no traces")
    parser.add_argument("--limit", type=int, default=3_000_000)
    args = parser.parse_args()
    states = seconds = 0
    failed = []
    for name in args.names or SCENARIOS:
        case = scenario(name, args.without)
        result = case.check(args.limit)
        states += result.states
        seconds += result.seconds
        title = f"{name} ({SCENARIOS[name].__doc__})"
        print(describe_result(title, result, not args.short), flush=True)
        if set(result.violations) - case.residues or result.truncated:
            failed.append(name)
    print(f"{states} states in {seconds:.0f} s of CPU; failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
