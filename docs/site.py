"""Builds the documentation site: python -m docs.site FOLDER SAMPLE REFERENCE

The pages keep their paths: what links to a file of the repository on GitHub links to the same file
on the site. The README is its first page, and docs/README.md is its navigation. SAMPLE is what
`python -m docs.sample` wrote, REFERENCE what `python -m docs.reference` did.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONFIGURATION = ROOT / "docs" / "zensical.toml"
OTHERS = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "emulator/README.md",
    "emulator/CHANGELOG.md",
    "cosmosservice/ADK_COSMOS_DESIGN.md",
]
STYLE = ROOT / "docs" / "site.css"
# Where docs/explore.md links to sample sessions, which are made when the site is built.
MARK = "<!-- sample sessions -->"
SAMPLE = (
    "**[Click through sample sessions](explore-sample/index.html)**, as `--export` writes them."
)
REFERENCE = "docs/reference.md"
_LINK = re.compile(r"\]\((?!\w+:|#)([^)\s#]+)")

Navigation = list[dict[str, "str | Navigation"]]


def pages() -> Iterator[Path]:
    yield from sorted(ROOT.glob("docs/*.md"))
    yield from (ROOT / name for name in OTHERS)


def files() -> set[Path]:
    """The pages, and what they show or link to."""
    found = {STYLE, *pages()}
    for page in pages():
        for target in _LINK.findall(page.read_text(encoding="utf-8")):
            path = (page.parent / target).resolve()
            if not path.is_file():  # zensical looks at links to pages alone
                sys.exit(f"{page.relative_to(ROOT)}: {target} is not there")
            found.add(path)
    return found


def lay_out(folder: Path) -> None:
    for path in sorted(files()):
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            # What the tests read in the first line of a block is not for readers.
            text = path.read_text(encoding="utf-8").replace("\n```bash run\n", "\n```bash\n")
            target.write_text(text.replace(MARK, SAMPLE), encoding="utf-8")
        else:
            shutil.copyfile(path, target)


def navigation() -> Navigation:
    """The tables of docs/README.md, each a section."""
    result: Navigation = [{"Home": "README.md"}]
    entries: Navigation = []
    for line in ROOT.joinpath("docs/README.md").read_text(encoding="utf-8").splitlines():
        if section := re.match(r"\| (to \w+) \| \|", line):
            entries = []
            result.append({section[1].capitalize(): entries})
        elif entry := re.match(r"\| \[(.+?)\]\((.+?\.md)\)", line):
            entries.append({entry[1]: f"docs/{entry[2]}"})
    result.append(
        {
            "The project": [
                {"All pages": "docs/README.md"},
                {"API reference": REFERENCE},
                {"The emulator": "emulator/README.md"},
                {"Contributing": "CONTRIBUTING.md"},
                {"Design": "cosmosservice/ADK_COSMOS_DESIGN.md"},
                {"Changelog": "CHANGELOG.md"},
                {"Changelog of the emulator": "emulator/CHANGELOG.md"},
            ]
        }
    )
    return result


def configuration() -> str:
    nav = json.dumps(navigation(), ensure_ascii=False).replace('": ', '" = ')
    return CONFIGURATION.read_text(encoding="utf-8").replace("nav = []", f"nav = {nav}")


def build(folder: Path, sample: Path, reference: Path) -> int:
    shutil.rmtree(folder, ignore_errors=True)
    lay_out(folder / "pages")
    shutil.copytree(sample, folder / "pages" / "docs" / "explore-sample")
    shutil.copyfile(reference, folder / "pages" / REFERENCE)
    folder.joinpath("zensical.toml").write_text(configuration(), encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    return subprocess.run(command, cwd=folder).returncode


if __name__ == "__main__":
    sys.exit(build(*map(Path, sys.argv[1:])))
