"""The table of results in the emulator's README: each run writes the rows of the suites it ran."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
START, END = "<!-- figures -->", "<!-- end of figures -->"
HOST = f"{platform.system()}, {os.cpu_count()} cores"
HEAD = ["| suite | passed | measured with |", "|---|---|---|"]


def write(rows: dict[str, tuple[int, int, str]]) -> None:
    """`rows`: by suite how many tests passed, of how many, and with what it was measured."""
    text = README.read_text("utf-8")
    before, _, rest = text.partition(START)
    table, _, after = rest.partition(END)
    kept = dict(re.findall(r"^\| ([^|]+) (\| \d+ of \d+ \|.*)$", table, re.MULTILINE))
    for suite, (passed, of, using) in rows.items():
        kept[suite] = f"| {passed} of {of} | {using}, {HOST} |"
    lines = [*HEAD, *(f"| {suite} {row}" for suite, row in kept.items())]
    README.write_text(f"{before}{START}\n" + "\n".join(lines) + f"\n{END}{after}", "utf-8")
