"""Any Python value as JSON, and back.

JSON's own types stay unchanged. Everything else becomes an object that names its type:

    {"$datetime": "2025-01-27T10:30:00+00:00"}   {"$int": "9007199254740993"}   {"$float": 1.0}
    {"$tuple": [1, 2]}   {"$set": [1, 2]}   ... (see `scalars` and `containers`)
    {"$class": "google.genai.types.Part", "text": "hi"}   ... (see `models` and `objects`)

No dict of a user looks like one of these (see `tags`). A value deeper than Cosmos DB allows is
`{"$deep": [...]}`: the list of its containers, each with its inner ones as `{"$ref": index}`.

Documents are not trusted: any program may have written them. Reading takes time and memory in
proportion to their size. The contents of an object are decoded once, even if the object cannot be
restored, and a container of a deep value is used once. What does not fit stays unchanged.
"""

import contextlib
import logging
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from cosmosservice.data_converters.classes import class_named, follows_schema, full_name, is_set_up
from cosmosservice.data_converters.codecs import Child
from cosmosservice.data_converters.containers import BUILDERS, CONTAINERS
from cosmosservice.data_converters.lenient import validated
from cosmosservice.data_converters.models import plan
from cosmosservice.data_converters.objects import (
    PRIVATE,
    NotAnObject,
    encode_object,
    restore_object,
    restore_value,
)
from cosmosservice.data_converters.scalars import DECODERS, ENCODERS
from cosmosservice.data_converters.simple import simplified
from cosmosservice.data_converters.tags import CLASS, decode_key, encode_key, tag_of

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
    encoded = {encode_key(_text(key), encode): encode(value) for key, value in state.items()}
    warn_of(lost)
    return encoded


def _text(key: Any) -> Any:
    """A key that is a string of another class, such as a member of an enumeration, as its text:
    the two are one key of a dict."""
    return str.__str__(key) if isinstance(key, str) else key


def encoder(lost: Lost) -> Child:
    """A function that encodes values, and records in `lost` the types that cannot be stored."""

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
        except Exception:  # a time zone class of the user may fail
            return _repr(value, lost)
    levels -= _LEVELS_OF.get(kind, _LEVELS_OF_OTHERS)
    if levels < 0:
        raise _TooDeep
    return _shallow(value, lambda inner: _encode(inner, lost, levels), lost)


def _shallow(value: Any, child: Child, lost: Lost) -> Any:
    """`value`, which is not a scalar, with its contents encoded by `child`."""
    kind: type = type(value)
    if kind is dict:
        return {encode_key(key, child): child(inner) for key, inner in value.items()}
    if kind is list:
        return [child(inner) for inner in value]
    container = CONTAINERS.get(kind)
    if container is not None:
        return container(value, child)
    if isinstance(value, BaseModel) and follows_schema(kind):
        return {CLASS: full_name(kind), **plan(kind).encode(value, child)}
    try:
        try:
            return encode_object(value, child)
        except NotAnObject:
            simple = simplified(value)
    except _TooDeep:
        raise
    except Exception:  # the user's own class may raise anything
        return _repr(value, lost)
    return child(simple)


def _repr(value: Any, lost: Lost) -> Any:
    lost.append(type(value).__qualname__)
    try:
        text = repr(value)
    except Exception:  # including RecursionError
        text = f"<{type(value).__qualname__} object>"
    return ENCODERS[str](text)


def _flat(root: Any, lost: Lost) -> Any:
    """Depth first without recursion. `path` holds the containers around the current one."""
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
    return decoder()(encoded)


def decoder() -> Child:
    """A function that decodes the values of one document."""
    decode = _Decoder().decode

    def decode_or_leave(encoded: Any) -> Any:
        try:
            return decode(encoded)
        except RecursionError:  # deeper than Cosmos allows, so not written by us
            return encoded

    return decode_or_leave


def decode_state(document: Mapping[str, Any]) -> dict[str, Any]:
    """The state of a document; shares nothing with it."""
    if not document:
        return {}
    decode = decoder()
    return {decode_state_key(key): decode(body) for key, body in document.items()}


