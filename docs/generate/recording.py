"""The moving picture of the README: python -m docs.generate.recording

`cosmosservice demo --short` runs in a terminal of its own. What it printed, with the times at which
it did, becomes an SVG whose lines appear and scroll: a browser plays it, without a script.
"""

from __future__ import annotations

import fcntl
import html
import os
import pty
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.segment import Segment
from rich.terminal_theme import TerminalTheme
from rich.text import Text

FILE = Path(__file__).parents[1] / "images" / "demo.svg"
COMMAND = ["demo", "--short"]
COLUMNS, ROWS = 80, 22
LAST_ACT = "The session as a timeline"  # has a picture of its own
SLOWER = 2.0  # than it was, so that people can read it
LEAST, MOST = 0.25, 1.6  # seconds between two lines
STAYS = 7.0  # seconds
COLOURS = TerminalTheme(
    (22, 24, 29),
    (217, 217, 217),
    [
        (22, 24, 29),
        (255, 107, 107),
        (139, 214, 92),
        (240, 198, 116),
        (92, 160, 255),
        (199, 146, 234),
        (92, 200, 230),
        (217, 217, 217),
    ],
)
CELL, LINE, MARGIN, BAR = 8.4, 19.0, 16.0, 40.0


class Line(NamedTuple):
    at: float  # seconds
    text: Text


def recorded() -> list[Line]:
    """What the demo prints, until its last act."""
    screen, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = os.environ | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    command = [sys.executable, "-m", "cosmosservice.cli", *COMMAND]
    running = subprocess.Popen(command, stdin=end, stdout=end, stderr=end, env=environment)
    os.close(end)
    lines = []
    with open(screen, "rb") as printed:
        try:
            for line in printed:
                text = Text.from_ansi(line.decode().rstrip("\r\n"))
                lines.append(Line(time.monotonic(), text))
        except OSError:  # the terminal was closed
            pass
    if running.wait() != 0:
        raise SystemExit("The demo has failed.")
    last = next(n for n, line in enumerate(lines) if line.text.plain == LAST_ACT)
    return lines[: last - 1]


def paced(lines: list[Line]) -> list[Line]:
    """The same order, in times that people can follow. Lines printed at once appear at once."""
    made, now = [], 0.8
    for before, line in zip([lines[0], *lines], lines, strict=False):
        passed = line.at - before.at
        if passed > 0.02:
            now += min(max(passed * SLOWER, LEAST), MOST)
        made.append(Line(now, line.text))
    return made


def drawn(lines: list[Line]) -> str:
    whole = lines[-1].at + STAYS
    width, height = COLUMNS * CELL + 2 * MARGIN, ROWS * LINE + BAR + MARGIN
    rules = "".join(_appears(number, line.at, whole) for number, line in enumerate(lines))
    shown = "\n".join(_line(number, line.text) for number, line in enumerate(lines))
    scrolled = max(len(lines) - ROWS, 0) * LINE
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">
<title>cosmosservice demo: a writer is killed, two writers collide, and nothing is lost</title>
<style>
text {{ font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #d9d9d9;
  white-space: pre; }}
.s {{ transform: translateY(-{scrolled:.0f}px); }}
@media (prefers-reduced-motion: no-preference) {{
.l, .s {{ animation: {whole:.2f}s step-end infinite; }}
.s {{ animation-name: s; }}
{rules}@keyframes s {{ {_scrolling(lines, whole)} }}
}}
</style>
<clipPath id="c"><rect y="{BAR}" width="{width:.0f}" height="{ROWS * LINE + 4:.0f}"/></clipPath>
<rect width="100%" height="100%" rx="8" fill="#16181d"/>
<circle cx="20" cy="20" r="6" fill="#ff5f57"/><circle cx="40" cy="20" r="6" fill="#febc2e"/>
<circle cx="60" cy="20" r="6" fill="#28c840"/>
<text x="{width / 2:.0f}" y="25" text-anchor="middle" style="fill:#9aa0ab">cosmosservice demo</text>
<g clip-path="url(#c)"><g class="s">
{shown}
</g></g>
</svg>
"""


def _appears(number: int, at: float, whole: float) -> str:
    share = f"{100 * at / whole:.2f}%"
    return (
        f".n{number} {{ animation-name: n{number}; }}"
        f" @keyframes n{number} {{ 0% {{ opacity: 0; }} {share} {{ opacity: 1; }} }}\n"
    )


def _scrolling(lines: list[Line], whole: float) -> str:
    steps = {0.0: 0.0}  # of two lines that appear at once, the later one counts
    for number, line in enumerate(lines[ROWS:], 1):
        steps[line.at] = number * LINE
    return " ".join(
        f"{100 * at / whole:.2f}% {{ transform: translateY(-{by:.0f}px); }}"
        for at, by in steps.items()
    )


def _line(number: int, text: Text) -> str:
    y = BAR + (number + 1) * LINE - 4
    return f'<g class="l n{number}">{"".join(_spans(text, y))}</g>'


def _spans(text: Text, y: float) -> Iterator[str]:
    """Each at its column: fonts differ in width, and so does the text of other alphabets."""
    console = Console(width=COLUMNS, color_system="truecolor", force_terminal=True)
    column = 0
    for segment in text.render(console):
        if segment.text.strip():
            yield _span(segment, MARGIN + column * CELL, y)
        column += segment.cell_length


def _span(segment: Segment, x: float, y: float) -> str:
    style, looks = segment.style, []
    if style is not None:
        if style.color is not None:
            red, green, blue = style.color.get_truecolor(COLOURS)
            looks.append(f"fill:#{red:02x}{green:02x}{blue:02x}")
        looks += ["font-weight:bold"] * bool(style.bold) + ["opacity:.65"] * bool(style.dim)
        looks += ["text-decoration:underline"] * bool(style.underline)
    styled = f' style="{";".join(looks)}"' if looks else ""
    length = segment.cell_length * CELL
    return (
        f'<text x="{x:.1f}" y="{y:.0f}" textLength="{length:.1f}"{styled}>'
        f"{html.escape(segment.text)}</text>"
    )


if __name__ == "__main__":
    FILE.write_text(drawn(paced(recorded())), encoding="utf-8")
