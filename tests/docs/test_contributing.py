"""CONTRIBUTING.md shows the real tree, and the places that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
# Folders that the page shows as a whole.
CLOSED = {"memory", "artifacts", "explore", "cli"}


def test_the_tree_shows_every_module_of_the_package():
    tree = PAGE[PAGE.index("    cosmosservice/\n") : PAGE.index("## Layers")]
    shown = set(re.findall(r"\w+", tree))
    package = ROOT / "cosmosservice"
    paths = [path.relative_to(package) for path in package.rglob("*.py")]
    rooms = {part for path in paths for part in path.parts[:-1]}
    modules = {path.stem for path in paths if not CLOSED & set(path.parts)}
    assert not (rooms | modules) - shown, "add these to the tree"


def test_the_places_to_change_something_exist():
    table = PAGE[PAGE.index("## Where to change what") :]
    named = re.findall(r"`([\w./]+(?:\.py|\.json|\.md|/))`", table)
    assert len(named) > 20
    folders = [ROOT, ROOT / "cosmosservice", ROOT / "cosmosservice/sessions/store"]
    lost = [name for name in named if not any((folder / name).exists() for folder in folders)]
    # The table names it as the neighbour of a new service.
    assert set(lost) <= {"memory/"}
