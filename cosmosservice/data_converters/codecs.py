"""How a value is written and read by the type that a field declares.

A value of another type is tagged: assignments to fields are not validated. A document that does not
fit the type raises `Mismatch`. The caller handles None. Values of fields without a precise type go
through `child`, a function of the caller.
"""

import enum
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

from pydantic import BaseModel

from cosmosservice.data_converters.scalars import ENCODERS, decode_bytes, encode_bytes, encode_real
from cosmosservice.data_converters.tags import CLASS, decode_key, encode_key, tag_of

Child = Callable[[Any], Any]
Encode = Callable[[Any, Child], Any]
Decode = Callable[[Any, Child], Any]
Codec = tuple[Encode, Decode]
ModelCodec = Callable[[type[BaseModel]], Codec]

_VALUE = "$value"  # a value whose type is not the declared one


class Mismatch(ValueError):
    """A document does not fit this version of the class."""


def json_type(annotation: Any) -> type | None:
    """The type whose values are their own JSON, if the field has one."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        members = [each for each in typing.get_args(annotation) if each is not type(None)]
        annotation = members[0] if len(members) == 1 else None
    return annotation if annotation in (str, int, bool, float) else None


def odd(value: Any, child: Child) -> Any:
    """Assignments to fields are not validated, so a field can contain anything."""
    body = child(value)
    return body if isinstance(value, BaseModel) else {_VALUE: body}


def _tagged(body: Any, child: Child) -> Any:
    if tag_of(body) is None:
        raise Mismatch("another type")
    return child(body)


def _free(value: Any, child: Child) -> Any:
    return child(value)


_FREE: Codec = (_free, _free)


def _scalar(kind: type) -> Codec:
    leaf = ENCODERS[kind]

    def encode(value: Any, child: Child) -> Any:
        return leaf(value) if type(value) is kind else odd(value, child)

    def decode(body: Any, child: Child) -> Any:
        if type(body) is kind:
            return body
        if kind is int and type(body) is float and body.is_integer():
            return int(body)
        return _tagged(body, child)

    return encode, decode


def _encode_number(value: Any, child: Child) -> Any:
    return encode_real(value) if type(value) is float else odd(value, child)


def _decode_number(body: Any, child: Child) -> Any:
    return float(body) if type(body) in (int, float) else _tagged(body, child)


def _encode_binary(value: Any, child: Child) -> Any:
    return encode_bytes(value) if type(value) is bytes else odd(value, child)


def _decode_binary(body: Any, child: Child) -> Any:
    return decode_bytes(body) if type(body) is str else _tagged(body, child)


def _enumeration(cls: type[enum.Enum]) -> Codec:
    members = cls._value2member_map_

    def encode(value: Any, child: Child) -> Any:
        return child(value.value) if type(value) is cls else odd(value, child)

    def decode(body: Any, child: Child) -> Any:
        value = child(body)
        if tag_of(body) in (_VALUE, CLASS):  # no member, but what was assigned: see odd
            return value
        member = members.get(value)
        return cls(value) if member is None else member

    return encode, decode


def _list(item: Codec) -> Codec:
    encode_item, decode_item = item

    def encode(value: Any, child: Child) -> Any:
        if type(value) is not list:
            return odd(value, child)
        return [encode_item(each, child) for each in value]

    def decode(body: Any, child: Child) -> Any:
        if type(body) is not list:
            return _tagged(body, child)
        return [decode_item(each, child) for each in body]

    return encode, decode


def _set(item: Codec) -> Codec:
    encode_item, decode_item = item

    def encode(value: Any, child: Child) -> Any:
        if type(value) is not set or not all(type(each) is str for each in value):
            return odd(value, child)
        return [encode_item(each, child) for each in sorted(value)]

    def decode(body: Any, child: Child) -> Any:
        if type(body) is not list:
            return _tagged(body, child)
        return {decode_item(each, child) for each in body}

    return encode, decode


def _dict(item: Codec) -> Codec:
    encode_item, decode_item = item

    def encode(value: Any, child: Child) -> Any:
        if type(value) is not dict:
            return odd(value, child)
        return {encode_key(key, child): encode_item(each, child) for key, each in value.items()}

    def decode(body: Any, child: Child) -> Any:
        if type(body) is not dict or tag_of(body) is not None:
            return _tagged(body, child)
        return {decode_key(key, child): decode_item(each, child) for key, each in body.items()}

    return encode, decode


def _optional(item: Codec) -> Codec:
    encode_item, decode_item = item
    if item is _FREE:
        return item
    return (
        lambda value, child: None if value is None else encode_item(value, child),
        lambda body, child: None if body is None else decode_item(body, child),
    )


def _union(members: Iterable[Any]) -> Codec:
    if not any(isinstance(each, type) and issubclass(each, BaseModel) for each in members):
        return _FREE

    def decode(body: Any, child: Child) -> Any:
        value = child(body)
        if type(value) is dict:  # only validation can tell which of the models it is
            raise Mismatch("a model of no known class")
        return value

    return _free, decode


def codec(annotation: Any, model: ModelCodec, *, optional: bool = True) -> Codec:
    """The codec of a type. `model` makes that of a model class; `optional` is False if None cannot
    occur."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return codec(arguments[0], model, optional=optional)
    if origin in (typing.Union, types.UnionType):
        members = [each for each in arguments if each is not type(None)]
        member = codec(members[0], model) if len(members) == 1 else _union(members)
        return _optional(member) if optional else member
    if origin is list:
        return _list(codec(arguments[0], model))
    if origin is set:
        return _set(codec(arguments[0], model))
    if origin is dict:
        return _dict(codec(arguments[1], model))
    if annotation in (str, int, bool):
        return _scalar(annotation)
    if annotation is float:
        return _encode_number, _decode_number
    if annotation is bytes:
        return _encode_binary, _decode_binary
    if isinstance(annotation, type):
        if issubclass(annotation, enum.Enum):
            return _enumeration(annotation)
        if issubclass(annotation, BaseModel):
            return model(annotation)
    return _FREE
