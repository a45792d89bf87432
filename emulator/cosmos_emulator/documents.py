"""JSON as Cosmos DB stores it: integers of 64 bits, doubles, and the service's own properties."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from cosmos_emulator.errors import BadRequest, TooLarge
from cosmos_emulator.messages import Document, Request

MAX_BYTES = 2 * 1024 * 1024
MAX_DEPTH = 128
MAX_ID_BYTES = 1023
MAX_NAME = 255
FORBIDDEN_IN_NAME = set("/\\?#")
SYSTEM_PROPERTIES = ("_rid", "_self", "_etag", "_attachments", "_ts")

_PLAIN = 1e21  # above this a double is written with an exponent


_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # of a pair of escapes, which may have lost the other

INVALID = "The request payload is invalid. Ensure to provide a valid request payload."
REFUSED = 1.24  # request units for a write of a body that cannot be stored


def _invalid() -> BadRequest:
    return BadRequest(INVALID, charge=REFUSED)


def _integer(text: str) -> int | float:
    if len(text) < 19:
        return int(text)
    if len(text) <= 21 and -(2**63) <= (value := int(text)) < 2**64:
        return value
    return _float(text)


def _float(text: str) -> int | float:
    value = float(text)
    if math.isinf(value):
        raise _invalid()
    return int(value) if value.is_integer() and abs(value) < _PLAIN else value


def _constant(text: str) -> Any:
    raise _invalid()


_decoder = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=_constant)
_encoder = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), check_circular=False, allow_nan=False
)
dumps = _encoder.encode


def loads(body: bytes | str) -> Any:
    """Parses a request body, or answers 400. Half of a surrogate pair becomes U+FFFD."""
    try:
        text = body if isinstance(body, str) else body.decode("utf-8-sig")
        value = _decoder.decode(text)
        return _mended(value) if "\\u" in text and _HALF.search(text) else value
    except UnicodeDecodeError:
        raise _invalid() from None
    except json.JSONDecodeError:
        raise _invalid() from None
    except RecursionError:
        raise BadRequest(f"The request body is nested deeper than {MAX_DEPTH} levels.") from None


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_mended(each) for each in value]
    if isinstance(value, dict):
        return {_mended(name): _mended(each) for name, each in value.items()}
    return value


def load_body(request: Request) -> Any:
    """The JSON of a request, parsed once, because the log also needs its id."""
    if request.parsed is None:
        request.parsed = loads(request.body)
    return request.parsed


def load_object(request: Request) -> Document:
    value = load_body(request)
    if not isinstance(value, dict):
        raise BadRequest("One of the specified inputs is invalid", charge=REFUSED)
    return value


def check_size(body: bytes) -> None:
    if len(body) > MAX_BYTES:
        raise TooLarge


def check_name(value: Any) -> str:
    """The id of a resource other than an item."""
    _check_text(value)
    if not value or not FORBIDDEN_IN_NAME.isdisjoint(value) or value.endswith(" "):
        raise BadRequest("The input name presented contains invalid character.", charge=0)
    if len(value) > MAX_NAME:
        raise BadRequest(
            f"The input name '{value[:100]}' is invalid. Ensure to provide a unique non-empty "
            f"string less than '{MAX_NAME}' characters."
        )
    return str(value)


def _check_text(value: Any) -> None:
    if not isinstance(value, str):
        raise BadRequest(
            "The input content is invalid because the required properties - 'id; ' - are missing. "
            "Learn more: https://aka.ms/CosmosDB/sql/errors/missing-id",
            charge=REFUSED,
        )


def check_id(value: Any) -> str:
    """The id of an item. The service takes what some SDKs refuse: a '?', a trailing space."""
    _check_text(value)
    if not value or "/" in value or "\\" in value:
        raise BadRequest(
            f"The input name '{value[:100]}' is invalid: the id of an item must not be empty or "
            "contain '/' or '\\'."
        )
    if len(value.encode("utf-8", "replace")) > MAX_ID_BYTES:
        raise BadRequest(f"The id is longer than {MAX_ID_BYTES} bytes.")
    return str(value)


def check_depth(document: Document) -> None:
    level: list[Any] = [v for v in document.values() if isinstance(v, (dict, list))]
    depth = 1
    while level:
        if depth > MAX_DEPTH:
            raise BadRequest(f"The item is nested deeper than {MAX_DEPTH} levels.")
        depth += 1
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, (dict, list))
        ]


def path_parts(path: str) -> tuple[str, ...]:
    """Splits a path such as `/a/"b c"/d` into its parts."""
    parts: list[str] = []
    rest = path
    while rest:
        if not rest.startswith("/"):
            raise BadRequest(f"The path '{path}' is invalid.")
        rest = rest[1:]
        if rest.startswith(('"', "'")):
            part, quote, rest = rest[1:].partition(rest[0])
            if not quote:
                raise BadRequest(f"The path '{path}' is invalid.")
            parts.append(part)
        else:
            part, slash, rest = rest.partition("/")
            rest = slash + rest
            parts.append(part)
    if not parts or not all(parts):
        raise BadRequest(f"The path '{path}' is invalid.")
    return tuple(parts)


class Undefined:
    """The value of a missing property."""

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = Undefined()


def value_at(document: Any, parts: tuple[str, ...]) -> Any:
    """The value under a path of property names, or UNDEFINED."""
    for part in parts:
        if not isinstance(document, dict) or part not in document:
            return UNDEFINED
        document = document[part]
    return document
