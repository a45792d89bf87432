"""Run the tests of others against the emulator: SDKs, libraries, recorded answers.

    python emulator/conformance [suite …] [--only FILE …] [-k expression]

What a package index has is fetched into `.conformance/`. A suite that needs a checkout runs if its
variable names one: AZURE_SDK_FOR_JS, LANGCHAIN_AZURE, AGENT_FRAMEWORK, DBIMP. Failures go with
their reasons to `.conformance/failures-<suite>.txt`, and the figures of whole suites to the README.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import figures
import javascript
import libraries
import microsoft
import recordings
from outcomes import Outcome
from server import WORK
from sources import LeftOut


class Suite(NamedTuple):
    title: str
    run: Callable[[list[str], str], Outcome]


def _library(name: str) -> Suite:
    return Suite(f"{name}'s own tests", partial(libraries.run, name))


SUITES = {
    "emulator": Suite(
        f"Microsoft's Python tests marked `{microsoft.EMULATOR_MARK}`",
        partial(microsoft.run, microsoft.EMULATOR_MARK),
    ),
    "account": Suite(
        f"{len(microsoft.CORE)} files of CRUD, queries, order and change feed for accounts",
        partial(microsoft.run, microsoft.ACCOUNT_MARK),
    ),
    "search": Suite(
        f"vectors and full text, marked `{microsoft.SEARCH_MARK}`",
        partial(microsoft.run, microsoft.SEARCH_MARK),
    ),
    "js": Suite("specs of the JavaScript SDK, one range", partial(javascript.run, 1)),
    "js-4": Suite("specs of the JavaScript SDK, 4 ranges", partial(javascript.run, 4)),
    "langchain": _library(libraries.LANGCHAIN),
    "langgraph": _library(libraries.LANGGRAPH),
    "agent-framework": _library(libraries.AGENTS),
    "recordings": Suite(
        "recorded answers of an account", partial(recordings.run, recordings.OF_ACCOUNT)
    ),
    "recordings-vnext": Suite(
        "recorded answers of the container", partial(recordings.run, recordings.OF_CONTAINER)
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python emulator/conformance", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("suites", nargs="*", metavar="suite", help=f"of {', '.join(SUITES)}")
    parser.add_argument("--only", nargs="+", default=[], help="only these files, without suffix")
    parser.add_argument("-k", default="", help="only tests that match, as in pytest")
    options = parser.parse_args()
    if unknown := set(options.suites) - set(SUITES):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(SUITES)}")
    ended: dict[str, Outcome] = {}
    left_out: dict[str, str] = {}
    for name in options.suites or SUITES:
        print(f"{name}: {SUITES[name].title}", flush=True)
        try:
            ended[name] = SUITES[name].run(options.only, options.k)
        except LeftOut as lack:
            left_out[name] = str(lack)
            continue
        (WORK / f"failures-{name}.txt").write_text("\n".join(ended[name].failures) + "\n")
        if not (options.only or options.k):  # at once: another suite may be interrupted
            figures.write(
                SUITES[name].title, ended[name], [suite.title for suite in SUITES.values()]
            )
    print(f"\n{'suite':20}{'ran':>6}{'passed':>8}{'failed':>8}  measured with")
    for name, outcome in ended.items():
        failed = len(outcome.failures)
        print(f"{name:20}{outcome.ran:6}{outcome.passed:8}{failed:8}  {outcome.using}")
    for name, reason in left_out.items():
        print(f"{name:20}left out: {reason}.")
    print("\nFailures, with their reasons: .conformance/failures-<suite>.txt")


if __name__ == "__main__":
    main()
