"""Mathematical functions: on doubles, and on 64-bit integers."""

import math
import random
from collections.abc import Callable
from typing import Any, Final

from cosmos_emulator.query.functions.function import Function, fixed
from cosmos_emulator.query.values import UNDEFINED, is_number, number


def _on_numbers(compute: Callable[..., float], least: int, most: int | None = None) -> Function:
    """Undefined for other types, and where the function has no value."""

    def call(*values: Any) -> Any:
        if not all(is_number(value) for value in values):
            return UNDEFINED
        try:
            return number(compute(*map(float, values)))
        except (ValueError, OverflowError, ZeroDivisionError):
            return UNDEFINED

    return Function(call, least, most or least)


def _on_integers(compute: Callable[..., int], count: int = 2) -> Function:
    """Undefined unless all arguments and the result are whole and fit into 64 bits."""

    def call(*values: Any) -> Any:
        if not all(_fits(value) for value in values):
            return UNDEFINED
        try:
            result = compute(*map(int, values))
        except (ZeroDivisionError, ValueError):
            return UNDEFINED
        return number(float(result)) if _fits(result) else UNDEFINED

    return fixed(call, count)


def _fits(value: Any) -> bool:
    return is_number(value) and -(2**63) <= value < 2**63 and value == int(value)


def _int64(value: int) -> int:
    bits = value & (2**64 - 1)
    return bits - 2**64 if bits & 2**63 else bits


def _divide(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _shift_left(value: int, count: int) -> int:
    return _int64(value << count) if count < 64 else 0


def _shift_right(value: int, count: int) -> int:
    return value >> min(count, 63) if count >= 0 else _int64(value << min(-count, 64))


def _round(value: float) -> float:
    """Half away from zero."""
    return math.copysign(math.floor(abs(value) + 0.5), value) if abs(value) < 2**52 else value


def _power(base: float, exponent: float) -> float:
    return math.pow(base, exponent)


def _log(value: float, base: float = math.e) -> float:
    return math.log(value) if base == math.e else math.log(value, base)


def _bin(value: float, size: float = 1) -> float:
    return math.floor(value / size) * size


def _trunc(value: float) -> float:
    return float(math.trunc(value))


FUNCTIONS: Final[dict[str, Function]] = {
    "ABS": _on_numbers(abs, 1),
    "ACOS": _on_numbers(math.acos, 1),
    "ASIN": _on_numbers(math.asin, 1),
    "ATAN": _on_numbers(math.atan, 1),
    "ATN2": _on_numbers(math.atan2, 2),
    "CEILING": _on_numbers(math.ceil, 1),
    "COS": _on_numbers(math.cos, 1),
    "COT": _on_numbers(lambda value: 1 / math.tan(value), 1),
    "DEGREES": _on_numbers(lambda value: 180 / math.pi * value, 1),
    "EXP": _on_numbers(math.exp, 1),
    "FLOOR": _on_numbers(math.floor, 1),
    "INTADD": _on_integers(lambda a, b: a + b),
    "INTBITAND": _on_integers(lambda a, b: a & b),
    "INTBITLEFTSHIFT": _on_integers(_shift_left),
    "INTBITNOT": _on_integers(lambda value: ~value, 1),
    "INTBITOR": _on_integers(lambda a, b: a | b),
    "INTBITRIGHTSHIFT": _on_integers(_shift_right),
    "INTBITXOR": _on_integers(lambda a, b: a ^ b),
    "INTDIV": _on_integers(_divide),
    "INTMOD": _on_integers(lambda a, b: a - _divide(a, b) * b),
    "INTMUL": _on_integers(lambda a, b: a * b),
    "INTSUB": _on_integers(lambda a, b: a - b),
    "LOG": _on_numbers(_log, 1, 2),
    "LOG10": _on_numbers(math.log10, 1),
    "NUMBERBIN": _on_numbers(_bin, 1, 2),
    "PI": fixed(lambda: math.pi, 0),
    "POWER": _on_numbers(_power, 2),
    "RADIANS": _on_numbers(lambda value: math.pi * value / 180, 1),
    "RAND": fixed(random.random, 0),
    "ROUND": _on_numbers(_round, 1),
    "SIGN": _on_numbers(lambda value: (value > 0) - (value < 0), 1),
    "SIN": _on_numbers(math.sin, 1),
    "SQRT": _on_numbers(math.sqrt, 1),
    "SQUARE": _on_numbers(lambda value: value * value, 1),
    "TAN": _on_numbers(math.tan, 1),
    "TRUNC": _on_numbers(_trunc, 1),
}