def decode_state_key(key: str) -> str:
    name: Any = key
    if key[:1] == "$":
        with _otherwise():
            name = decode_key(key, decode_value)
    return name if isinstance(name, str) else key


def decode_dict(body: Mapping[str, Any], child: Child) -> dict[Any, Any]:
    decoded: dict[Any, Any] = {}
    for key, inner in body.items():
        name: Any = key
        if key[:1] == "$":
            with _otherwise():
                name = decode_key(key, child)
        decoded[name] = child(inner)
    return decoded


class _otherwise(contextlib.AbstractContextManager[None]):
    """Continues after the block if it fails, unless the stack is exhausted: then the next attempt
    would fail too, twice at every level."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, Exception) and kind is not RecursionError


class _Used:
    """Replaces a container of a deep value that is missing or already used."""


class _Decoder:
    """Reads one complete value."""

    def __init__(self) -> None:
        self._refs: list[Any] = []
        # Decoded objects that may be needed again if the value around them does not fit, by id. The
        # object is kept with the result, so that its id is not reused.
        self._done: dict[int, tuple[Any, Any]] = {}

    def decode(self, body: Any) -> Any:
        kind = type(body)
        if kind is str:
            return body
        if kind is dict:
            tag = tag_of(body)
            return decode_dict(body, self.decode) if tag is None else self._untag(tag, body)
        if kind is list:
            return [self.decode(inner) for inner in body]
        if kind is float and body.is_integer():
            return int(body)  # floats like 1.0 have a tag; this is how the store wrote an integer
        return body

    def _untag(self, tag: str, body: dict[str, Any]) -> Any:
        """If this package did not write it, it can be anything, and then stays unchanged."""
        if tag in DECODERS:
            with _otherwise():
                return DECODERS[tag](body[tag])
            return decode_dict(body, self.decode)
        if tag == CLASS or tag == "$ref":
            done = self._done.get(id(body))
            if done is None:
                value = self._model(body) if tag == CLASS else self._referred(body)
                done = self._done[id(body)] = (body, value)
            return done[1]
        if tag == "$deep":
            return self._deep(body)
        inner = self.decode(body[tag])
        with _otherwise():
            if tag in BUILDERS:
                return BUILDERS[tag](inner)
            if tag == "$value":
                return inner
            if tag in ("$enum", "$namedtuple", "$root"):
                return _restored(tag, inner)
        return {tag: inner}

    def _deep(self, body: dict[str, Any]) -> Any:
        nodes = body["$deep"]
        if type(nodes) is not list or not nodes:
            return decode_dict(body, self.decode)
        outer, self._refs = self._refs, [_Used] * len(nodes)
        for index in reversed(range(len(nodes))):  # inner containers come later in the list
            self._refs[index] = self.decode(nodes[index])
        whole, self._refs = self._refs[0], outer
        return whole

    def _referred(self, body: dict[str, Any]) -> Any:
        index = body["$ref"]
        if type(index) is not int or not 0 <= index < len(self._refs):
            return decode_dict(body, self.decode)
        # Only once: a small document with many references to one container could become huge.
        value, self._refs[index] = self._refs[index], _Used
        return dict(body) if value is _Used else value

    def _model(self, body: dict[str, Any]) -> Any:
        cls = class_named(body[CLASS])
        fields = {key: inner for key, inner in body.items() if key not in (CLASS, PRIVATE)}
        if cls is not None and issubclass(cls, BaseModel) and follows_schema(cls):
            if not is_set_up(cls):
                with _otherwise():
                    return plan(cls).decode(fields, self.decode)
            decoded = decode_dict(fields, self.decode)
            with _otherwise():
                return validated(cls, decoded)
            return decoded
        decoded = decode_dict(fields, self.decode)
        if cls is not None:
            private = self.decode(body.get(PRIVATE))
            with _otherwise():
                return restore_object(cls, decoded, private if type(private) is dict else {})
        return decoded


def _restored(tag: str, inner: Any) -> Any:
    name, value = inner
    if tag == "$namedtuple":
        value = tuple(value)
    with _otherwise():
        return restore_value(tag, name, value)
    return value
