"""Session tokens: how far a client has read or written each range of a container.

A token is a list of `range:version#lsn` with commas between. The SDK keeps one for each range.
"""

from __future__ import annotations

from functools import lru_cache

from cosmos_emulator.errors import BadRequest


@lru_cache(maxsize=1024)
def parse(header: str | None) -> dict[str, int]:
    """The lowest LSN that a request accepts, by range."""
    demands: dict[str, int] = {}
    for part in (header or "").split(","):
        if not part:
            continue
        range_id, colon, vector = part.rpartition(":")
        if not colon:
            raise _invalid(header)
        try:
            # -1#5, -1#5#1=3 with the progress of regions, or only 5 as in old tokens.
            fields = vector.split("#")
            demands[range_id] = int(fields[min(1, len(fields) - 1)])
        except ValueError:
            raise _invalid(header) from None
    return demands


def _invalid(header: str | None) -> BadRequest:
    return BadRequest(f"The session token provided '{(header or '')[:100]}' is invalid.")
