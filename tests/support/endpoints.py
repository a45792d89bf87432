"""Runs the tests that need only a store on an endpoint, or on emulators of our own over HTTP.

    python -m tests.support.endpoints [--endpoint URL] [--key KEY] [--like KIND] [PYTEST ARGUMENTS]
    python -m tests.support.endpoints --on plain,vnext tests/contract

Without an endpoint, it starts each of these in turn, as a program of its own:

    plain        one partition, replicas that never lag
    partitions   four physical partitions for each container
    lag          replicas that lag by up to 50 ms
    vnext        what Microsoft's container does differently
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.cosmos import ENDPOINT, KEY, LACKS, LIKE

INTERRUPTED = 2  # pytest's exit code after Ctrl-C

OURS = {
    "plain": [],
    "partitions": ["--partitions", "4"],
    "lag": ["--lag", "0-0.05"],
    "vnext": ["--like", "vnext"],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--endpoint", default=os.environ.get(ENDPOINT))
    parser.add_argument("--key", default=os.environ.get(KEY))
    parser.add_argument("--like", choices=sorted(LACKS), default=os.environ.get(LIKE))
    parser.add_argument("--on", default=",".join(OURS), help="which of our own: " + ", ".join(OURS))
    options, pytest = parser.parse_known_args()
    pytest = with_tests(pytest)
    if options.endpoint:
        return run(options.endpoint, options.key, options.like, pytest)
    code = 0
    for name in options.on.split(","):
        if name not in OURS:
            parser.error(f"--on: {name!r} is none of {', '.join(OURS)}")
        with emulator(*OURS[name]) as url:
            found = run(url, None, "vnext" if name == "vnext" else "endpoint", pytest)
        if found == INTERRUPTED:
            return found
        code = found or code
    return code


def with_tests(pytest: list[str]) -> list[str]:
    """The arguments for pytest, with all tests if they name none."""
    named = any(Path(each.partition("::")[0]).exists() for each in pytest)
    return pytest if named else [*pytest, "tests"]


def run(url: str, key: str | None, like: str | None, pytest: list[str]) -> int:
    """Runs pytest, and returns its exit code. After Ctrl-C, it waits until pytest has removed what
    it made."""
    environment = os.environ | {ENDPOINT: url, KEY: key or "", LIKE: like or ""}
    with subprocess.Popen([sys.executable, "-m", "pytest", *pytest], env=environment) as process:
        while True:
            with contextlib.suppress(KeyboardInterrupt):
                return process.wait()


@contextlib.contextmanager
def emulator(*options: str) -> Iterator[str]:
    """Our emulator as a program of its own, and its endpoint."""
    command = [sys.executable, "-m", "cosmos_emulator", "--port", "0", *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline().split()
            if first[:1] != ["endpoint"]:
                raise RuntimeError(f"the emulator did not start: {' '.join(options)}")
            yield first[1]
        finally:
            process.terminate()


if __name__ == "__main__":
    sys.exit(main())
