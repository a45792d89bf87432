"""Converts values that cannot be restored to values that can."""

import re
from array import array
from collections import UserString
from collections.abc import Callable, Mapping, MappingView, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import GeneratorType, SimpleNamespace
from typing import Any

from pydantic_core import to_jsonable_python

# numpy's units of time that Python's datetime does not have.
_FINE_TIME = re.compile(r"[mM]8\[\d*(ns|ps|fs|as)\]")


def simplified(value: Any) -> Any:
    """Raises if only the repr of the value could be stored."""
    for base, convert in _BASES.items():
        if isinstance(value, base):
            return convert(value)
    cls = type(value)
    if hasattr(cls, "dtype") and hasattr(cls, "tolist"):
        return _from_array(value)
    if isinstance(value, GeneratorType):
        raise TypeError("reading a generator would use it up")
    return to_jsonable_python(value)


def _from_array(value: Any) -> Any:
    """An array or a number of numpy or a similar library, as Python lists and numbers."""
    if _FINE_TIME.search(getattr(value.dtype, "str", "")):
        return value.astype(str).tolist()
    simple = value.tolist()
    if type(simple) is type(value):  # numbers wider than Python's
        return complex(value) if value.dtype.kind == "c" else float(value)
    return simple


_BASES: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    complex: complex.__complex__,
    bytes: bytes.__bytes__,
    bytearray: bytearray,
    Mapping: dict,
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    datetime: lambda v: datetime.combine(v.date(), v.timetz()),
    date: lambda v: date(v.year, v.month, v.day),
    time: lambda v: time(v.hour, v.minute, v.second, v.microsecond, v.tzinfo, fold=v.fold),
    timedelta: lambda v: timedelta(v.days, v.seconds, v.microseconds),
    Decimal: Decimal,
    # Not compiled when it is read: a malicious pattern can take minutes.
    re.Pattern: lambda v: {"pattern": v.pattern, "flags": int(v.flags)},
    array: array.tolist,
    SimpleNamespace: vars,
    UserString: str,
    MappingView: list,
    Sequence: list,
}
