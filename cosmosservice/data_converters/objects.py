"""Objects of the application's own classes, as data with the name of their class.

    {"$class": "shop.Order", "tea": 2}      a model or a dataclass, by the names of its fields
    {"$enum": ["shop.Size", "large"]}       a member of an enumeration, by its value
    {"$namedtuple": ["shop.Place", [1, 2]]}
    {"$root": ["shop.Tags", ["a"]]}         a model that is one value

Every field is written as a tagged value, so nothing is lost for a reader that does not have the
class: it gets the data. A reader that has registered the class gets an object, restored without
validation. If the class runs code when an object is created, or has its own serializers, the object
is created from the data by validation instead.
"""

import contextlib
import dataclasses
import enum
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

from pydantic import BaseModel, PlainSerializer, WrapSerializer

from cosmosservice.data_converters.classes import class_named, full_name, is_named_tuple, is_set_up
from cosmosservice.data_converters.lenient import validated
from cosmosservice.data_converters.tags import CLASS, encode_key, escape_key

Child = Callable[[Any], Any]

PRIVATE = "$private"  # of a model, beside its fields


class NotAnObject(Exception):
    """The value is not of a kind that can be restored."""


# Writing


def encode_object(value: Any, child: Child) -> dict[str, Any]:
    kind: type = type(value)
    name = full_name(kind)
    if isinstance(value, enum.Enum):
        return {"$enum": [name, child(value.value)]}
    if isinstance(value, BaseModel):
        return _encode_model(name, value, child)
    if dataclasses.is_dataclass(kind):
        fields = [field.name for field in dataclasses.fields(kind)]
        held = {each: child(getattr(value, each)) for each in fields if hasattr(value, each)}
        return {CLASS: name, **held}
    if is_named_tuple(kind):
        return {"$namedtuple": [name, [child(inner) for inner in value]]}
    raise NotAnObject


def _encode_model(name: str, model: BaseModel, child: Child) -> dict[str, Any]:
    cls = type(model)
    if _has_serializers(cls):
        data = model.model_dump()
        if not isinstance(data, dict):
            return {"$root": [name, child(data)]}
        return {CLASS: name, **{encode_key(key, child): child(each) for key, each in data.items()}}
    if cls.__pydantic_root_model__:
        return {"$root": [name, child(model.__dict__["root"])]}
    document: dict[str, Any] = {CLASS: name}
    for key, field in cls.model_fields.items():
        if key in model.__dict__ and not field.exclude:
            document[key] = child(model.__dict__[key])
    for key, value in (model.__pydantic_extra__ or {}).items():
        taken = key in document
        document[(escape_key if taken else encode_key)(key, child)] = child(value)
    private = _changed_private(model)
    if private and not is_set_up(cls):
        document[PRIVATE] = {key: child(value) for key, value in private.items()}
    return document


def _changed_private(model: BaseModel) -> dict[str, Any]:
    attributes = type(model).__private_attributes__
    unset = object()
    found: dict[str, Any] = {}
    for name, value in (model.__pydantic_private__ or {}).items():
        default = attributes[name].get_default() if name in attributes else unset
        same = False
        with contextlib.suppress(Exception):  # a comparison of the user's class may raise anything
            same = bool(value == default)
        if not same:
            found[name] = value
    return found


# Reading. The callers fall back on the data.


def restore_object(cls: type, fields: dict[str, Any], private: dict[str, Any]) -> Any:
    """The model or the dataclass with these fields; raises if they do not fit."""
    if issubclass(cls, BaseModel):
        return _restore_model(cls, fields, private)
    if dataclasses.is_dataclass(cls):
        return _restore_dataclass(cls, fields)
    raise NotAnObject


def restore_value(tag: str, name: Any, value: Any) -> Any:
    """The object that `tag` names, or the value if its class is not known here."""
    cls = class_named(name)
    if cls is None:
        return value
    if tag == "$enum" and issubclass(cls, enum.Enum):
        return cls(value)
    if tag == "$namedtuple" and is_named_tuple(cls):
        return cast(Any, cls)._make(value)
    if tag == "$root" and issubclass(cls, BaseModel):
        if cls.__pydantic_root_model__ and not _is_constructed(cls):
            return cls.model_construct(root=value)
        return cls.model_validate(value)
    return value


def _restore_model(cls: type[BaseModel], fields: dict[str, Any], private: dict[str, Any]) -> Any:
    known = cls.model_fields
    allowed = cls.model_config.get("extra") == "allow" or fields.keys() <= known.keys()
    needed = {name for name, field in known.items() if field.is_required()}
    if _is_constructed(cls) or not allowed or not needed <= fields.keys():
        return validated(cls, {_input_name(cls, key): each for key, each in fields.items()})
    model = cls.model_construct(**fields)
    if model.__pydantic_private__ is not None:
        for name in cls.__private_attributes__.keys() & private.keys():
            model.__pydantic_private__[name] = private[name]
    return model


def _input_name(cls: type[BaseModel], key: Any) -> Any:
    field = cls.model_fields.get(key)
    alias = field.validation_alias if field is not None else None
    return alias if isinstance(alias, str) else key


def _restore_dataclass(cls: type, fields: dict[str, Any]) -> Any:
    known = {field.name: field for field in dataclasses.fields(cls)}
    if not fields.keys() <= known.keys():
        raise NotAnObject
    if hasattr(cls, "__post_init__"):
        return cls(**{name: each for name, each in fields.items() if known[name].init})
    made: Any = object.__new__(cls)
    for name, field in known.items():
        if name in fields:
            value = fields[name]
        elif field.default is not dataclasses.MISSING:
            value = field.default
        elif field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        else:
            raise NotAnObject
        object.__setattr__(made, name, value)  # also where the class is frozen
    return made


# Classes with code of their own


def _is_constructed(cls: type[BaseModel]) -> bool:
    return is_set_up(cls) or _has_serializers(cls)


@lru_cache(maxsize=1024)
def _has_serializers(cls: type[BaseModel]) -> bool:
    """Whether the class has its own serializers."""
    decorators = cls.__pydantic_decorators__
    return bool(decorators.model_serializers or decorators.field_serializers) or any(
        isinstance(each, (PlainSerializer, WrapSerializer))
        for field in cls.model_fields.values()
        for each in field.metadata
    )
