"""JSON values as the query language sees them: undefined, types, equality, order."""

import math
from typing import Any, Final, final


@final
class Undefined:
    """The value of a missing property."""

    _instance: "Undefined | None" = None

    def __new__(cls) -> "Undefined":
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __repr__(self) -> str:
        return "undefined"

    def __bool__(self) -> bool:
        return False


UNDEFINED: Final = Undefined()

# The order of types in ORDER BY, MIN and MAX. false and true are two ranks, so that a boolean
# needs no value to be sorted by.
NO_VALUE, NULL, FALSE, TRUE, NUMBER, STRING, ARRAY, OBJECT = range(8)

_RANKS: Final[dict[type, int]] = {
    Undefined: NO_VALUE,
    type(None): NULL,
    int: NUMBER,
    float: NUMBER,
    str: STRING,
    list: ARRAY,
    dict: OBJECT,
}

SortKey = tuple[int, Any]

# Integers within the first are exact; doubles beyond the second have an exponent.
_LEAST, _MOST = -(2**63), 2**63 - 1
_PLAIN = 10**21


def rank(value: Any) -> int:
    if value is True:
        return TRUE
    if value is False:
        return FALSE
    return _RANKS[type(value)]


def sort_key(value: Any) -> SortKey:
    """Sorts as ORDER BY does. Arrays, and objects, are equal among themselves."""
    type_rank = rank(value)
    return (type_rank, value) if type_rank in (NUMBER, STRING) else (type_rank, 0)


def identity(value: Any) -> Any:
    """A hashable that is equal for equal values, and only for them."""
    type_rank = rank(value)
    if type_rank == ARRAY:
        return (ARRAY, tuple(identity(item) for item in value))
    if type_rank == OBJECT:
        return (OBJECT, frozenset((name, identity(item)) for name, item in value.items()))
    return (type_rank, value) if type_rank in (NUMBER, STRING) else (type_rank, None)


def is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def equal(left: Any, right: Any) -> bool:
    """`=` between two defined values."""
    kind = type(left)
    if kind is str or kind is bool or left is None:
        return type(right) is kind and bool(left == right)
    if kind is int or kind is float:
        return is_number(right) and bool(left == right)
    if kind is list:
        return (
            type(right) is list
            and len(left) == len(right)
            and all(equal(a, b) for a, b in zip(left, right, strict=True))
        )
    return (
        type(right) is dict
        and left.keys() == right.keys()
        and all(equal(item, right[name]) for name, item in left.items())
    )


def comparable(left: Any, right: Any) -> bool:
    """Whether `<` means anything: both numbers, both strings, both booleans, or both null."""
    kind = type(left)
    if kind is int or kind is float:
        return is_number(right)
    return type(right) is kind and (kind is str or kind is bool or left is None)


def number(value: float) -> Any:
    """A result of arithmetic: an integer of 64 bits, or a double, written as an integer where it
    is one.

    NaN and infinity are not valid JSON: undefined.
    """
    if type(value) is int:
        if _LEAST <= value <= _MOST:
            return value
        value = _double(value)
    if not math.isfinite(value):
        return UNDEFINED
    if -_PLAIN < value < _PLAIN and value == (whole := int(value)):
        return whole
    return value


def _double(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def from_client(value: Any) -> Any:
    """A parameter's value, with its numbers as the service has them."""
    if type(value) is int or type(value) is float:
        return number(value)
    if type(value) is list:
        return [from_client(item) for item in value]
    if type(value) is dict:
        return {name: from_client(item) for name, item in value.items()}
    return value
