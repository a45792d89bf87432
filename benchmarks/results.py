"""The results of a workload, for the report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Relation = Literal["≤", "≥"]


@dataclass(frozen=True)
class Target:
    """A promise and what was measured."""

    promise: str
    relation: Relation
    limit: float
    measured: float
    unit: str = "×"

    @property
    def met(self) -> bool:
        if self.relation == "≤":
            return self.measured <= self.limit
        return self.measured >= self.limit


@dataclass(frozen=True)
class Plot:
    """Bars of one unit, in the given order."""

    title: str
    unit: str
    bars: list[tuple[str, float]]


@dataclass
class Result:
    """One workload: a table whose first column names the lane, and the targets."""

    name: str
    title: str
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    plot: Plot | None = None


def ms(seconds: float) -> str:
    """Milliseconds with the significant digits."""
    value = seconds * 1e3
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.3g} ms"


def ratio(value: float) -> str:
    return f"{value:,.0f} ×" if value >= 100 else f"{value:.3g} ×"


def size(count: float) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} B"
