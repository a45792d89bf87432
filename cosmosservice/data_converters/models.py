"""Pydantic models as JSON objects, by a plan that is created once per class from its fields.

A model becomes an object with its fields under their names (or aliases, if the class is read only
by alias), without those that are None by default. Reading restores the fields without validation.
A document that does not fit the class raises `Mismatch`, and the caller validates instead.
"""

import contextlib
import typing
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from cosmosservice.data_converters.classes import is_set_up
from cosmosservice.data_converters.codecs import (
    Child,
    Codec,
    Decode,
    Encode,
    Mismatch,
    codec,
    json_type,
    odd,
)
from cosmosservice.data_converters.tags import CLASS, decode_key, encode_key, escape_key, tag_of

# By key: the name, how to decode, and the type of JSON that stays as it is.
Decoders = dict[str, tuple[str, Decode, type | None]]

_UNSET = object()

# The slots of a model: four times as fast as object.__setattr__, which looks them up.
_new: Callable[[type[Any]], Any] = object.__new__
_set_values, _set_found, _set_extra, _set_private = (
    BaseModel.__dict__[slot].__set__
    for slot in (
        "__dict__",
        "__pydantic_fields_set__",
        "__pydantic_extra__",
        "__pydantic_private__",
    )
)


_M = TypeVar("_M", bound=BaseModel)


