"""Runs files of tests with pytest, each in a process of its own, and reads what they recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from outcomes import Outcome
from server import WORK

HERE = Path(__file__).resolve().parent
TEST_TIMEOUT = 180
FILE_TIMEOUT = 1800


def run(
    files: Iterable[Path],
    *options: str,
    environment: Mapping[str, str],
    paths: Iterable[Path] = (),
    python: Path = Path(sys.executable),
    using: str,
    jobs: int = 1,
) -> Outcome:
    """`files` may also be folders; `paths` is from where they import, besides their own folder."""
    search = os.pathsep.join(map(str, [HERE, *paths]))
    environment = {**os.environ, **environment, "PYTHONPATH": search}
    total = Outcome(using)
    with ThreadPoolExecutor(jobs) as pool:
        files = list(files)
        ends = pool.map(lambda file: _run_one(python, file, options, environment), files)
        for file, outcome in zip(files, ends, strict=True):
            total.add(file.name, outcome)
    return total


def _run_one(
    python: Path, file: Path, options: Iterable[str], environment: Mapping[str, str]
) -> Outcome:
    recorded = WORK / "outcomes" / f"{file.parent.name}-{file.stem}.jsonl"
    recorded.parent.mkdir(exist_ok=True)
    recorded.unlink(missing_ok=True)
    settings = WORK / "pytest.ini"  # instead of those of the tests
    settings.write_text(f"[pytest]\nasyncio_mode = auto\ntimeout = {TEST_TIMEOUT}\n")
    command: list[str | Path] = [
        python, "-m", "pytest", "-q", "-p", "recorder", "-p", "no:cacheprovider", "-p", "no:xdist",
        "--tb=native", "-c", settings, "--rootdir", file.parent, *options, file,
    ]  # fmt: skip
    outcome = Outcome()
    try:
        done = subprocess.run(
            command, cwd=file.parent, env={**environment, "OUTCOMES": str(recorded)}, text=True,
            timeout=FILE_TIMEOUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        recorded.with_suffix(".log").write_text(done.stdout)
        if done.returncode not in (0, 1, 5):
            outcome.failures.append(f"pytest ended with {done.returncode}")
    except subprocess.TimeoutExpired:
        outcome.failures.append(f"stopped after {FILE_TIMEOUT} s")
    for line in recorded.read_text().splitlines() if recorded.exists() else []:
        test = json.loads(line)
        if test["touched"]:
            outcome.passed += test["outcome"] == "passed"
            if test["outcome"] == "failed":
                outcome.failures.append(f"{test['name']}\n    {test['reason']}")
    return outcome
