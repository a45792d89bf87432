"""Pages are easy to read as text: lines of prose have at most 120 characters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WIDTH = 120
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("docs/*.md")),
    ROOT / "cosmosservice" / "ADK_COSMOS_DESIGN.md",
    ROOT / "emulator" / "README.md",
    ROOT / "tests" / "model" / "README.md",
]
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_FIGURES = re.compile(r"<!-- figures -->.*<!-- end of figures -->", re.DOTALL)  # of make bench
_LINK = re.compile(r"\]\([^)\s]+\)|https?://\S+")


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The numbered lines without code, tables, generated figures and link targets."""

    def blank(found: re.Match[str]) -> str:
        return "\n" * found[0].count("\n")

    for number, line in enumerate(_FIGURES.sub(blank, _CODE.sub(blank, text)).split("\n"), 1):
        if not line.lstrip().startswith("|") and not line.startswith("    "):
            yield number, _LINK.sub("](…)", line)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_prose_are_not_too_long(page):
    lines = prose(page.read_text("utf-8"))
    long = [f"{page.name}:{number}" for number, line in lines if len(line) > WIDTH]
    assert not long, long


@pytest.mark.parametrize(
    ("text", "long"),
    [
        ("x" * 121, True),
        ("```\n" + "x" * 121 + "\n```", False),
        ("| " + "x" * 121 + " |", False),
        (f"see [it](https://example.com/{'x' * 121})", False),
        (f"```\n\n```\n{'x ' * 61}", True),
    ],
)
def test_only_prose_counts(text, long):
    assert any(len(line) > WIDTH for _, line in prose(text)) is long
