"""Resource ids (`_rid`), self links and etags, built as the service builds them."""

from __future__ import annotations

import base64
import binascii


def database_rid(number: int) -> str:
    return _encode(number.to_bytes(4, "little"))


def child_rid(parent: str, number: int) -> str:
    """A container or a user of a database."""
    return _encode(_decode(parent) + (number | 0x80000000).to_bytes(4, "big"))


def item_rid(container: str, number: int, mark: int = 0) -> str:
    """An item, or with a mark in the top bits a script or a permission."""
    return _encode(_decode(container) + (number | mark << 60).to_bytes(8, "little"))


def item_number(rid: str) -> int | None:
    """The number that :func:`item_rid` was given, if it is such a rid."""
    try:
        data = _decode(rid)
    except (binascii.Error, ValueError):
        return None
    return int.from_bytes(data[8:16], "little") if len(data) == 16 else None


def etag(container: int, version: int) -> str:
    """Unique for each write to each container."""
    return f'"{container:08x}-0000-0000-0000-{version:012x}"'


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode().replace("/", "-")


def _decode(rid: str) -> bytes:
    return base64.b64decode(rid.replace("-", "/"))
