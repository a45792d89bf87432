"""Combinations of which `make test` tries a part, and `make combinations` all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

ALL = os.environ.get("COMBINATIONS") == "all"


def some(combinations: Iterable[T], *, every: int) -> list[T]:
    """Every n-th of them. Of a product whose last factor is longer than n, and shares no divisor
    with it, each value of each factor is among them."""
    return list(combinations)[:: 1 if ALL else every]
