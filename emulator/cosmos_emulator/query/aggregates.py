"""COUNT, COUNTIF, SUM, MIN, MAX, AVG, MAKELIST, MAKESET over the rows of a group."""

from collections.abc import Callable
from typing import Any, Final, Protocol

from cosmos_emulator.query import nodes
from cosmos_emulator.query.errors import Unplaced
from cosmos_emulator.query.values import (
    ARRAY,
    UNDEFINED,
    identity,
    is_number,
    number,
    rank,
    sort_key,
)


class Aggregate(Protocol):
    def add(self, value: Any) -> None: ...

    def result(self) -> Any: ...


Factory = Callable[[], Aggregate]


class _Count:
    def __init__(self) -> None:
        self._count = 0

    def add(self, value: Any) -> None:
        if value is not UNDEFINED:
            self._count += 1

    def result(self) -> Any:
        return self._count


class _CountIf(_Count):
    def add(self, value: Any) -> None:
        if value is True:
            self._count += 1


class _List:
    def __init__(self) -> None:
        self._values: list[Any] = []

    def add(self, value: Any) -> None:
        if value is not UNDEFINED:
            self._values.append(value)

    def result(self) -> Any:
        return self._values


class _Set:
    """Each value once, in the order in which they were met."""

    def __init__(self) -> None:
        self._values: dict[Any, Any] = {}

    def add(self, value: Any) -> None:
        if value is not UNDEFINED:
            self._values.setdefault(identity(value), value)

    def result(self) -> Any:
        return list(self._values.values())


class _Sum:
    """Undefined values are left out; any other value that is not a number makes the sum
    undefined."""

    def __init__(self) -> None:
        self._sum = 0.0
        self._count = 0
        self._valid = True

    def add(self, value: Any) -> None:
        if is_number(value):
            self._sum += value
            self._count += 1
        elif value is not UNDEFINED:
            self._valid = False

    def result(self) -> Any:
        return number(self._sum) if self._valid else UNDEFINED


class _Average(_Sum):
    def result(self) -> Any:
        return number(self._sum / self._count) if self._valid and self._count else UNDEFINED


class _Extreme:
    """By the order of types; an array or an object makes the result undefined."""

    def __init__(self, *, largest: bool) -> None:
        self._largest = largest
        self._value: Any = UNDEFINED
        self._valid = True

    def add(self, value: Any) -> None:
        if value is UNDEFINED:
            return
        if rank(value) >= ARRAY:
            self._valid = False
        elif self._value is UNDEFINED or (
            sort_key(value) > sort_key(self._value)
            if self._largest
            else sort_key(value) < sort_key(self._value)
        ):
            self._value = value

    def result(self) -> Any:
        return self._value if self._valid else UNDEFINED


AGGREGATES: Final[dict[str, Factory]] = {
    "COUNT": _Count,
    "COUNTIF": _CountIf,
    "SUM": _Sum,
    "AVG": _Average,
    "MIN": lambda: _Extreme(largest=False),
    "MAX": lambda: _Extreme(largest=True),
    "MAKELIST": _List,
    "MAKESET": _Set,
}


def aggregates_of(part: Any) -> set[str]:
    """The aggregates of a part of a query; its subqueries have their own."""
    return {
        node.name
        for node in nodes.walk(part)
        if isinstance(node, nodes.Call) and node.name in AGGREGATES
    }


def has_aggregate(part: Any) -> bool:
    return bool(aggregates_of(part))


def check_aggregate(query: nodes.Query) -> None:
    """The service supports only one form of aggregates across partitions."""
    match query.selection:
        case nodes.Value(nodes.Call(name, _)) if name in AGGREGATES and not query.group_by:
            return
    raise Unplaced("Cross partition query only supports 'VALUE <AggregateFunc>' for aggregates.")
