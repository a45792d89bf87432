"""Finds the generated parts of the pages and replaces them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

FOLDER = Path(__file__).parents[1]
_PART = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

Parts = Mapping[str, Callable[[], str]]


def pages() -> Iterator[Path]:
    return iter(sorted(FOLDER.glob("*.md")))


def part_names(text: str) -> list[str]:
    return [found[2] for found in _PART.finditer(text)]


def part(text: str, name: str) -> str:
    """What the page has there now."""
    return next(found[0] for found in _PART.finditer(text) if found[2] == name)


def regenerated(text: str, parts: Parts) -> str:
    return _PART.sub(lambda found: f"{found[1]}{parts[found[2]]().strip()}\n{found[3]}", text)


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