class Plan(Generic[_M]):
    """How the instances of one model class are written and read."""

    def __init__(self, cls: type[_M]) -> None:
        self.cls = cls
        config = cls.model_config
        by_name = config.get("populate_by_name") or config.get("validate_by_name")
        self.decoders: Decoders = {}
        # By name: the key, how to encode, whether it is text, and what is left out if it is empty.
        self._encoders: dict[str, tuple[str, Encode, bool, type | None]] = {}
        self._write_none: set[str] = set()
        self._defaults: dict[str, Any] = {}  # of all fields, for their order
        self._factories: dict[str, Callable[[], Any]] = {}
        self._required: set[str] = set()
        for name, field in cls.model_fields.items():
            alias = field.validation_alias
            key = alias if isinstance(alias, str) and not by_name else name
            encode, decode = codec(field.annotation, _codec, optional=False)
            factory = field.default_factory
            empty = factory if isinstance(factory, type) and factory in (dict, list, set) else None
            kind = json_type(field.annotation)
            if not field.exclude:
                self._encoders[name] = (key, encode, kind is str, empty)
            self.decoders[key] = (name, decode, kind)
            if field.is_required() or field.default_factory_takes_validated_data:
                self._required.add(name)
                self._defaults[name] = _UNSET
            elif field.default is None and field.default_factory is None:
                self._defaults[name] = None
                continue
            elif type(field.default) in (str, int, float, bool, bytes):
                self._defaults[name] = field.default
            else:
                self._defaults[name] = _UNSET
                self._factories[name] = _default_of(field)
            self._write_none.add(name)
        self._write_none &= self._encoders.keys()
        self.extra = config.get("extra") == "allow"
        self._private = {
            name: attribute
            for name, attribute in cls.__private_attributes__.items()
            if hasattr(attribute, "get_default") and not is_set_up(cls)
        }
        self._validated = {
            name
            for decorator in cls.__pydantic_decorators__.field_validators.values()
            for name in (
                cls.model_fields if "*" in decorator.info.fields else decorator.info.fields
            )
        }

    def knows(self, key: str) -> bool:
        return key in self.decoders or key in self._private

    def encode(self, model: BaseModel, child: Child) -> dict[str, Any]:
        document: dict[str, Any] = {}
        encoders, write_none = self._encoders, self._write_none
        for name, value in model.__dict__.items():
            if value is None:
                if name in write_none:
                    document[encoders[name][0]] = None
                continue
            known = encoders.get(name)
            if known is None:
                continue
            key, encode, is_text, empty = known
            if is_text and type(value) is str and value.isascii():  # true for most, at every append
                document[key] = value
            elif empty is None or value or type(value) is not empty:
                document[key] = encode(value, child)
        if self._private:
            self._encode_private(model, document, child)
        if model.__pydantic_extra__:
            self._encode_extra(model.__pydantic_extra__, document, child)
        return document

    def _encode_private(self, model: BaseModel, document: dict[str, Any], child: Child) -> None:
        current = model.__pydantic_private__ or {}
        for name, attribute in self._private.items():
            value = current.get(name, _UNSET)
            if value is not _UNSET and value != attribute.get_default():
                document[name] = child(value)

    def _encode_extra(self, extra: dict[str, Any], document: dict[str, Any], child: Child) -> None:
        for name, value in extra.items():
            taken = name in self.decoders or name in self._private
            key = escape_key(name, child) if taken else encode_key(name, child)
            document[key] = child(value)

    def decode(
        self, document: Mapping[str, Any], child: Child, decoders: Decoders | None = None
    ) -> _M:
        """The model that was written; raises if the document does not fit the class."""
        if decoders is None:
            decoders = self.decoders
        values = self._defaults.copy()
        found: set[str] = set()
        extra: dict[str, Any] | None = {} if self.extra else None
        private: dict[str, Any] | None = None
        if self._private:
            private = {name: item.get_default() for name, item in self._private.items()}
        for key, body in document.items():
            known = decoders.get(key)
            if known is not None:
                name, decode, kind = known
                values[name] = body if body is None or type(body) is kind else decode(body, child)
                found.add(name)
            elif private is not None and key in private:
                private[key] = child(body)
            elif extra is None:
                raise Mismatch(key)
            else:
                extra[decode_key(key, child)] = child(body)
        if self._required and not self._required <= found:
            raise Mismatch("a required field is missing")
        if self._factories:
            for name, default in self._factories.items():
                if values[name] is _UNSET:
                    values[name] = default()
        model: _M = _new(self.cls)
        _set_values(model, values)
        _set_found(model, found)
        _set_extra(model, extra)
        _set_private(model, private)
        if self._validated and not self._validated.isdisjoint(found):
            self._validate(model, values, self._validated & found)
        return model

    def _validate(self, model: _M, values: dict[str, Any], names: set[str]) -> None:
        """A validator may decide the type of such a field, as it does for auth configs. What the
        validator refuses was assigned without it: it stays, as do other dicts and keys that it
        would turn into text."""
        for name in names:
            held = values[name]
            if isinstance(held, dict) and not (
                type(held) is dict and all(type(key) is str for key in held)
            ):
                continue
            with contextlib.suppress(Exception):
                self.cls.__pydantic_validator__.validate_assignment(model, name, values[name])


def _default_of(field: FieldInfo) -> Callable[[], Any]:
    if field.default_factory is not None:
        return typing.cast(Callable[[], Any], field.default_factory)
    return field.get_default  # a copy each time


_plans: dict[type[BaseModel], Plan[Any]] = {}


def plan(cls: type[_M]) -> Plan[_M]:
    """The plan of a class, created once."""
    found = _plans.get(cls)
    if found is None:
        found = _plans[cls] = Plan(cls)
    return found


def _codec(cls: type[BaseModel]) -> Codec:
    """How a field of this class is written and read."""

    def encode(value: Any, child: Child) -> Any:
        return plan(cls).encode(value, child) if type(value) is cls else odd(value, child)

    def decode(body: Any, child: Child) -> Any:
        if type(body) is not dict:
            raise Mismatch("another type")
        tag = tag_of(body) if len(body) == 1 or CLASS in body else None
        if tag is None:
            return plan(cls).decode(body, child)
        value = child(body)
        if tag == CLASS and type(value) is dict:
            # An unknown class is read as the one that the field declares.
            return plan(cls).decode({k: v for k, v in body.items() if k != CLASS}, child)
        return value

    return encode, decode
