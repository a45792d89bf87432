"""Classes that a document may name.

They are the models and enumerations that an Event consists of, and the classes that the
application registers. Nothing is ever imported because a document says so.
"""

import contextlib
import dataclasses
import enum
import sys
import typing
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

from google.adk.events.event import Event
from pydantic import BaseModel

_LIBRARIES = ("pydantic.", "google.adk.", "google.genai.")

_registered: dict[str, type] = {}
event_subclasses: dict[str, type[Event]] = {}
"""Those of the registered classes that are subclasses of Event, by their full names."""


def register_classes(*classes: type) -> None:
    """Restores stored objects of these classes as objects.

    Takes pydantic models (also subclasses of Event), dataclasses, enumerations and named tuples.
    The classes that their fields are declared with are registered too. Call it when the
    application starts, in every process that reads sessions; whether the process that wrote had
    registered them does not matter. What is not registered comes back as plain data.
    """
    for cls in classes:
        if not _restorable(cls):
            raise TypeError(
                "register_classes takes pydantic models, dataclasses, enumerations and named"
                f" tuples; {cls!r} is none of them."
            )
    todo = list(classes)
    seen: set[type] = set()
    while todo:
        cls = todo.pop()
        if cls not in seen:
            seen.add(cls)
            _registered[full_name(cls)] = cls
            if issubclass(cls, Event) and cls is not Event:
                event_subclasses[full_name(cls)] = cls
            todo.extend(each for each in _declared_in(cls) if _restorable(each))


def class_named(name: Any) -> type | None:
    """The class of that full name, if objects of it may be restored."""
    return _registered.get(name) or _trusted_class(name) if type(name) is str else None


@lru_cache(maxsize=1024)
def full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


@lru_cache(maxsize=1024)
def is_trusted(cls: type) -> bool:
    """Whether it is one of the classes that an event consists of."""
    return _trusted_class(full_name(cls)) is cls


@lru_cache(maxsize=1024)
def follows_schema(cls: type[BaseModel]) -> bool:
    """Whether it is, or derives from, a class that an event consists of. Its fields are then
    written as in the schema of an event, and not as tagged values."""
    return issubclass(cls, Event) or any(is_trusted(base) for base in cls.__mro__)


@lru_cache(maxsize=1024)
def is_set_up(cls: type[BaseModel]) -> bool:
    """Whether creating an object runs code of the application."""
    return any(
        not function.__module__.startswith(_LIBRARIES)
        or function.__name__ == "wrapped_model_post_init"  # pydantic's, around another one
        for function in (cls.__init__, cls.model_post_init)
    )


def is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def _restorable(cls: Any) -> bool:
    return isinstance(cls, type) and (
        issubclass(cls, (BaseModel, enum.Enum))
        or dataclasses.is_dataclass(cls)
        or is_named_tuple(cls)
    )


def _declared_in(cls: type) -> Iterator[type]:
    """The classes in the declarations of its fields."""
    todo: list[Any] = []
    if issubclass(cls, BaseModel):
        todo = [field.annotation for field in cls.model_fields.values()]
    elif not issubclass(cls, enum.Enum):
        with contextlib.suppress(Exception):  # a name that is not defined there
            todo = list(typing.get_type_hints(cls).values())
    while todo:
        annotation = todo.pop()
        todo.extend(typing.get_args(annotation))
        if isinstance(annotation, type):
            yield annotation


def _modules_of(cls: type[BaseModel], seen: set[type]) -> set[str]:
    modules = {cls.__module__}
    for each in _declared_in(cls):
        if each not in seen:
            seen.add(each)
            if issubclass(each, BaseModel):
                modules |= _modules_of(each, seen)
            elif issubclass(each, enum.Enum):
                modules.add(each.__module__)
    return modules


@cache
def _trusted_modules() -> set[str]:
    # Imports FastAPI, which takes half a second: too long for an import of this package.
    from google.adk.auth.auth_tool import AuthConfig

    return _modules_of(Event, set()) | _modules_of(AuthConfig, set())


def _trusted_class(name: str) -> type[BaseModel] | type[enum.Enum] | None:
    module, _, attribute = name.rpartition(".")
    if module not in _trusted_modules():
        return None
    cls = vars(sys.modules[module]).get(attribute)
    if isinstance(cls, type) and issubclass(cls, (BaseModel, enum.Enum)):
        return cls if cls.__module__ == module else None
    return None
