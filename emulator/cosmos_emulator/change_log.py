"""All versions and deletes: every change of the items of a container, for a while.

A container whose `changeFeedPolicy` names a retention has a table `changes_<n>`. Each create,
replace and delete is a row, written in the transaction that makes the change. Rows older than the
retention are removed, but for the newest of them: it tells how far back the feed can be read.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from cosmos_emulator.change_feed import FeedPage, FeedReader, timestamp
from cosmos_emulator.containers import Container
from cosmos_emulator.documents import dumps, loads, value_at
from cosmos_emulator.errors import BadRequest
from cosmos_emulator.snapshots import Snapshot

FEED = "full-fidelity feed"

_INSERT = "INSERT INTO changes_{n} (version, lsn, at, pk, epk, kind, previous_lsn, expired, body) "


class ChangeLog:
    """Writes what happens to the items of one container."""

    def __init__(
        self, connection: sqlite3.Connection, number: int, now: int, retention: int
    ) -> None:
        self._connection = connection
        self._number = number
        self._now = now
        self._retention = retention

    def created(self, seq: int, version: int) -> None:
        self._copy("create", f"seq = {seq}", version, "lsn", "0")
        if not version % 256:
            self.forget()

    def replaced(self, seq: int, version: int, previous_lsn: int) -> None:
        self._copy("replace", f"seq = {seq}", version, "lsn", str(previous_lsn))

    def removed(self, where: str, values: list[Any], version: int, lsn: int, expired: bool) -> None:
        """To be called before the items are removed."""
        self._copy("delete", where, version, str(lsn), "lsn", values, expired=expired)

    def lsn_of(self, seq: int) -> int:
        (lsn,) = self._connection.execute(
            f"SELECT lsn FROM items_{self._number} WHERE seq = ?", [seq]
        ).fetchone()
        return int(lsn)

    def _copy(
        self,
        kind: str,
        where: str,
        version: int,
        lsn: str,
        previous_lsn: str,
        values: list[Any] | None = None,
        *,
        expired: bool = False,
    ) -> None:
        self._connection.execute(
            _INSERT.format(n=self._number)
            + f"SELECT {version}, {lsn}, {self._now}, pk, epk, '{kind}', {previous_lsn}, "
            f"{int(expired)}, body FROM items_{self._number} WHERE {where} ORDER BY seq",
            values or [],
        )

    def forget(self) -> None:
        """Removes what is older than the retention."""
        table, since = f"changes_{self._number}", self._now - self._retention
        self._connection.execute(
            f"DELETE FROM {table} WHERE at < {since} AND position < "
            f"(SELECT max(position) FROM {table} WHERE at < {since})"
        )


def read(
    connection: sqlite3.Connection,
    container: Container,
    now: int,
    headers: dict[str, str],
    snapshot: Snapshot,
) -> FeedPage:
    """One page of changes after the continuation in `If-None-Match`."""
    retention = container.retention
    if retention is None:
        raise BadRequest(
            "Change feed in All Versions and Deletes mode must be enabled: the container has no "
            "change feed policy with a retention duration."
        )
    table = f"changes_{container.number}"
    forgotten, newest = connection.execute(
        f"SELECT coalesce((SELECT max(position) FROM {table} WHERE at < ?), 0), "
        f"coalesce((SELECT max(position) FROM {table} WHERE version <= ?), 0)",
        [now - retention, snapshot.version if snapshot.version is not None else 2**62],
    ).fetchone()
    continuation, since = headers.get("if-none-match"), headers.get("if-modified-since")
    conditions = [f"position <= {newest}"]
    if continuation == "*":
        after = newest
    elif continuation is not None:
        after = _position(continuation)
    elif since is not None and timestamp(since) >= now - retention:
        after = forgotten
        conditions.append(f"at >= {timestamp(since)}")
    else:
        after = -1
    if after < forgotten:
        raise BadRequest(
            "You must read the change feed from within the retention period. Start from now or "
            "from a continuation that is not older."
        )
    conditions.append(f"position > {after}")
    reader = FeedReader(headers, max(newest, after))
    query = (
        f"SELECT position, lsn, at, kind, previous_lsn, expired, body FROM {table} WHERE {{}} "
        "ORDER BY position LIMIT ?"
    )
    for row in reader.rows(connection, query, conditions, [], snapshot):
        if not reader.add(row[0], _change(container, *row[1:])):
            break
    return reader.page(container.rid, lambda position: f'"{position}-all"')


def _change(
    container: Container, lsn: int, at: int, kind: str, previous_lsn: int, expired: int, body: str
) -> str:
    metadata: dict[str, Any] = {"lsn": lsn, "crts": at, "operationType": kind}
    if kind != "create":
        metadata["previousImageLSN"] = previous_lsn
    if kind != "delete":
        return f'{{"current":{body},"metadata":{dumps(metadata)}}}'
    document = loads(body)
    metadata["timeToLiveExpired"] = bool(expired)
    metadata["id"] = document["id"]
    keys = {path[-1]: value_at(document, path) for path in container.keys.paths}
    metadata["partitionKey"] = {
        name: value for name, value in keys.items() if isinstance(value, str | int | float | None)
    }
    return f'{{"current":{{}},"previous":{body},"metadata":{dumps(metadata)}}}'


def _position(etag: str) -> int:
    digits = etag.strip('"').removesuffix("-all")
    if not digits.isascii() or not digits.isdigit() or not etag.strip('"').endswith("-all"):
        raise BadRequest(f"The continuation of the change feed '{etag[:100]}' is invalid.")
    return int(digits)
