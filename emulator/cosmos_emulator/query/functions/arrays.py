"""Array and set functions, CHOOSE and ObjectToArray."""

import math
from collections.abc import Callable
from typing import Any, Final

from cosmos_emulator.query.functions.function import Function, fixed
from cosmos_emulator.query.values import (
    ARRAY,
    UNDEFINED,
    equal,
    identity,
    is_number,
    number,
    rank,
    sort_key,
)


def _on_arrays(compute: Callable[..., Any]) -> Callable[..., Any]:
    def call(*values: Any) -> Any:
        return compute(*values) if all(type(value) is list for value in values) else UNDEFINED

    return call


def _partly_equal(item: Any, wanted: Any) -> bool:
    """Whether the item has all properties of the wanted object, and perhaps others."""
    if type(wanted) is not dict or type(item) is not dict:
        return equal(item, wanted)
    return all(name in item and _partly_equal(item[name], value) for name, value in wanted.items())


def _contains(items: Any, wanted: Any, partial: Any = False) -> Any:
    if type(items) is not list or type(partial) is not bool:
        return UNDEFINED
    if wanted is UNDEFINED:
        return False
    if type(wanted) is str:
        return wanted in items  # a text equals only the same text
    matches = _partly_equal if partial else equal
    return any(matches(item, wanted) for item in items)


def _contains_some(combine: Callable[[Any], bool]) -> Function:
    def call(items: Any, *wanted: Any) -> Any:
        if type(items) is not list:
            return UNDEFINED
        present = {identity(item) for item in items}
        return combine(identity(value) in present for value in wanted)

    return Function(call, 2, None)


def _slice(items: Any, start: Any, length: Any = 2**53) -> Any:
    if type(items) is not list or type(start) is not int or type(length) is not int:
        return UNDEFINED
    if start < 0:
        start = max(start + len(items), 0)
    return items[start : start + max(length, 0)]


def _of_numbers(compute: Callable[[list[float]], float], *, empty: Any = UNDEFINED) -> Function:
    def call(items: Any) -> Any:
        if type(items) is not list or not all(is_number(item) for item in items):
            return UNDEFINED
        try:
            return number(compute(items)) if items else empty
        except OverflowError:
            return UNDEFINED

    return fixed(call, 1)


def _mean(items: list[float]) -> float:
    return math.fsum(items) / len(items)


def _median(items: list[float]) -> float:
    # Not from statistics, which takes a tenth of the time of importing the emulator.
    ordered, middle = sorted(items), len(items) // 2
    return ordered[middle] if len(items) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _extreme(choose: Callable[..., Any]) -> Function:
    def call(items: Any) -> Any:
        if type(items) is not list or not items or any(rank(item) >= ARRAY for item in items):
            return UNDEFINED
        return choose(items, key=sort_key)

    return fixed(call, 1)


def _unique(items: list[Any]) -> list[Any]:
    return list({identity(item): item for item in reversed(items)}.values())[::-1]


def _intersect(left: list[Any], right: list[Any]) -> list[Any]:
    present = {identity(item) for item in left}
    return [item for item in _unique(right) if identity(item) in present]


def _difference(left: list[Any], right: list[Any]) -> list[Any]:
    absent = {identity(item) for item in right}
    return [item for item in _unique(left) if identity(item) not in absent]


def _same_set(left: list[Any], right: list[Any]) -> bool:
    return {identity(item) for item in left} == {identity(item) for item in right}


def _choose(index: Any, *values: Any) -> Any:
    if type(index) is not int or not 1 <= index <= len(values):
        return UNDEFINED
    return values[index - 1]


def _object_to_array(value: Any, key_name: Any = "k", value_name: Any = "v") -> Any:
    if type(value) is not dict or type(key_name) is not str or type(value_name) is not str:
        return UNDEFINED
    return [{key_name: name, value_name: item} for name, item in value.items()]


FUNCTIONS: Final[dict[str, Function]] = {
    "ARRAY_AVG": _of_numbers(_mean),
    "ARRAY_CONCAT": Function(
        _on_arrays(lambda *arrays: [item for array in arrays for item in array]), 2, None
    ),
    "ARRAY_LENGTH": fixed(_on_arrays(len), 1),
    "ARRAY_MAX": _extreme(max),
    "ARRAY_MEDIAN": _of_numbers(_median),
    "ARRAY_MIN": _extreme(min),
    "ARRAY_SLICE": Function(_slice, 2, 3),
    "ARRAY_SUM": _of_numbers(lambda items: sum(map(float, items)), empty=0),
    "OBJECTTOARRAY": Function(_object_to_array, 1, 3),
    "SETDIFFERENCE": fixed(_on_arrays(_difference), 2),
    "SETEQUAL": fixed(_on_arrays(_same_set), 2),
    "SETINTERSECT": fixed(_on_arrays(_intersect), 2),
    "SETUNION": fixed(_on_arrays(lambda left, right: _unique([*left, *right])), 2),
}

LAZY_FUNCTIONS: Final[dict[str, Function]] = {
    "ARRAY_CONTAINS": Function(_contains, 2, 3),
    "ARRAY_CONTAINS_ALL": _contains_some(all),
    "ARRAY_CONTAINS_ANY": _contains_some(any),
    "CHOOSE": Function(_choose, 2, None),
}
