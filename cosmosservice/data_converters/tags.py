"""Tags: which JSON objects and keys are encoded values.

A tagged object has one key that starts with "$", or names a class. So that a user's dict is never
mistaken for one, its keys that start with "$" are escaped, and so are those that JSON cannot
hold: `$:"$x"`, `$:1`, `$:null`. Each key is escaped for itself: two states that are merged as
documents give the document of the merged state.
"""

from collections.abc import Callable
from typing import Any

from cosmosservice.data_converters.scalars import well_formed
from cosmosservice.data_converters.text import from_json, to_json

CLASS = "$class"  # among the fields of a model: its class, if the context does not tell it
_ESCAPED = "$:"


def encode_key(key: Any, child: Callable[[Any], Any]) -> str:
    """A dict's key as a JSON key; one that needs escaping is encoded by `child`, as a value."""
    if type(key) is str and key[:1] not in ("", "$") and (key.isascii() or well_formed(key)):
        return key
    return escape_key(key, child)


def escape_key(key: Any, child: Callable[[Any], Any]) -> str:
    return _ESCAPED + to_json(child(key)).decode()


def decode_key(key: str, child: Callable[[Any], Any]) -> Any:
    if key[:2] != _ESCAPED:
        return key
    decoded = child(from_json(key[2:]))
    hash(decoded)  # raises if it cannot be a key
    return decoded


def tag_of(value: Any) -> str | None:
    """The tag of a tagged JSON value, None for any other."""
    if type(value) is dict:
        if len(value) == 1:
            key: str = next(iter(value))
            if key[:1] == "$" and key[:2] != _ESCAPED:
                return key
        elif CLASS in value:
            return CLASS
    return None
