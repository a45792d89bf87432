"""Documents as JSON text."""

import json
from typing import Any

import pydantic_core

_escaped = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_ASCII = bytes(range(128))


def to_json(document: Any) -> bytes:
    """Compact JSON. Half of a surrogate pair, which is not valid Unicode, is escaped."""
    try:
        return pydantic_core.to_json(document, inf_nan_mode="constants")
    except pydantic_core.PydanticSerializationError:
        return _escaped(document).encode("ascii")


def from_json(raw: bytes | str) -> Any:
    return pydantic_core.from_json(raw)


def wire_size(raw: bytes) -> int:
    r"""The number of bytes that the Cosmos SDK sends for this JSON, with non-ASCII escaped."""
    size = len(raw) + 5 * raw.count(b"\x7f")
    if raw.isascii():
        return size
    other = raw.translate(None, _ASCII)
    return size - len(other) + 6 * (len(other.decode().encode("utf-16-le")) // 2)
