"""The change feed: the newest version of each item, in the order of the last writes."""

from __future__ import annotations

import email.utils
import sqlite3
from dataclasses import dataclass
from typing import Any

from .containers import Container
from .errors import BadRequest
from .snapshots import Snapshot

DEFAULT_PAGE = 100
MAX_BYTES = 4 * 1024 * 1024


@dataclass(slots=True)
class FeedPage:
    text: str
    count: int
    etag: str


def read(
    connection: sqlite3.Connection,
    container: Container,
    now: int,
    headers: dict[str, str],
    snapshot: Snapshot,
) -> FeedPage:
    """One page after the position in ``If-None-Match``; its etag is the next position."""
    newest = snapshot.version
    if newest is None:
        (newest,) = connection.execute(
            "SELECT version FROM containers WHERE num = ?", [container.number]
        ).fetchone()
    after = _place(headers.get("if-none-match"), newest)
    conditions: list[str] = ["version > ?"]
    values: list[Any] = [after]
    if "if-modified-since" in headers and headers.get("if-none-match") is None:
        conditions.append("ts >= ?")
        values.append(_timestamp(headers["if-modified-since"]))
    if snapshot.key is not None:
        conditions.append("pk = ?")
        values.append(snapshot.key)
    if snapshot.epk_range is not None:
        conditions.append("epk >= ? AND epk < ?")
        values.extend(snapshot.epk_range)
    alive = container.alive_sql(now)
    if alive is not None:
        conditions.append(alive)
    limit = _limit(headers.get("x-ms-max-item-count"))
    cursor = connection.execute(
        f"SELECT version, lsn, body FROM {snapshot.table} WHERE {' AND '.join(conditions)} "
        "ORDER BY version LIMIT ?",
        [*values, limit],
    )
    bodies: list[str] = []
    # A replica may be older than a position that another one gave: the feed never goes back.
    size, place, more = 0, max(newest, after), False
    for version, lsn, body in cursor:
        size += len(body)
        if bodies and size > MAX_BYTES:
            more = True
            break
        bodies.append(f'{body[:-1]},"_lsn":{lsn}}}')
        last = version
    cursor.close()
    if bodies and (more or len(bodies) == limit):
        place = last
    text = f'{{"_rid":"{container.rid}","Documents":[{",".join(bodies)}],"_count":{len(bodies)}}}'
    return FeedPage(text, len(bodies), f'"{place}"')


def _place(etag: str | None, newest: int) -> int:
    if etag is None:
        return 0
    if etag == "*":
        return newest
    try:
        return int(etag.strip('"'))
    except ValueError:
        raise BadRequest(
            f"The continuation of the change feed '{etag[:100]}' is invalid."
        ) from None


def _timestamp(text: str) -> int:
    try:
        return int(email.utils.parsedate_to_datetime(text).timestamp())
    except (TypeError, ValueError):
        raise BadRequest(f"The date '{text[:100]}' is invalid.") from None


def _limit(text: Any) -> int:
    try:
        limit = int(text or DEFAULT_PAGE)
    except ValueError:
        raise BadRequest(f"The page size '{text[:100]}' is invalid.") from None
    return limit if limit > 0 else 1_000_000
