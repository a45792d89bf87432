"""Starts Microsoft's public emulator container, runs the tests that need only a store, stops it.

python -m tests.support.container [PYTEST ARGUMENTS]
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.support.endpoints import INTERRUPTED, run, with_tests

COMPOSE = Path(__file__).parents[2] / "emulator" / "compose.yaml"
ENDPOINT = "http://127.0.0.1:8081"
PATIENCE = 180  # seconds until the container answers; the image is pulled before

NO_DOCKER = (
    "make test-container needs Docker with Compose, which was not found or does not run."
    " `make test-endpoint ON=vnext` runs the same tests on our own emulator, which behaves like the"
    " container."
)


def main() -> int:
    if not docker_runs():
        print(NO_DOCKER, file=sys.stderr)
        return 1
    # A project of its own, so that the data of a container that is used otherwise stays.
    compose = ["docker", "compose", "--file", str(COMPOSE), "--project-name", "cosmosservice-test"]
    try:
        subprocess.run([*compose, "up", "--detach"], check=True)
        if not answers():
            subprocess.run([*compose, "logs", "--tail", "50"], check=False)
            print(f"The container did not answer within {PATIENCE} seconds.", file=sys.stderr)
            return 1
        return run(ENDPOINT, None, "vnext", with_tests(sys.argv[1:]))
    except subprocess.CalledProcessError:
        print("Docker could not start the container: see above.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        subprocess.run([*compose, "down", "--volumes"], check=False)


def docker_runs() -> bool:
    if shutil.which("docker") is None:
        return False
    commands = (["docker", "compose", "version"], ["docker", "info"])
    return all(subprocess.run(each, capture_output=True).returncode == 0 for each in commands)


def answers() -> bool:
    """Asks from outside, since the image may have no program to ask with inside."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{ENDPOINT}/", timeout=5):
                return True
        except urllib.error.HTTPError as error:
            if error.code < 500:  # otherwise it listens, but is not ready
                return True
        except OSError:
            pass  # it does not listen yet
        time.sleep(1)
    return False


if __name__ == "__main__":
    sys.exit(main())
