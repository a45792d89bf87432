"""The table of results in the emulator's README: each suite that ran writes its row."""

from __future__ import annotations

import datetime
import os
import platform
import re
from pathlib import Path

from outcomes import Outcome

README = Path(__file__).resolve().parents[1] / "README.md"
START, END = "<!-- figures -->", "<!-- end of figures -->"
HOST = f"{platform.system()}, {os.cpu_count()} cores"
HEAD = ["| suite | ran | passed | failed | on | with |", "|---|---|---|---|---|---|"]


def write(title: str, outcome: Outcome, order: list[str]) -> None:
    """The other rows stay as they are. `order`: the titles of all suites. A suite of the comparison
    with other emulators has its figure there too."""
    text = README.read_text("utf-8")
    before, _, rest = text.partition(START)
    compared, passed = f"| {title} | ", f"{outcome.passed} of {outcome.ran} |"
    before = re.sub(rf"(?<=^{re.escape(compared)})[^|]+\|", passed, before, flags=re.MULTILINE)
    table, _, after = rest.partition(END)
    rows = dict(re.findall(r"^\| ([^|]+) (\| \d+ \|.*)$", table, re.MULTILINE))
    counts = f"| {outcome.ran} | {outcome.passed} | {len(outcome.failures)} "
    rows[title] = f"{counts}| {datetime.date.today()} | {outcome.using}, {HOST} |"
    lines = [*HEAD, *(f"| {each} {rows[each]}" for each in order if each in rows)]
    README.write_text(f"{before}{START}\n" + "\n".join(lines) + f"\n{END}{after}", "utf-8")
