"""Every Python version that the package supports is tested, here and in CI."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_versions_that_are_promised_are_those_that_are_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    makefile = (ROOT / "Makefile").read_text("utf-8")
    workflow = (ROOT / ".github/workflows/weekly.yml").read_text("utf-8")
    assert re.search(r"^PYTHONS := (.*)$", makefile, re.M)[1].split() == promised
    assert re.findall(r'"([\d.]+)"', re.search(r"^ +python: (.*)$", workflow, re.M)[1]) == promised
    assert project["requires-python"] == f">={promised[0]}"
