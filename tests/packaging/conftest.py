"""The distributions of the workspace, built once for all tests of a run."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel and the sdist of both distributions. A release gives the folder
    with those that it is about to publish, in DISTRIBUTIONS."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "dist"
    with (shared / "dist.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder)]
            folder.mkdir()
            if given := os.environ.get("DISTRIBUTIONS"):
                shutil.copytree(given, folder, dirs_exist_ok=True)
            for project, name in ((ROOT, "cosmosservice"), (ROOT / "emulator", "cosmos_emulator")):
                if list(folder.glob(f"{name}-*.whl")):
                    continue
                done = subprocess.run([*command, str(project)], capture_output=True, text=True)
                assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("cosmosservice-*.whl")
    return found


@pytest.fixture(scope="session")
def emulator_wheel(dist: Path) -> Path:
    (found,) = dist.glob("cosmos_emulator-*.whl")
    return found
