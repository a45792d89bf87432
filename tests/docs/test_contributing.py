"""CONTRIBUTING.md shows the real tree, and the places that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

from docs.generate.tree import PACKAGES, with_map

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def test_the_map_has_a_line_for_every_module():
    assert with_map(PAGE) == PAGE, "run make docs"
    tree = PAGE[PAGE.index("    cosmosservice/") : PAGE.index("## An append")]
    modules = [path.stem for each in PACKAGES for path in (ROOT / each).rglob("*.py")]
    for name in set(modules) - {"__init__", "__main__"}:
        lines = re.findall(rf"^ {{6,12}}{name} +\S", tree, re.MULTILINE)
        assert len(lines) == modules.count(name), f"{name} needs a docstring"


def test_the_places_to_change_something_exist():
    table = PAGE[PAGE.index("## Where to change what") :]
    named = re.findall(r"`([\w./]+(?:\.py|\.json|\.md|/))`", table)
    assert len(named) > 20
    folders = [ROOT, ROOT / "cosmosservice", ROOT / "cosmosservice/sessions/store"]
    lost = [name for name in named if not any((folder / name).exists() for folder in folders)]
    # The table names it as the neighbour of a new service.
    assert set(lost) <= {"memory/"}
