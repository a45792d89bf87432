"""Bar charts as SVG: the shapes are computed here, and a template writes them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cosmosservice.explore.texts import compact

WIDTH: Final = 480
HEIGHT: Final = 150
_LEFT: Final = 44  # width of the scale beside vertical bars
_ROW: Final = 26
_NAMES: Final = 165  # width of the names beside horizontal bars
_NUMBERS: Final = 70
_TICKS: Final = 4

_SIZES: Final = (5, 10, 50, 100, 500, 1_000)  # events


@dataclass(frozen=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    series: int  # which of several it belongs to
    tip: str


@dataclass(frozen=True)
class Label:
    x: float
    y: float
    text: str


@dataclass(frozen=True)
class Plot:
    title: str
    about: str  # a description for screen readers
    bars: list[Bar]
    names: list[Label]  # of the bars
    scale: list[Label]  # of vertical bars: each has a line
    numbers: list[Label]  # of horizontal bars: their values
    series: Sequence[str]  # what the colours stand for
    height: float
    upright: bool
    width: float = WIDTH


def columns(
    title: str,
    values: Mapping[str, Sequence[float]],
    series: Sequence[str] = (),
    *,
    stacked: bool = True,
    unit: str = "",
) -> Plot:
    """Vertical bars by day. The values of one day are stacked or, the smaller first, one in front
    of the other."""
    totals = [sum(each) if stacked else max(each) for each in values.values()]
    top = _round_top(max(totals, default=0))
    step = (WIDTH - _LEFT) / max(len(values), 1)
    bars, names = [], []
    for n, (day, parts) in enumerate(values.items()):
        x, below = _LEFT + n * step + step * 0.12, float(HEIGHT)
        drawn = list(enumerate(parts))
        for number, value in drawn if stacked else reversed(drawn):
            height = HEIGHT * value / top
            below = below - height if stacked else HEIGHT - height
            named = f" {series[number]}" if series else ""
            tip = f"{day}: {_number(value)}{unit}{named}"
            bars.append(Bar(x, below, step * 0.76, height, number, tip))
        names.append(Label(x + step * 0.38, HEIGHT, day[8:].lstrip("0")))
    scale = [
        Label(_LEFT - 6, HEIGHT * (1 - n / _TICKS), compact(top * n / _TICKS))
        for n in range(_TICKS + 1)
    ]
    about = f"{title}: {len(values)} days"
    if stacked:
        about = f"{title}: {_number(sum(totals))}{unit} in {len(values)} days"
    if any(totals):
        most = max(zip(totals, values, strict=True))
        about += f", most on {most[1]}: {_number(most[0])}{unit}"
    return Plot(title, about, bars if any(totals) else [], names, scale, [], series, HEIGHT, True)


def rows(title: str, values: Mapping[str, float]) -> Plot:
    """Horizontal bars, one for each name."""
    most = max([*values.values(), 1.0])
    length = WIDTH - _NAMES - _NUMBERS
    bars, names, numbers = [], [], []
    for n, (name, value) in enumerate(values.items()):
        y, width = n * _ROW + 4.0, length * value / most
        text = _number(value)
        bars.append(Bar(_NAMES, y, width, _ROW - 8.0, 0, f"{name}: {text}"))
        names.append(Label(_NAMES - 8, y + 13, name))
        numbers.append(Label(_NAMES + width + 6, y + 13, text))
    about = f"{title}: " + ", ".join(f"{name} {_number(value)}" for name, value in values.items())
    shown = bars if any(values.values()) else []
    return Plot(title, about, shown, names, [], numbers, (), len(bars) * _ROW, False)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _round_top(most: float) -> float:
    """A round number, not below `most`, that the scale divides well."""
    size = 10.0 ** math.floor(math.log10(max(most, _TICKS)))
    return next(size * each for each in (1, 2, 4, 6, 8, 10) if size * each >= most)


def sizes(counts: Iterable[int]) -> dict[str, float]:
    """The number of sessions by their number of events."""
    found = {_range(n): 0.0 for n in range(len(_SIZES) + 1)}
    for count in counts:
        found[_range(sum(count > limit for limit in _SIZES))] += 1
    return found


def _range(n: int) -> str:
    if n == len(_SIZES):
        return f"more than {_SIZES[-1]:,}"
    return f"{_SIZES[n - 1] + 1 if n else 0:,} to {_SIZES[n]:,}"
