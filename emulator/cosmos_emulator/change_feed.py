"""The change feed: the newest version of each item, in the order of the last writes."""

from __future__ import annotations

import email.utils
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from cosmos_emulator.containers import Container
from cosmos_emulator.errors import BadRequest
from cosmos_emulator.snapshots import Snapshot

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
    """One page after the continuation in `If-None-Match`; its etag is the next one."""
    newest = snapshot.version
    if newest is None:
        (newest,) = connection.execute(
            "SELECT version FROM containers WHERE num = ?", [container.number]
        ).fetchone()
    after = _version(headers.get("if-none-match"), newest)
    conditions: list[str] = ["version > ?"]
    values: list[Any] = [after]
    if "if-modified-since" in headers and headers.get("if-none-match") is None:
        conditions.append("ts >= ?")
        values.append(timestamp(headers["if-modified-since"]))
    alive = container.alive_sql(now)
    if alive is not None:
        conditions.append(alive)
    # A replica may be older than a continuation that another one gave: the feed never goes back.
    reader = FeedReader(headers, max(newest, after))
    query = f"SELECT version, lsn, body FROM {snapshot.table} WHERE {{}} ORDER BY version LIMIT ?"
    for version, lsn, body in reader.rows(connection, query, conditions, values, snapshot):
        if not reader.add(version, f'{body[:-1]},"_lsn":{lsn}}}'):
            break
    return reader.page(container.rid, lambda position: f'"{position}"')


class FeedReader:
    """Collects a page: as many changes as were asked for, and as fit."""

    def __init__(self, headers: dict[str, str], end: int) -> None:
        self._limit = _limit(headers.get("x-ms-max-item-count"))
        self._end = end
        self._texts: list[str] = []
        self._size = 0
        self._last = 0
        self._more = False

    def rows(
        self,
        connection: sqlite3.Connection,
        query: str,
        conditions: list[str],
        values: list[Any],
        snapshot: Snapshot,
    ) -> Iterator[Any]:
        """The rows of the key or the range that was asked for; `query` has `{}` for WHERE."""
        if snapshot.key is not None:
            conditions.append("pk = ?")
            values.append(snapshot.key)
        if snapshot.epk_range is not None:
            conditions.append("epk >= ? AND epk < ?")
            values.extend(snapshot.epk_range)
        cursor = connection.execute(query.format(" AND ".join(conditions)), [*values, self._limit])
        with closing(cursor):
            yield from cursor

    def add(self, position: int, text: str) -> bool:
        """False if the page is full without it."""
        self._size += len(text)
        if self._texts and self._size > MAX_BYTES:
            self._more = True
            return False
        self._texts.append(text)
        self._last = position
        return True

    def page(self, container_rid: str, etag: Callable[[int], str]) -> FeedPage:
        count = len(self._texts)
        full = self._more or count == self._limit
        text = (
            f'{{"_rid":"{container_rid}","Documents":[{",".join(self._texts)}],"_count":{count}}}'
        )
        return FeedPage(text, count, etag(self._last if count and full else self._end))


def _version(etag: str | None, newest: int) -> int:
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


def timestamp(text: str) -> int:
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
