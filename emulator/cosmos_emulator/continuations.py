"""Where a query that asks one range after the other goes on.

As the service writes it: `{"token":…,"range":{"min":"","max":"FF"}}`, and from the second page on
a list of them. If the range was split since, it has one for each new range: all of them go on from
there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cosmos_emulator.documents import dumps, loads
from cosmos_emulator.errors import BadRequest
from cosmos_emulator.partition_keys import MAX_EPK
from cosmos_emulator.ranges import Range, overlapping


@dataclass(frozen=True, slots=True)
class Step:
    """A range to ask, from `token` on."""

    token: str | None
    low: str = ""
    high: str = MAX_EPK


def read(text: str | None, ranges: tuple[Range, ...] | None) -> list[Step]:
    """What is to be asked next, the first of them now. `ranges` is None for a query that is
    asked once, about all of them."""
    if text is None:
        return [Step(None)] if ranges is None else [Step(None, ranges[0].low, ranges[0].high)]
    try:
        steps = [_step(part) for part in _parts(loads(text))]
    except (BadRequest, KeyError, TypeError, ValueError):
        raise BadRequest("Invalid Continuation Token", plain=True) from None
    if ranges is None:
        return steps
    return [
        Step(step.token, max(step.low, found.low), min(step.high, found.high))
        for step in steps
        for found in overlapping(ranges, step.low, step.high)
    ]


def after(
    steps: Sequence[Step],
    token: str | None,
    ranges: tuple[Range, ...] | None,
    *,
    continued: bool,
) -> str | None:
    """The continuation after a page of the first step that ended at `token`, None: with it.
    `continued`: it was not the first page."""
    first, *rest = steps
    if token is not None:
        return _text([Step(token, first.low, first.high), *rest], continued)
    if not rest and ranges is not None:
        rest = [Step(None, found.low, found.high) for found in ranges if found.low >= first.high]
        rest = rest[:1]
    return _text(rest, continued) if rest else None


def _parts(value: Any) -> list[Any]:
    parts = value if isinstance(value, list) else [value]
    if not parts:
        raise ValueError
    return parts


def _step(part: Any) -> Step:
    token, low, high = part["token"], part["range"]["min"], part["range"]["max"]
    if not isinstance(token, str | None) or not isinstance(low, str) or not isinstance(high, str):
        raise TypeError
    if not low < high:
        raise ValueError
    return Step(token, low, high)


def _text(steps: Sequence[Step], continued: bool) -> str:
    parts = [{"token": step.token, "range": {"min": step.low, "max": step.high}} for step in steps]
    return dumps(parts if continued or len(parts) > 1 else parts[0])
