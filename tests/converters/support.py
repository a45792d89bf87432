"""Strategies that build values and events, a store like Cosmos DB, and an exact comparison."""

import enum
import json
import types
import typing
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import UTC, timedelta, timezone
from pathlib import PurePosixPath
from typing import Any
from zoneinfo import ZoneInfo

from google.adk.auth.auth_tool import AuthConfig
from google.adk.events.event import Event
from google.genai.types import Content, FinishReason, Part
from hypothesis import reject
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from cosmosservice.data_converters import from_json, to_json


def through_the_store(document: Any) -> Any:
    """What Cosmos DB returns: numbers are doubles, and integral ones are written as integers."""
    assert depth(document) <= 129  # the list around the document is one level
    doubles = json.loads(to_json(document), parse_int=float)
    return from_json(json.dumps(_integers(doubles)).encode())


def _integers(value: Any) -> Any:
    if isinstance(value, dict):
        assert "" not in value
        return {key: _integers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_integers(inner) for inner in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    return value


def depth(document: Any) -> int:
    levels, here = 0, [[document]]
    while here:
        levels += 1
        here = [
            inner
            for outer in here
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
    return levels


def same(left: Any, right: Any) -> bool:
    """Equal, with the same types all the way down. NaN equals NaN."""
    if type(left) is not type(right):
        return False
    if isinstance(left, BaseModel):
        return (
            same(left.__dict__, right.__dict__)
            and same(left.__pydantic_extra__, right.__pydantic_extra__)
            and same(left.__pydantic_private__, right.__pydantic_private__)
        )
    if isinstance(left, defaultdict) and left.default_factory is not right.default_factory:
        return False
    if isinstance(left, dict):
        return len(left) == len(right) and all(
            same(a, b) for a, b in zip(left.items(), right.items(), strict=True)
        )
    if isinstance(left, deque) and left.maxlen != right.maxlen:
        return False
    if isinstance(left, (list, tuple, deque)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, (set, frozenset)):
        return len(left) == len(right) and all(any(same(a, b) for b in right) for a in left)
    return left == right if isinstance(left, (str, bytes, int)) else repr(left) == repr(right)


any_text = st.text(st.characters(exclude_categories=()), max_size=8) | st.sampled_from(
    ["", "$", "$int", "$class", "$dict", "$ref", "a.b", "a/b", "~0", "\ud83d\ude00", "😀", "\x00"]
)
zones = st.none() | st.sampled_from(
    [UTC, timezone(timedelta(minutes=-90)), ZoneInfo("Europe/Berlin"), ZoneInfo("UTC")]
)
hashable_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=2**52),
    st.floats(),
    st.integers(-5, 5).map(float),
    any_text,
    st.binary(max_size=8),
    st.datetimes(timezones=zones, allow_imaginary=False),
    st.dates(),
    st.times(timezones=zones),
    st.timedeltas(),
    st.decimals(allow_nan=False),
    st.uuids(),
    st.complex_numbers(),
    st.fractions(),
    st.ip_addresses(),
    st.builds(range, st.integers(), st.integers(), st.integers(min_value=1)),
    st.builds(PurePosixPath, st.sampled_from(["", "/", "a b", "é/\udce9"])),
    st.sampled_from(FinishReason),
)
scalars = hashable_scalars | st.binary(max_size=8).map(bytearray) | st.decimals()
hashable_values = st.recursive(
    hashable_scalars,
    lambda inner: st.lists(inner, max_size=2).map(tuple) | st.frozensets(inner, max_size=2),
    max_leaves=3,
)
parts = st.builds(Part, text=any_text) | st.builds(Part, thought_signature=st.binary(max_size=4))


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(any_text, inner, max_size=3),
        st.dictionaries(hashable_values, inner, max_size=3),
        st.sets(hashable_values, max_size=3),
        st.frozensets(hashable_values, max_size=3),
        st.builds(deque, st.lists(inner, max_size=3), st.none() | st.integers(3, 2**53)),
        st.dictionaries(hashable_values, inner, max_size=3).map(OrderedDict),
        st.dictionaries(hashable_values, inner, max_size=3).map(Counter),
        st.builds(
            defaultdict,
            st.sampled_from([None, list, dict, int]),
            st.dictionaries(hashable_values, inner, max_size=3),
        ),
        st.builds(lambda tag, body: {tag: body}, st.sampled_from(TAGS), inner),
    )


TAGS = [
    *("$int", "$float", "$str", "$fraction", "$range", "$zone", "$path", "$ip", "$decimal"),
    *("$set", "$dict", "$tuple", "$deque", "$counter", "$ordereddict", "$defaultdict"),
    *("$class", "$enum", "$root", "$namedtuple", "$private", "$ref", "$deep", "$value"),
]
values = st.recursive(scalars | parts, _containers, max_leaves=8)


def of_type(annotation: Any, level: int = 0) -> st.SearchStrategy[Any]:
    """Any value of the type of a field, as the models declare it."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return of_type(arguments[0], level)
    if origin in (typing.Union, types.UnionType):
        return st.one_of([of_type(each, level) for each in arguments])
    if origin is typing.Literal:
        return st.sampled_from(arguments)
    if origin is list:
        return st.lists(of_type(arguments[0], level), max_size=2)
    if origin is set:
        return st.sets(of_type(arguments[0], level), max_size=3)
    if origin is dict:
        keys, inner = (of_type(each, level) for each in arguments)
        return st.dictionaries(keys, inner, max_size=2)
    if annotation is Any:
        return values
    if isinstance(annotation, type):
        if issubclass(annotation, BaseModel):
            return models(annotation, level + 1)
        if issubclass(annotation, enum.Enum):
            return st.sampled_from(annotation)
        return _SCALARS[annotation]
    raise AssertionError(f"no strategy for {annotation!r}")


_SCALARS: dict[type, st.SearchStrategy[Any]] = {
    type(None): st.none(),
    str: any_text,
    int: st.integers(),
    float: st.floats() | st.integers(-5, 5).map(float),
    bool: st.booleans(),
    bytes: st.binary(max_size=8),
}


@st.composite
def models(draw: st.DrawFn, cls: type[BaseModel], level: int = 0) -> Any:
    """An instance of a model with some of its fields, nested to a moderate depth."""
    fields = cls.model_fields
    optional = sorted(name for name, field in fields.items() if not field.is_required())
    chosen = [name for name, field in fields.items() if field.is_required()]
    if level < 5 and optional:
        chosen += draw(st.lists(st.sampled_from(optional), max_size=4, unique=True))
    by_name = cls.model_config.get("populate_by_name")
    data: dict[str, Any] = {}
    if cls.model_config.get("extra") == "allow":
        data |= draw(st.dictionaries(any_text, values, max_size=1))
    for name in chosen:
        annotation = fields[name].annotation
        if (cls.__name__, name) == ("EventActions", "requested_auth_configs"):
            annotation = dict[str, AuthConfig]
        key = name if by_name else fields[name].alias or name
        data[key] = draw(of_type(annotation, level))
    try:
        return cls.model_validate(data)
    except (ValidationError, UnicodeEncodeError):  # an invariant of the model
        reject()


events = models(Event)
contents = models(Content)
