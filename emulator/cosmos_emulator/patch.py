"""Partial updates: set, add, replace, remove, incr, move."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from cosmos_emulator.documents import SYSTEM_PROPERTIES, UNDEFINED
from cosmos_emulator.errors import BadRequest
from cosmos_emulator.messages import Document

MAX_OPERATIONS = 10


def parse(body: Any) -> tuple[Callable[[Document], Document], str | None]:
    """The change that a patch describes, and its condition."""
    if isinstance(body, dict):
        operations, condition = body.get("operations"), body.get("condition")
    else:
        operations, condition = body, None
    if not isinstance(operations, list) or not operations:
        raise BadRequest("A patch needs a list of operations.")
    if len(operations) > MAX_OPERATIONS:
        raise BadRequest(f"The number of patch operations exceeds the limit of {MAX_OPERATIONS}.")
    if condition is not None and not isinstance(condition, str):
        raise BadRequest("The condition of a patch must be a string.")

    def change(document: Document) -> Document:
        for operation in operations:
            _apply(document, operation)
        return document

    return change, condition


def _apply(document: Document, operation: Any) -> None:
    if not isinstance(operation, dict):
        raise BadRequest("A patch operation must be an object.")
    kind = str(operation.get("op", "")).lower()
    path = _pointer(operation.get("path"))
    if kind == "remove":
        _take(document, path)
    elif kind == "move":
        source = _pointer(operation.get("from"))
        if path[: len(source)] == source:
            raise BadRequest("A value cannot be moved into itself.")
        _put(document, path, _take(document, source), insert=True)
    elif kind in ("set", "add", "replace", "incr"):
        if "value" not in operation:
            raise BadRequest(f"The patch operation '{kind}' needs a value.")
        _write(document, kind, path, operation["value"])
    else:
        raise BadRequest(f"The patch operation '{kind}' is unknown.")


def _write(document: Document, kind: str, path: list[str], value: Any) -> None:
    current = _find(document, path)
    if kind == "replace" and current is UNDEFINED:
        raise BadRequest(f"The path /{'/'.join(path)} to replace does not exist.")
    if kind == "incr":
        value = _sum(current, value, path)
    _put(document, path, value, insert=kind == "add")


def _sum(current: Any, value: Any, path: list[str]) -> int | float:
    if not _is_number(value):
        raise BadRequest("The value of an increment must be a number.")
    if current is UNDEFINED:
        return value  # type: ignore[no-any-return]
    if not _is_number(current):
        raise BadRequest(f"The value under /{'/'.join(path)} is not a number.")
    total = float(current) + float(value)
    if math.isinf(total):
        raise BadRequest("The sum is out of range.")
    return int(total) if total.is_integer() and abs(total) < 1e21 else total


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _pointer(path: Any) -> list[str]:
    if not isinstance(path, str) or not path.startswith("/") or path == "/":
        raise BadRequest(f"The patch path '{path}' is invalid.")
    parts = [part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/")]
    if parts[0] in SYSTEM_PROPERTIES:
        raise BadRequest(f"The system property '{parts[0]}' cannot be patched.")
    return parts


def _index(part: str, length: int) -> int:
    """An index of an array; `-` is after its end."""
    if part == "-":
        return length
    if not part.isascii() or not part.isdigit():
        raise BadRequest(f"'{part}' is not an index of an array.")
    return int(part)


def _find(document: Any, path: list[str]) -> Any:
    for part in path:
        if isinstance(document, dict):
            document = document.get(part, UNDEFINED)
        elif isinstance(document, list):
            index = _index(part, len(document))
            document = document[index] if index < len(document) else UNDEFINED
        else:
            return UNDEFINED
    return document


def _parent(document: Document, path: list[str]) -> Any:
    parent = _find(document, path[:-1])
    if not isinstance(parent, (dict, list)):
        raise BadRequest(f"The path /{'/'.join(path)} leads nowhere: its parent does not exist.")
    return parent


def _put(document: Document, path: list[str], value: Any, *, insert: bool) -> None:
    parent, last = _parent(document, path), path[-1]
    if isinstance(parent, dict):
        parent[last] = value
        return
    index = _index(last, len(parent))
    if index > len(parent):
        raise BadRequest(f"The index {index} is past the end of the array.")
    if insert or index == len(parent):
        parent.insert(index, value)
    else:
        parent[index] = value


def _take(document: Document, path: list[str]) -> Any:
    parent, last = _parent(document, path), path[-1]
    if isinstance(parent, dict):
        if last not in parent:
            raise BadRequest(f"The path /{'/'.join(path)} does not exist.")
        return parent.pop(last)
    index = _index(last, len(parent))
    if index >= len(parent):
        raise BadRequest(f"The path /{'/'.join(path)} does not exist.")
    return parent.pop(index)
