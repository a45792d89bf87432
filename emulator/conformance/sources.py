"""Where the tests come from: source distributions of a package index, and checkouts."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

from server import WORK


class LeftOut(Exception):
    """A suite cannot run here; says what it lacks."""


def checkout(variable: str, repository: str, folder: str) -> Path:
    """A folder of the checkout that an environment variable names."""
    root = os.environ.get(variable)
    if not root:
        raise LeftOut(f"set {variable} to a checkout of {repository}")
    found = Path(root).resolve() / folder
    if not found.is_dir():
        raise LeftOut(f"{variable}={root} has no folder {folder}")
    return found


def distribution(library: str, python: Path = Path(sys.executable)) -> Path:
    """The source distribution of a library, of the version that `python` has."""
    version, name = version_of(library, python), library.replace("-", "_")
    folder = WORK / f"{name}-{version}"
    if not folder.exists():
        WORK.mkdir(exist_ok=True)
        command: list[str | Path] = [
            python,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--dest",
            WORK,
        ]
        subprocess.run([*command, "--no-binary", library, f"{library}=={version}"], check=True)
        with tarfile.open(WORK / f"{folder.name}.tar.gz") as archive:
            archive.extractall(WORK, filter="data")
    return folder


def version_of(library: str, python: Path = Path(sys.executable)) -> str:
    code = f"import importlib.metadata as m; print(m.version({library!r}))"
    found = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    return found.stdout.strip()
