"""Arithmetic, bits, and LIKE."""

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from .errors import QueryError


def _int32(value: float) -> int:
    """The 32 lowest bits of the whole part, with sign: what JavaScript's operators work on."""
    bits = int(value) & 0xFFFFFFFF
    return bits - 0x1_0000_0000 if bits & 0x8000_0000 else bits


def _divide(a: float, b: float) -> float:
    return a / b if b else math.nan


def _modulo(a: float, b: float) -> float:
    return math.fmod(a, b) if b else math.nan


def _zero_fill_shift(a: float, b: float) -> float:
    return (_int32(a) & 0xFFFFFFFF) >> (_int32(b) & 31)


# On numbers only. The result is a double; the caller makes it a JSON number.
ARITHMETIC: Final[dict[str, Callable[[float, float], float]]] = {
    "+": lambda a, b: float(a) + float(b),
    "-": lambda a, b: float(a) - float(b),
    "*": lambda a, b: float(a) * float(b),
    "/": _divide,
    "%": _modulo,
    "&": lambda a, b: _int32(a) & _int32(b),
    "|": lambda a, b: _int32(a) | _int32(b),
    "^": lambda a, b: _int32(a) ^ _int32(b),
    "<<": lambda a, b: _int32(_int32(a) << (_int32(b) & 31)),
    ">>": lambda a, b: _int32(a) >> (_int32(b) & 31),
    ">>>": _zero_fill_shift,
}


@lru_cache(maxsize=256)
def like_pattern(pattern: str, escape: str | None) -> re.Pattern[str]:
    """LIKE: `%` any text, `_` one character, `[a-d]` and `[^a-d]` one of a set."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == escape and at < len(pattern):
            parts.append(re.escape(pattern[at]))
            at += 1
        elif character == "%":
            parts.append(".*")
        elif character == "_":
            parts.append(".")
        elif character == "[" and (end := pattern.find("]", at + 1)) > 0:
            chosen = pattern[at:end]
            negated = chosen.startswith("^")
            body = re.sub(r"([\\\[\]^&~|])", r"\\\1", chosen[negated:])
            parts.append(f"[{'^' if negated else ''}{body}]")
            at = end + 1
        else:
            parts.append(re.escape(character))
    try:
        return re.compile("".join(parts), re.DOTALL)
    except re.error:
        raise QueryError(f"The pattern of LIKE is invalid: {pattern}", code="SC2007") from None
