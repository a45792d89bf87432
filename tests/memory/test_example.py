"""The example agent remembers across sessions and processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "remembering_agent.py"


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, EXAMPLE, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_new_session_knows_what_was_said_in_an_earlier_one(tmp_path):
    assert "Have you ever been to Lisbon?" in run(tmp_path, "--fresh")
    assert "You told me: “Yes, last May! The trams were wonderful.”" in run(tmp_path)
