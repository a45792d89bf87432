"""The code on the first two pages runs as a file, and line by line in a REPL."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import blocks

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "quickstart.md"]
# A blank line ends each block, like Enter after a paste.
CODE = "".join(
    f"{block.text}\n" for page in PAGES for block in blocks(page) if block.kind == "python"
)
ENDS = "print('all of it')\n"
# From 3.13 on, `python -m asyncio` accepts statements of several lines only from a terminal, where
# it reads a paste as a whole. Only the plain REPL accepts them line by line from a pipe.
REPL = ["-m", "asyncio"] if sys.version_info < (3, 13) else ["-i", "-"]


@pytest.mark.parametrize("how", ["as a file", "in a REPL"])
def test_the_blocks_run(how, tmp_path):
    file = tmp_path / "first_steps.py"
    file.write_text(CODE + ENDS, encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COSMOSDB_")}
    as_file = how == "as a file"
    done = subprocess.run(
        [sys.executable, *([file] if as_file else REPL)],
        input=None if as_file else CODE + ENDS,
        cwd=tmp_path,
        env=environment | {"PYTHON_BASIC_REPL": "1", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stderr
    assert "That was turn 1." in done.stdout
    assert "all of it" in done.stdout
