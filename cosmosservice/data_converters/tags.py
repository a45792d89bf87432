"""How an object that stands for something else is told from a plain one."""

from typing import Any

from .scalars import well_formed

CLASS = "$class"  # among the fields of a model: its class, where its place does not tell it


def plain_keys(value: dict[Any, Any]) -> bool:
    """Whether a dict can be a JSON object as it is, and be told from a tag."""
    for key in value:
        if type(key) is not str or not key or not (key.isascii() or well_formed(key)):
            return False
    return CLASS not in value and not (len(value) == 1 and next(iter(value))[0] == "$")


def tag_of(value: Any) -> str | None:
    """The tag of a tagged JSON value, None for any other."""
    if type(value) is dict:
        if len(value) == 1:
            key = next(iter(value))
            if key[:1] == "$":
                return str(key)
        elif CLASS in value:
            return CLASS
    return None
