"""Arithmetic and bits."""

import math
import operator
from collections.abc import Callable
from typing import Final


def _int32(value: float) -> int:
    """The 32 lowest bits of the whole part, with sign: what JavaScript's operators work on."""
    bits = int(value) & 0xFFFFFFFF
    return bits - 0x1_0000_0000 if bits & 0x8000_0000 else bits


def _divide(a: float, b: float) -> float:
    if b:
        return a / b
    return math.copysign(math.inf, a) * math.copysign(1, b) if a else math.nan


def _modulo(a: float, b: float) -> float:
    return math.fmod(a, b) if b else math.nan


def _zero_fill_shift(a: float, b: float) -> float:
    return (_int32(a) & 0xFFFFFFFF) >> (_int32(b) & 31)


# On numbers only; the caller makes the result a JSON number.
ARITHMETIC: Final[dict[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "%": _modulo,
    "&": lambda a, b: _int32(a) & _int32(b),
    "|": lambda a, b: _int32(a) | _int32(b),
    "^": lambda a, b: _int32(a) ^ _int32(b),
    "<<": lambda a, b: _int32(_int32(a) << (_int32(b) & 31)),
    ">>": lambda a, b: _int32(a) >> (_int32(b) & 31),
    ">>>": _zero_fill_shift,
}
