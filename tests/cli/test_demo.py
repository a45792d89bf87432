"""`cosmosservice demo --short`: what it proves, and how it looks on a narrow terminal."""

from __future__ import annotations

import re
import subprocess
import sys


def test_the_demo_proves_that_nothing_is_lost_and_fits_80_columns(folder):
    done = subprocess.run(
        [sys.executable, "-m", "cosmosservice.cli", "demo", "--short"],
        capture_output=True,
        encoding="utf-8",
        timeout=100,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(re.findall(r"✓ (\d+) events acknowledged, \1 stored", done.stdout)) == 2
    assert "was killed while its tool ran" in done.stdout
    assert "is refused" in done.stdout
    assert "→ clerk: I have told the driver to ring twice." in done.stdout
    assert "I remember: The bell of Ada's house is weak." in done.stdout
    assert "All of user bob: 1 session" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stdout.index("The session as a timeline") < done.stdout.index("\nNext\n")
    assert list(folder.iterdir()) == []
