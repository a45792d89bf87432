"""Bar charts as SVG: what is drawn is worked out here, and a template writes it."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cosmosservice.account.container import Document

WIDTH: Final = 640
ROW: Final = 22
HEIGHT: Final = 160
_LABELS: Final = 170  # width of the names of horizontal bars
_NUMBERS: Final = 80

_SIZES: Final = (5, 10, 50, 100, 500, 1_000)  # events


@dataclass(frozen=True)
class Bar:
    label: str
    value: float
    x: float
    y: float
    width: float
    height: float

    @property
    def text(self) -> str:
        return f"{self.value:,.0f}" if self.value == int(self.value) else f"{self.value:,.2f}"


@dataclass(frozen=True)
class Plot:
    title: str
    bars: list[Bar]
    height: float
    upright: bool  # bars stand, labels below them

    width: float = WIDTH
    labels: float = _LABELS


def columns(title: str, values: Mapping[str, float]) -> Plot:
    """Standing bars: something over time."""
    most = max([*values.values(), 1.0])
    step = WIDTH / max(len(values), 1)
    bars = [
        Bar(
            label, value, n * step + 2, HEIGHT * (1 - value / most), step - 4, HEIGHT * value / most
        )
        for n, (label, value) in enumerate(values.items())
    ]
    return Plot(title, bars, HEIGHT, upright=True)


def rows(title: str, values: Mapping[str, float]) -> Plot:
    """Lying bars: something of each kind."""
    most = max([*values.values(), 1.0])
    length = WIDTH - _LABELS - _NUMBERS
    bars = [
        Bar(label, value, _LABELS, n * ROW + 3, length * value / most, ROW - 6)
        for n, (label, value) in enumerate(values.items())
    ]
    return Plot(title, bars, max(len(bars), 1) * ROW, upright=False)


def sizes(counts: Iterable[int]) -> dict[str, float]:
    """How many sessions have how many events."""
    found = {_range(n): 0.0 for n in range(len(_SIZES) + 1)}
    for count in counts:
        found[_range(sum(count > limit for limit in _SIZES))] += 1
    return found


def _range(n: int) -> str:
    if n == len(_SIZES):
        return f"more than {_SIZES[-1]:,}"
    return f"{_SIZES[n - 1] + 1 if n else 0:,} to {_SIZES[n]:,}"


@dataclass(frozen=True)
class Days:
    """By day, the oldest first."""

    turns: dict[str, float]
    tokens: dict[str, float]


def days(events: Iterable[Document], today: datetime.date, count: int) -> Days:
    """What users asked and models used on each of the last days. Other days are left out."""
    names = [str(today - datetime.timedelta(days=n)) for n in reversed(range(count))]
    found = Days(dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0))
    for event in events:
        day = _day(event.get("timestamp"))
        if day not in found.turns:
            continue
        found.turns[day] += event.get("author") == "user"
        found.tokens[day] += _tokens(event.get("usage_metadata"))
    return found


def _day(timestamp: Any) -> str:
    try:
        return str(datetime.datetime.fromtimestamp(timestamp, datetime.UTC).astimezone().date())
    except (TypeError, ValueError, OverflowError, OSError):
        return ""


def _tokens(used: Any) -> float:
    if not isinstance(used, dict):
        return 0.0
    counts = (used.get(name) for name in ("prompt_token_count", "candidates_token_count"))
    return sum(each for each in counts if isinstance(each, int | float) and math.isfinite(each))
