"""The badges of the README, from pyproject.toml: python -m docs.generate.badges"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "images" / "badges.svg"
HEIGHT, GAP, LETTER = 20, 8, 6.7


def facts() -> list[tuple[str, str]]:
    project = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text(encoding="utf-8"))["project"]
    classified = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    (adk,) = re.findall(r"google-adk(\S+)", "\n".join(project["dependencies"]))
    return [
        ("Python", f"{classified[0]} – {classified[-1]}"),
        ("google-adk", adk.replace(",", " ").replace(">=", "≥ ").replace("<", "< ")),
        ("types", "mypy --strict"),
        ("license", project["license"]),
    ]


def drawn() -> str:
    parts, x = [], 0.0
    for name, value in facts():
        left, right = (len(text) * LETTER + 14 for text in (name, value))
        for text, at, width, colour in (
            (name, x, left, "#4a4f58"),
            (value, x + left, right, "#2b6cb0"),
        ):
            parts.append(
                f'<rect x="{at:.1f}" width="{width:.1f}" height="{HEIGHT}" fill="{colour}"/>'
                f'<text x="{at + width / 2:.1f}" y="14">{text.replace("<", "&lt;")}</text>'
            )
        x += left + right + GAP
    shown = "\n".join(parts)
    said = ", ".join(f"{name} {value}" for name, value in facts()).replace("<", "&lt;")
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" width="{x - GAP:.0f}" height="{HEIGHT}" role="img">
<title>{said}</title>
<style>text {{ font: 11px Verdana, DejaVu Sans, sans-serif; fill: #fff;
  text-anchor: middle; }}</style>
{shown}
</svg>
"""


if __name__ == "__main__":
    FILE.write_text(drawn(), encoding="utf-8")
