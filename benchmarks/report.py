"""The figures as tables on the terminal, and as docs/benchmarks.md with its plots."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.plots import bars
from benchmarks.results import Result, Target
from benchmarks.stand import OURS

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "benchmarks.md"
DEFAULT = (
    "**cosmosservice** is the service as ADK uses it, without a block: it lives on its I/O thread."
    " *In a block* (`async with`) it lives on the caller's event loop."
)
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def measured(target: Target) -> str:
    shown = f"{target.measured:,.0f}" if target.measured >= 100 else f"{target.measured:.3g}"
    return f"{shown} {target.unit}"


def asked(target: Target) -> str:
    return f"{target.relation} {target.limit:g} {target.unit}"


def verdict(target: Target) -> str:
    return "met" if target.met else "not met"


def print_result(console: Console, result: Result) -> None:
    for target in result.targets:
        colour = "green" if target.met else "red"
        console.print(
            f"  [{colour}]{verdict(target):8}[/] {measured(target):>10}"
            f"  ({asked(target)})  {target.promise}"
        )
    table = Table(*result.columns, title=result.title, title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    for row in result.rows:
        table.add_row(*row)
    console.print(table)
    for note in result.notes:
        console.print(f"  {note}")
    console.print()


def markdown_table(columns: list[str], rows: Iterable[list[str]]) -> list[str]:
    line = "|".join([":---", *["---:"] * (len(columns) - 1)])
    return [
        f"| {' | '.join(columns)} |",
        f"|{line}|",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]


def targets_table(results: Iterable[Result]) -> list[str]:
    rows = [
        [target.promise, measured(target), asked(target), verdict(target)]
        for result in results
        for target in result.targets
    ]
    return markdown_table(["", "measured", "target", ""], rows)


def figures(machine: Mapping[str, str], results: list[Result]) -> list[str]:
    lines = [
        *textwrap.wrap(f"Measured on {datetime.now(UTC):%d %B %Y} by `make bench`. {DEFAULT}", 120),
        "",
        *(
            textwrap.fill(f"* {what}: {value}", 120, subsequent_indent="  ")
            for what, value in machine.items()
        ),
        "",
        "## Workloads",
        "",
    ]
    for result in results:
        lines += [f"### {result.title}", ""]
        lines += markdown_table(result.columns, result.rows)
        for note in result.notes:
            lines += [note, ""]
        if result.plot is not None:
            lines += [f"![{result.plot.title}](benchmarks/{result.name}.svg)", ""]
    return [*lines, "## What we ask of ourselves", "", *targets_table(results)]


def write_docs(machine: Mapping[str, str], results: list[Result]) -> None:
    """Replaces the figures in docs/benchmarks.md, and keeps the text around them."""
    plots = DOCS / "benchmarks"
    plots.mkdir(exist_ok=True)
    for result in results:
        if result.plot is not None:
            (plots / f"{result.name}.svg").write_text(bars(result.plot, OURS), encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    new = "\n".join([BEGIN, *figures(machine, results), END])
    pattern = re.compile(re.escape(BEGIN) + ".*" + re.escape(END), re.DOTALL)
    PAGE.write_text(pattern.sub(lambda _: new, page), encoding="utf-8")
