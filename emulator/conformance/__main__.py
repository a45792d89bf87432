"""Run Microsoft's own tests of azure-cosmos against the emulator, over HTTP.

    python emulator/conformance [file …] [-k expression] [--suite search] [--jobs 2]

Fetches the source distribution of the azure-cosmos that is installed into `.conformance/`, starts
`python -m cosmos_emulator`, and prints what passed, file by file: the tests that talked to the
server apart from those that did not. The failures with their reasons go to
`.conformance/failures.txt`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import tarfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import figures
from server import WORK, serving

HERE = Path(__file__).resolve().parent
TEST_TIMEOUT = 180
FILE_TIMEOUT = 1800

# Microsoft runs these marks against its emulator …
EMULATOR_MARK = "cosmosEmulator"
# … these against accounts with vectors and full text …
SEARCH_MARK = "cosmosSearchQuery"
# … and these against accounts; the files below are what a store of documents needs most.
ACCOUNT_MARK = "cosmosLong or cosmosQuery"
SUITES = {"emulator": EMULATOR_MARK, "account": ACCOUNT_MARK, "search": SEARCH_MARK}
CORE = [
    "test_crud", "test_crud_async", "test_crud_container", "test_crud_container_async",
    "test_crud_database", "test_crud_database_async", "test_crud_subpartition",
    "test_crud_subpartition_async", "test_query", "test_query_async", "test_query_cross_partition",
    "test_query_cross_partition_async", "test_query_feed_range", "test_query_feed_range_async",
    "test_orderby", "test_multi_orderby", "test_aggregate", "test_change_feed",
    "test_change_feed_async", "test_container_properties_cache",
    "test_container_properties_cache_async",
]  # fmt: skip

DEVTOOLS = {
    "__init__.py": "",
    "azure_recorded_testcase.py": "def get_credential(**_):\n    return None\n",
    "helpers.py": "def is_live():\n    return True\n\n\nis_live_and_not_recording = is_live\n",
}


@dataclass
class FileResult:
    """What became of the tests of one file; outcomes by whether they talked to the server."""

    name: str
    touching: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    trouble: str = ""
    mark: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(description="Microsoft's tests against the emulator")
    parser.add_argument("files", nargs="*", help="names of test files; default: all")
    parser.add_argument("-k", default="", help="only tests that match, as in pytest")
    parser.add_argument("--suite", choices=SUITES, help="only one of the suites")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    tests = fetch()
    files = [tests / f"{Path(name).stem}.py" for name in options.files]
    whole = not (files or options.k)
    files = files or [tests / f"{name}.py" for name in CORE] + marked(tests)
    if options.suite:
        files = [file for file in files if mark_of(file) == SUITES[options.suite]]
    print(f"{len(files)} files. passed/all of the tests that talk to the server | of the others")
    results = []
    with serving() as account, ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(lambda file: run_file(file, options.k, account), files):
            results.append(result)
            print(line(result.name, result.touching, result.others, result.trouble), flush=True)
    rows = report(results)
    if whole:
        figures.write(rows)


def fetch() -> Path:
    """The tests of the azure-cosmos that is installed."""
    version = importlib.metadata.version("azure-cosmos")
    source = WORK / f"azure_cosmos-{version}"
    if not source.exists():
        WORK.mkdir(exist_ok=True)
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--dest", str(WORK),
             "--no-binary", "azure-cosmos", f"azure-cosmos=={version}"],
            check=True,
        )  # fmt: skip
        with tarfile.open(next(WORK.glob(f"azure_cosmos-{version}.tar.gz"))) as archive:
            archive.extractall(WORK, filter="data")
    stub = WORK / "stubs" / "devtools_testutils"
    stub.mkdir(parents=True, exist_ok=True)
    for name, text in DEVTOOLS.items():
        (stub / name).write_text(text)
    return source / "tests"


def marked(tests: Path) -> list[Path]:
    files = [file for file in sorted(tests.glob("test_*.py")) if file.stem not in CORE]
    return [file for file in files if mark_of(file) is not None]


def mark_of(file: Path) -> str | None:
    """The tests of a file that are run; None: none of them."""
    if file.stem in CORE:
        return ACCOUNT_MARK
    text = file.read_text()
    return next((mark for mark in (EMULATOR_MARK, SEARCH_MARK) if mark in text), None)


def run_file(file: Path, expression: str, account: dict[str, str]) -> FileResult:
    result = FileResult(file.name)
    outcomes = WORK / "outcomes" / f"{file.stem}.jsonl"
    outcomes.parent.mkdir(exist_ok=True)
    outcomes.unlink(missing_ok=True)
    paths = os.pathsep.join([str(HERE), str(WORK / "stubs")])
    environment = {**os.environ, **account, "PYTHONPATH": paths, "OUTCOMES": str(outcomes)}
    result.mark = mark_of(file) or ACCOUNT_MARK
    command = [
        sys.executable, "-m", "pytest", "-q", "-m", result.mark, "-p", "recorder",
        "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "asyncio_mode=auto",
        f"--timeout={TEST_TIMEOUT}", "--timeout-method=signal",
        "--tb=native", "--rootdir", str(file.parent), "-c", os.devnull, str(file),
    ]  # fmt: skip
    if expression:
        command += ["-k", expression]
    try:
        done = subprocess.run(
            command, cwd=file.parent, env=environment, timeout=FILE_TIMEOUT, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        if done.returncode not in (0, 1, 5):
            result.trouble = f"pytest ended with {done.returncode}"
        (outcomes.parent / f"{file.stem}.log").write_text(done.stdout)
    except subprocess.TimeoutExpired:
        result.trouble = f"stopped after {FILE_TIMEOUT} s"
    if outcomes.exists():
        for text in outcomes.read_text().splitlines():
            test = json.loads(text)
            (result.touching if test["touched"] else result.others)[test["outcome"]] += 1
            if test["outcome"] == "failed":
                result.failures.append(f"{file.name}::{test['name']}\n    {test['reason']}")
    return result


def line(name: str, touching: Counter[str], others: Counter[str], trouble: str = "") -> str:
    def share(counter: Counter[str]) -> str:
        return f"{counter['passed']}/{counter['passed'] + counter['failed']}"

    return f"{name:58} {share(touching):>9} | {share(others):>9}  {trouble}".rstrip()


def report(results: list[FileResult]) -> dict[str, tuple[int, int, str]]:
    """Prints the sums, and returns them by suite: of the tests that talked to the server."""
    suites = {
        EMULATOR_MARK: f"Microsoft's Python tests marked `{EMULATOR_MARK}`",
        ACCOUNT_MARK: f"{len(CORE)} files of CRUD, queries, order and change feed for accounts",
        SEARCH_MARK: f"vectors and full text, marked `{SEARCH_MARK}`",
    }
    using = (
        f"azure-cosmos {importlib.metadata.version('azure-cosmos')}, "
        f"Python {sys.version_info.major}.{sys.version_info.minor}"
    )
    rows = {}
    for mark, name in suites.items():
        some = [result for result in results if result.mark == mark]
        if not some:
            continue
        touching: Counter[str] = sum((result.touching for result in some), Counter())
        others: Counter[str] = sum((result.others for result in some), Counter())
        print(line(name, touching, others))
        rows[name] = (touching["passed"], touching["passed"] + touching["failed"], using)
    failures = [failure for result in results for failure in result.failures]
    (WORK / "failures.txt").write_text("\n".join(failures) + "\n")
    print(f"{len(failures)} failures, with their reasons in .conformance/failures.txt")
    return rows


if __name__ == "__main__":
    main()
