"""Documents as JSON text."""

import json
from typing import Any

import pydantic_core

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode


def to_json(document: Any) -> bytes:
    """Compact ASCII JSON: what the Cosmos SDK sends."""
    return _encode(document).encode("ascii")


def from_json(raw: bytes | str) -> Any:
    return pydantic_core.from_json(raw)
