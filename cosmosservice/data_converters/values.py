"""Any Python value as JSON, and back.

What JSON has stays as it is. Everything else becomes an object that says what it was:

    {"$datetime": "2025-01-27T10:30:00+00:00"}   {"$int": "9007199254740993"}   {"$float": 1.0}
    {"$tuple": [1, 2]}   {"$set": [1, 2]}   ... (see `scalars`)
    {"$class": "google.genai.types.Part", "text": "hi"}
    {"$enum": ["google.genai.types.Outcome", "OUTCOME_OK"]}

No dict of the user's looks like one of these (see `tags`). A value deeper than Cosmos allows is
`{"$deep": [...]}`: the list of its containers, each with its inner ones as `{"$ref": position}`.
"""

import contextlib
import dataclasses
import logging
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from types import GeneratorType
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from .classes import class_named, name_of
from .lenient import validated
from .models import Child, plan
from .scalars import DECODERS, ENCODERS
from .tags import CLASS, decode_key, encode_key, tag_of
from .text import to_json

logger = logging.getLogger(__name__)

# Of Cosmos' 128 levels some are above the value: content, parts, part, function_call, args ...
_LEVELS = 96
_LEVELS_OF: dict[type, int] = {dict: 1, list: 1, tuple: 2, set: 2, frozenset: 2}
_LEVELS_OF_OTHERS = 12  # a model

Lost = list[str]  # the types of what could not be stored


class _TooDeep(Exception):
    pass


# Writing


def encode_value(value: Any) -> Any:
    """`value` as JSON. What cannot be stored becomes its repr, with a warning."""
    lost: Lost = []
    encoded = encoder(lost)(value)
    warn_of(lost)
    return encoded


def encode_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state as a JSON object, key by key: what merges states merges their documents too."""
    lost: Lost = []
    encode = encoder(lost)
    encoded = {encode_key(key, encode): encode(value) for key, value in state.items()}
    warn_of(lost)
    return encoded


def encoder(lost: Lost) -> Child:
    """A function that encodes values and notes in `lost` the types that it could not keep."""

    def encode(value: Any) -> Any:
        try:
            return _encode(value, lost, _LEVELS)
        except _TooDeep:
            return _flat(value, lost)

    return encode


def warn_of(lost: Lost) -> None:
    if lost:
        logger.warning(
            "%d value(s) cannot be stored and were replaced by their repr: %s",
            len(lost),
            ", ".join(sorted(set(lost))),
        )


def _encode(value: Any, lost: Lost, levels: int) -> Any:
    kind: type = type(value)
    scalar = ENCODERS.get(kind)
    if scalar is not None:
        try:
            return scalar(value)
        except Exception:  # a time zone of the user's own may fail
            return _repr(value, lost)
    levels -= _LEVELS_OF.get(kind, _LEVELS_OF_OTHERS)
    if levels < 0:
        raise _TooDeep
    return _shallow(value, lambda inner: _encode(inner, lost, levels), lost)


def _shallow(value: Any, child: Child, lost: Lost) -> Any:
    """`value`, which is no scalar, with what is inside it encoded by `child`."""
    kind: type = type(value)
    if kind is dict:
        return {encode_key(key, child): child(inner) for key, inner in value.items()}
    if kind is list:
        return [child(inner) for inner in value]
    if kind is tuple:
        return {"$tuple": [child(inner) for inner in value]}
    if kind is set or kind is frozenset:
        # Sorted, so that an equal value gives an equal document.
        items = sorted((child(inner) for inner in value), key=to_json)
        return {"$set" if kind is set else "$frozenset": items}
    name = name_of(kind)
    if name is not None:
        if isinstance(value, Enum):
            return {"$enum": [name, child(value.value)]}
        return {CLASS: name, **plan(kind).encode(value, child)}
    try:
        simple = _simplify(value)
    except Exception:  # whatever the user's own class raises
        return _repr(value, lost)
    return child(simple)


def _simplify(value: Any) -> Any:
    """An object of a class that is not restored, as built-in values: what ADK would store."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    for base, convert in _BASES.items():
        if isinstance(value, base):
            return convert(value)
    if isinstance(value, GeneratorType):
        raise TypeError("reading a generator would use it up")
    return to_jsonable_python(value)


