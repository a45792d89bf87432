"""Layout of output: nothing is cut off, ids are never broken, and a pipe has no width."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from cosmosservice.cli.console import out

NARROWEST = 20  # however deep the indent


@dataclass
class Folded:
    """Indented text, folded to the width of a terminal. Other output is not folded."""

    text: Text
    indent: int = 0
    label: Text | None = None  # printed in the indent of the first line

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(console.width - self.indent, NARROWEST)
        label = self.label or Text()
        for line in self.text.split("\n", allow_blank=True):
            for each in _folded(line, console, width) if console.is_terminal else [line]:
                label.pad_right(self.indent - label.cell_len)
                yield label + each if each else label
                label = Text()


def _folded(line: Text, console: Console, width: int) -> Iterable[Text]:
    """Folds between words, and inside a word only if it is wider than the line."""
    if max(map(cell_len, line.plain.split()), default=0) <= width:
        return line.wrap(console, width)
    ends = itertools.accumulate(map(len, chop_cells(line.plain, width)))
    return line.divide(list(ends)[:-1])


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """One line for each row or, on a terminal that is too narrow, one for each cell."""
    cells = [[Text(cell) for cell in row] for row in rows]
    if fits(head, cells):
        print_rows(head, cells)
        return
    indent = max(map(len, head)) + 4
    for row in cells:
        for number, (name, cell) in enumerate(zip(head, row, strict=True)):
            cell.stylize("" if number else "bold")
            label = Text(name if number == 0 else f"  {name}", "dim")
            if " " in cell.plain:
                out.print(Folded(cell, indent, label), soft_wrap=True)
            elif cell:  # such as an id: a terminal folds it, and copies it whole
                label.pad_right(indent - label.cell_len)
                out.print(label + cell, soft_wrap=True)


def fits(head: Sequence[str], rows: Sequence[Sequence[Text]]) -> bool:
    if not out.is_terminal:
        return True
    widths = (
        max([len(name), *(cell_len(row[at].plain) for row in rows)]) for at, name in enumerate(head)
    )
    return sum(widths) + 2 * (len(head) - 1) <= out.width


def print_rows(head: Sequence[str], rows: Iterable[Sequence[Text]]) -> None:
    """One line for each row, of any width, without spaces at its end."""
    lines = [[Text(name, "bold") for name in head], *map(list, rows)]
    widths = [max(cell.cell_len for cell in column) for column in zip(*lines, strict=True)]
    for row in lines:
        line = Text()
        for cell, width in zip(row, widths, strict=True):
            line.append_text(cell)
            line.append(" " * (width - cell.cell_len + 2))
        line.rstrip()
        out.print(line, soft_wrap=True)
