"""Continuation tokens: where the next page starts. Nothing is kept on the server.

A token names the query it belongs to (a checksum of text and parameters) and either the last row
that was returned (its sort keys, its rowid, and how many results of that row were returned), or
simply how many results came before.
"""

import base64
import binascii
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .errors import ContinuationError
from .values import NUMBER, OBJECT, STRING, SortKey

# A longer text as a sort key would not fit into a header: such a token counts instead.
_LONGEST_KEY = 512


@dataclass(frozen=True, slots=True)
class Place:
    """After `returned` results; `keys` and `rowid` of the last row, if it can be found again."""

    returned: int
    keys: tuple[SortKey, ...] | None = None
    rowid: int = 0
    of_row: int = 0


def place_after(returned: int, keys: Sequence[SortKey], rowid: int, of_row: int) -> Place:
    if any(kind == STRING and len(value) > _LONGEST_KEY for kind, value in keys):
        return Place(returned)
    return Place(returned, tuple(keys), rowid, of_row)


def fingerprint(text: str, parameters: Any) -> int:
    return zlib.crc32(json.dumps([text, parameters], sort_keys=True).encode())


def write(place: Place, query: int) -> str:
    fields = [query, place.returned, place.keys, place.rowid, place.of_row]
    return base64.urlsafe_b64encode(json.dumps(fields, separators=(",", ":")).encode()).decode()


def read(token: str, query: int, *, keys_of_order: int) -> Place:
    try:
        fields = json.loads(base64.b64decode(token, altchars=b"-_", validate=True))
        owner, returned, keys, rowid, of_row = fields
        place = Place(
            _natural(returned),
            None if keys is None else tuple(_key(*pair) for pair in keys),
            _natural(rowid),
            _natural(of_row),
        )
    except (ValueError, TypeError, binascii.Error, RecursionError):
        raise ContinuationError from None
    if owner != query or (place.keys is not None and len(place.keys) != keys_of_order):
        raise ContinuationError
    return place


def _natural(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError
    return value


def _key(kind: Any, value: Any) -> SortKey:
    if not _natural(kind) <= OBJECT:
        raise ValueError
    wanted = (int, float) if kind == NUMBER else (str,) if kind == STRING else (int,)
    if type(value) not in wanted:
        raise ValueError
    return kind, value