_BASES: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    bytes: bytes.__bytes__,
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
}


def _repr(value: Any, lost: Lost) -> Any:
    lost.append(type(value).__qualname__)
    try:
        text = repr(value)
    except Exception:  # RecursionError among them
        text = f"<{type(value).__qualname__} object>"
    return ENCODERS[str](text)


def _flat(root: Any, lost: Lost) -> Any:
    """Depth first without recursion; `path` holds what encloses the container at hand."""
    nodes: list[Any] = [None]
    path: set[int] = set()
    todo: list[tuple[Any, int]] = [(root, 0)]

    def child(value: Any) -> Any:
        if type(value) in ENCODERS:
            return _encode(value, lost, 0)
        if id(value) in path:
            return _repr(value, lost)
        nodes.append(None)
        todo.append((value, len(nodes) - 1))
        return {"$ref": len(nodes) - 1}

    while todo:
        value, index = todo.pop()
        if index < 0:
            path.discard(id(value))
            continue
        path.add(id(value))
        todo.append((value, -1))
        nodes[index] = _shallow(value, child, lost)
    return {"$deep": nodes}


# Reading


def decode_value(encoded: Any) -> Any:
    return _decode(encoded, ())


def decode_state(document: Mapping[str, Any]) -> dict[str, Any]:
    """The state of a document; shares nothing with it."""
    return _decode_dict(document, ())


Refs = list[Any] | tuple[()]


def _decode(body: Any, refs: Refs) -> Any:
    kind = type(body)
    if kind is str:
        return body
    if kind is dict:
        tag = tag_of(body)
        if tag is not None:
            # If it was not written by us it can be anything: then it stays as it is.
            with contextlib.suppress(Exception):
                return _untag(tag, body, refs)
        return _decode_dict(body, refs)
    if kind is list:
        return [_decode(inner, refs) for inner in body]
    if kind is float and body.is_integer():
        return int(body)  # floats like 1.0 have a tag; this is how the store wrote an integer
    return body


def _decode_dict(body: Mapping[str, Any], refs: Refs) -> dict[Any, Any]:
    decoded: dict[Any, Any] = {}
    for key, inner in body.items():
        name: Any = key
        if key[:1] == "$":
            with contextlib.suppress(Exception):
                name = decode_key(key, lambda escaped: _decode(escaped, refs))
        decoded[name] = _decode(inner, refs)
    return decoded


def _untag(tag: str, body: dict[str, Any], refs: Refs) -> Any:
    if tag == CLASS:
        return _decode_model(body, refs)
    inner = body[tag]
    scalar = DECODERS.get(tag)
    if scalar is not None:
        return scalar(inner)
    if tag == "$tuple":
        return tuple(_decode(each, refs) for each in inner)
    if tag == "$set":
        return {_decode(each, refs) for each in inner}
    if tag == "$frozenset":
        return frozenset(_decode(each, refs) for each in inner)
    if tag == "$enum":
        cls, value = class_named(inner[0]), _decode(inner[1], refs)
        return cls(value) if cls is not None and issubclass(cls, Enum) else value
    if tag == "$value":
        return _decode(inner, refs)
    if tag == "$ref":
        return refs[inner]
    if tag == "$deep":
        found: list[Any] = [None] * len(inner)
        for index in reversed(range(len(inner))):  # inner containers come later in the list
            found[index] = _decode(inner[index], found)
        return found[0]
    raise ValueError("unknown tag")


def _decode_model(body: dict[str, Any], refs: Refs) -> Any:
    cls = class_named(body[CLASS])
    fields = {key: inner for key, inner in body.items() if key != CLASS}
    if cls is not None and issubclass(cls, BaseModel):
        with contextlib.suppress(Exception):
            return plan(cls).decode(fields, lambda inner: _decode(inner, refs))
        with contextlib.suppress(Exception):
            return validated(cls, {key: _decode(inner, refs) for key, inner in fields.items()})
    return {key: _decode(inner, refs) for key, inner in fields.items()}
