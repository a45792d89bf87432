"""The version of a release is its tag: python .github/release.py TAG

`v1.2.3` releases cosmosservice, `emulator-v1.2.3` cosmos-emulator. Writes the version into the
distribution's `version.py`, checks that its changelog has a dated section for it, and prints the
folder of the distribution.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TAG = re.compile(r"(?P<emulator>emulator-)?v(?P<version>\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)")


def prepare(tag: str, root: Path = ROOT) -> Path:
    found = TAG.fullmatch(tag)
    if found is None:
        sys.exit(f"{tag}: a tag is v1.2.3 or emulator-v1.2.3, with a1, b1 or rc1 before a release.")
    folder = root / "emulator" if found["emulator"] else root
    package = "cosmos_emulator" if found["emulator"] else "cosmosservice"
    version = found["version"]
    changelog = (folder / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)\n+(?!## )\S"
    if re.search(heading, changelog, re.MULTILINE) is None:
        sys.exit(f"CHANGELOG.md has no section '## {version} (year-month-day)' with a text.")
    path = folder / package / "version.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(
        re.sub(r'__version__ = ".*"', f'__version__ = "{version}"', text), encoding="utf-8"
    )
    return folder


if __name__ == "__main__":
    print(prepare(sys.argv[1]).relative_to(ROOT))
