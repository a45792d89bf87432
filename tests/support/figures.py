"""The figures of the long proofs. Each run writes its own into one file, and `make docs` makes the
table of docs/reliability.md from it, so that no two pages differ."""

from __future__ import annotations

import json
from pathlib import Path

FILE = Path(__file__).parents[2] / "docs" / "figures.json"


def record(run: str, **figures: int | float) -> None:
    """Replaces the figures of this run."""
    known = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    known[run] = figures
    FILE.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n", "utf-8")
