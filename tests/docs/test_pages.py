"""The code on the pages runs, and links lead somewhere."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from google.adk.cli.service_registry import get_service_registry

from tests.docs.blocks import Reader, blocks, check_shell

FOLDER = Path(__file__).parents[2] / "docs"
OWN = ("azure.md", "telemetry.md")  # have tests of their own
PAGES = {page.name: page for page in sorted(FOLDER.glob("*.md"))}
LINKING = [
    *sorted(FOLDER.parent.glob("*.md")),
    *PAGES.values(),
    FOLDER.parent / "emulator/README.md",
]
SHOWN = [name for name, page in PAGES.items() if name not in OWN and blocks(page)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("COSMOSDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    registry = get_service_registry()  # a page shows how to register one's own service
    monkeypatch.setattr(registry, "_session_factories", dict(registry._session_factories))


@pytest.mark.parametrize("name", SHOWN)
def test_the_examples_of_a_page_run_from_top_to_bottom(name):
    Reader(PAGES[name]).follow()


@pytest.mark.parametrize("name", SHOWN)
def test_shell_commands_exist_and_take_these_options(name):
    for block in blocks(PAGES[name]):
        if block.kind.startswith("bash"):
            check_shell(block.text)


def test_the_page_for_the_catalogue_of_adk_runs(monkeypatch):
    monkeypatch.setenv("COSMOSDB_ENDPOINT", "embedded::memory:")
    page = FOLDER / "adk-docs/cosmos-db.md"
    Reader(page).follow()
    for block in blocks(page):
        if block.kind == "bash":
            check_shell(block.text)


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(FOLDER.parent)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        there = page.parent / path if path else page
        assert there.exists(), target
        if anchor:
            assert anchor in _anchors(there), target


def test_every_page_is_reached_from_a_front_page():
    front = PAGES["README.md"].read_text("utf-8") + (FOLDER.parent / "README.md").read_text("utf-8")
    linked = set(re.findall(r"\]\((?:docs/)?([\w-]+\.md)\b", front))
    assert set(PAGES) <= linked | {"README.md"}


def _anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes from headings."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
