"""What a release needs: a version from the tag, a changelog, and files that people look for."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("CHANGELOG.md", "cosmosservice/version.py"):
        for folder in ("", "emulator"):
            source = (
                ROOT
                / folder
                / name.replace("cosmosservice", "cosmos_emulator" if folder else "cosmosservice")
            )
            target = tmp_path / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    return tmp_path


def prepare(tag: str, root: Path) -> Path:
    spec = importlib.util.spec_from_file_location("release", ROOT / ".github/release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.prepare(tag, root)


@pytest.mark.parametrize(
    ("tag", "folder", "package"),
    [("v3.2.1", "", "cosmosservice"), ("emulator-v3.2.1rc1", "emulator", "cosmos_emulator")],
)
def test_the_version_comes_from_the_tag(checkout, tag, folder, package):
    version = tag.rpartition("v")[2]
    with (checkout / folder / "CHANGELOG.md").open("a") as changelog:
        changelog.write(f"\n## {version} (2027-01-02)\n\n* Something.\n")
    assert prepare(tag, checkout) == checkout / folder
    assert f'__version__ = "{version}"' in (checkout / folder / package / "version.py").read_text()


@pytest.mark.parametrize("tag", ["v9.9.9", "v1", "1.2.3", "v0.1.0"])
def test_no_release_without_a_dated_entry_in_the_changelog(checkout, tag):
    before = (checkout / "cosmosservice/version.py").read_text()
    with pytest.raises(SystemExit):
        prepare(tag, checkout)
    assert (checkout / "cosmosservice/version.py").read_text() == before


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda p: p.name)
def test_workflows_and_templates_are_valid_yaml_with_known_targets(path):
    content = yaml.safe_load(path.read_text())
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for job in content.get("jobs", {}).values():
        for step in job["steps"]:
            for line in step.get("run", "").splitlines():
                if line.startswith("make ") and "$" not in line:
                    words = [word for word in line.split()[1:] if "=" not in word]
                    assert set(words) <= targets


def test_the_page_for_the_catalogue_of_adk_has_its_form():
    text = (ROOT / "docs/adk-docs/cosmos-db.md").read_text()
    matter = yaml.safe_load(text.split("---")[1])
    assert matter["catalog_tags"] == ["data"]
    assert 45 <= len(matter["catalog_description"]) <= 75
    assert matter["catalog_title"] not in matter["catalog_description"]
    folder = matter["catalog_icon"].removeprefix("/integrations/")
    assert (ROOT / "docs/adk-docs" / folder).exists()
    headings = re.findall(r"^## (.+)", text, re.MULTILINE)
    assert headings[:4] == ["Use cases", "Prerequisites", "Installation", "Use with agent"]
    assert headings[-1] == "Additional resources"
