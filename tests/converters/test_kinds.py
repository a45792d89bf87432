"""Values that are neither JSON nor of the application's classes: those of Python and numpy."""

import array
import ipaddress
import re
import types
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, UserString
from collections import defaultdict as default
from collections import deque as queue
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from cosmosservice.data_converters import decode_value, encode_value
from tests.converters.support import through_the_store


def again(value: Any) -> Any:
    return decode_value(through_the_store(encode_value(value)))


THEMSELVES = [
    Path("/tmp/a b"),
    Path("café\udce9"),  # a name on disk that is not UTF-8
    PurePosixPath("a/b"),
    PureWindowsPath("c:/a"),
    range(5),
    range(10, -(2**70), -3),
    Fraction(-1, 3),
    Fraction(2**80, 3**60),
    ipaddress.ip_address("10.0.0.1"),
    ipaddress.ip_address("::1"),
    ipaddress.ip_network("10.0.0.0/8"),
    ipaddress.ip_network("fe80::/10"),
    ipaddress.ip_interface("10.0.0.1/8"),
    ipaddress.ip_interface("::1/64"),
    ZoneInfo("Europe/Berlin"),
    UTC,
    timezone(timedelta(hours=-3, minutes=-30)),
    queue([1, (2, 3)], maxlen=5),
    queue(),
    Counter({"a": 2, (1, 2): -1}),
    OrderedDict([("b", 1), ("a", {1: 2})]),
    default(list, a=[1]),
    default(int, {1: 2}),
    default(None, {"$x": 1}),
    bytearray(b"\xff"),
    frozenset({(2, 3)}),
    1 - 2j,
    {Path("a"): {range(3): Fraction(1, 2)}},
]


@pytest.mark.parametrize("value", THEMSELVES, ids=repr)
def test_it_comes_back_as_itself(value, caplog):
    back = again(value)
    assert back == value
    assert type(back) is type(value)
    assert repr(back) == repr(value)
    assert not caplog.records


class Text(str):
    pass


class Amount(Decimal):
    pass


class Line(queue):
    pass


SIMPLER = {
    "memoryview": (memoryview(b"abc")[1:], b"bc"),
    "pattern": (re.compile("a+", re.I), {"pattern": "a+", "flags": 34}),
    "pattern of bytes": (re.compile(b"a"), {"pattern": b"a", "flags": 0}),
    "array": (array.array("d", [1.0, 2.5]), [1.0, 2.5]),
    "chain": (ChainMap({"a": 1}, {"a": 2, "b": 3}), {"a": 1, "b": 3}),
    "proxy": (types.MappingProxyType({1: 2}), {1: 2}),
    "namespace": (types.SimpleNamespace(a=(1,)), {"a": (1,)}),
    "user dict": (UserDict(a=1), {"a": 1}),
    "user list": (UserList([1]), [1]),
    "user string": (UserString("a"), "a"),
    "keys": ({"a": 1}.keys(), ["a"]),
    "values": ({"a": (1,)}.values(), [(1,)]),
    "items": ({"a": 1}.items(), [("a", 1)]),
    "defaultdict of a function": (default(lambda: 5, a=1), {"a": 1}),
    "text": (Text("t"), "t"),
    "decimal": (Amount("1.50"), Decimal("1.50")),
    "deque": (Line([1]), [1]),
    "typed path": (type("MyPath", (type(Path()),), {})("/a"), "/a"),
}


@pytest.mark.parametrize(("value", "data"), SIMPLER.values(), ids=SIMPLER)
def test_it_comes_back_as_its_value(value, data, caplog):
    back = again(value)
    assert back == data
    assert type(back) is type(data)
    assert not caplog.records


def test_a_zone_that_this_machine_does_not_have_is_its_name():
    assert decode_value({"$zone": "Mars/Olympus"}) == "Mars/Olympus"


# numpy is not required and not imported: an array-like object describes its own content.


class Kind:
    def __init__(self, text: str) -> None:
        self.str, self.kind = text, text[1]


class Array:
    """What numpy's arrays and scalars have in common."""

    def __init__(self, kind: str, held: Any, text: Any = None) -> None:
        self._kind, self._held, self._text = Kind(kind), held, text

    @property
    def dtype(self) -> Kind:
        return self._kind

    def tolist(self) -> Any:
        return self._held

    def astype(self, kind: type) -> "Array":
        assert kind is str
        return Array("<U", self._text)


class Wide:
    """A number wider than Python's float or complex: `tolist` returns it unchanged."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    @property
    def dtype(self) -> Kind:
        return Kind(self._kind)

    def tolist(self) -> "Wide":
        return self

    def __float__(self) -> float:
        return 0.5

    def __complex__(self) -> complex:
        return 0.5j


ARRAYS = {
    "scalar": (Array("<i8", 5), 5),
    "array": (Array("<f8", [[1.0, 0.5], [2.0, float("inf")]]), [[1.0, 0.5], [2.0, float("inf")]]),
    "record": (Array("|V8", [(1, b"a")]), [(1, b"a")]),
    "moments": (Array("<M8[us]", [datetime(2025, 1, 1)]), [datetime(2025, 1, 1)]),
    "nanoseconds": (Array("<M8[ns]", [17], ["1970-01-01T00"]), ["1970-01-01T00"]),
    "wide": (Wide("<f16"), 0.5),
    "wide complex": (Wide("<c32"), 0.5j),
    "inside": ({"a": [Array("<f4", 0.5)]}, {"a": [0.5]}),
}


@pytest.mark.parametrize(("value", "data"), ARRAYS.values(), ids=ARRAYS)
def test_arrays_and_their_numbers_come_back_as_lists_and_numbers_of_python(value, data, caplog):
    back = again(value)
    assert back == data
    assert repr(back) == repr(data)
    assert not caplog.records
