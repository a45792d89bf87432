"""Classes that a document may name: the models and enumerations of the modules an Event is made of.

Nothing is ever imported because a document says so.
"""

import enum
import sys
import typing
from functools import cache, lru_cache
from typing import Any

from google.adk.events.event import Event
from pydantic import BaseModel


def _modules_of(cls: type[BaseModel], seen: set[Any]) -> set[str]:
    modules = {cls.__module__}
    todo: list[Any] = [field.annotation for field in cls.model_fields.values()]
    while todo:
        annotation = todo.pop()
        todo.extend(typing.get_args(annotation))
        if isinstance(annotation, type) and annotation not in seen:
            seen.add(annotation)
            if issubclass(annotation, BaseModel):
                modules |= _modules_of(annotation, seen)
            elif issubclass(annotation, enum.Enum):
                modules.add(annotation.__module__)
    return modules


@cache
def _trusted_modules() -> set[str]:
    # Brings FastAPI along, half a second that an import of this package should not take.
    from google.adk.auth.auth_tool import AuthConfig

    return _modules_of(Event, set()) | _modules_of(AuthConfig, set())


def class_named(name: str) -> type[BaseModel] | type[enum.Enum] | None:
    """The model or enumeration of that full name, if it is one of those that may be restored."""
    module, _, attribute = name.rpartition(".")
    if module not in _trusted_modules():
        return None
    cls = vars(sys.modules[module]).get(attribute)
    if isinstance(cls, type) and issubclass(cls, (BaseModel, enum.Enum)):
        return cls if cls.__module__ == module else None
    return None


@lru_cache(maxsize=1024)
def name_of(cls: type) -> str | None:
    """The full name under which `class_named` finds the class, None if it does not."""
    name = f"{cls.__module__}.{cls.__qualname__}"
    return name if class_named(name) is cls else None
