"""Continuation tokens: where the next page starts. Nothing is kept on the server.

A token names either the last row that was returned (its sort keys, its rowid, and how many results
of that row were returned), or simply how many results came before. The first kind belongs to an
order, whatever else the query says: an SDK that resumes a sorted query adds a condition to it. The
second kind belongs to a query with its parameters: a count means nothing to another one.
"""

import base64
import binascii
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cosmos_emulator.query.errors import ContinuationError
from cosmos_emulator.query.values import NUMBER, OBJECT, STRING, SortKey

# A longer text as a sort key would not fit into a header: such a token counts instead.
_LONGEST_KEY = 512


@dataclass(frozen=True, slots=True)
class Continuation:
    """After `returned` results; `keys` and `rowid` of the last row, if it can be found again."""

    returned: int
    keys: tuple[SortKey, ...] | None = None
    rowid: int = 0
    of_row: int = 0


def continuation_after(
    returned: int, keys: Sequence[SortKey], rowid: int, of_row: int
) -> Continuation:
    if any(kind == STRING and len(value) > _LONGEST_KEY for kind, value in keys):
        return Continuation(returned)
    return Continuation(returned, tuple(keys), rowid, of_row)


@dataclass(frozen=True, slots=True)
class Owner:
    """What tokens are made for: a query and its order."""

    text: str
    parameters: Any
    order: Sequence[Any]

    def checksum(self, continuation: Continuation) -> int:
        if continuation.keys is not None:
            return zlib.crc32(repr(self.order).encode())
        whole = json.dumps([self.text, self.parameters], sort_keys=True)
        return zlib.crc32(whole.encode())


def write(continuation: Continuation, owner: Owner) -> str:
    fields = [
        owner.checksum(continuation),
        continuation.returned,
        continuation.keys,
        continuation.rowid,
        continuation.of_row,
    ]
    return base64.urlsafe_b64encode(json.dumps(fields, separators=(",", ":")).encode()).decode()


def read(token: str, owner: Owner) -> Continuation:
    try:
        fields = json.loads(base64.b64decode(token, altchars=b"-_", validate=True))
        checksum, returned, keys, rowid, of_row = fields
        continuation = Continuation(
            _natural(returned),
            None if keys is None else tuple(_key(*pair) for pair in keys),
            _natural(rowid),
            _natural(of_row),
        )
    except (ValueError, TypeError, binascii.Error, RecursionError):
        raise ContinuationError from None
    wrong_order = continuation.keys is not None and len(continuation.keys) != len(owner.order)
    if checksum != owner.checksum(continuation) or wrong_order:
        raise ContinuationError
    return continuation


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
