"""What queries read: the rows of one container or one feed, narrowed to a partition or a range."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Generator, Sequence
from typing import Any

from cosmos_emulator import query
from cosmos_emulator.containers import Container
from cosmos_emulator.errors import CosmosError
from cosmos_emulator.snapshots import Snapshot
from cosmos_emulator.storage import Storage


class TableSource:
    """Documents of a table under fixed conditions."""

    def __init__(
        self, connection: sqlite3.Connection, table: str, conditions: list[str], values: list[Any]
    ) -> None:
        self.connection = connection
        self._table = table
        self._conditions = conditions
        self._values = values

    def rows(
        self,
        where: str | None,
        params: Sequence[Any],
        order_by: Sequence[str],
        limit: int | None,
        offset: int,
    ) -> Generator[tuple[int, str], None, None]:
        conditions = [*self._conditions, *([where] if where else [])]
        sql = f"SELECT rowid, body FROM {self._table}"
        if conditions:
            sql += " WHERE " + " AND ".join(conditions)
        sql += " ORDER BY " + (", ".join(order_by) or "rowid")
        if limit is not None or offset:
            sql += f" LIMIT {-1 if limit is None else limit} OFFSET {offset}"
        cursor = self.connection.execute(sql, [*self._values, *params])
        try:
            yield from cursor
        finally:
            cursor.close()


class ItemSource(TableSource):
    """Items of a container; makes the index that a sort needs."""

    def __init__(
        self,
        storage: Storage,
        connection: sqlite3.Connection,
        container: Container,
        now: int,
        snapshot: Snapshot,
    ) -> None:
        conditions: list[str] = []
        values: list[Any] = []
        if snapshot.key is not None:
            conditions.append("pk = ?")
            values.append(snapshot.key)
        if snapshot.epk_range is not None and snapshot.epk_range != ("", "FF"):
            conditions.append("epk >= ? AND epk < ?")
            values.extend(snapshot.epk_range)
        alive = container.alive_sql(now)
        if alive is not None:
            conditions.append(alive)
        super().__init__(connection, snapshot.table, conditions, values)
        self._storage = storage
        self._number = container.number
        self._in_one_partition = snapshot.key is not None
        ranges = {(found.low, found.high) for found in container.ranges}
        self._is_physical = snapshot.epk_range is None or snapshot.epk_range in ranges
        self._is_current = self._table == f"items_{container.number}"

    def rows(
        self,
        where: str | None,
        params: Sequence[Any],
        order_by: Sequence[str],
        limit: int | None,
        offset: int,
    ) -> Generator[tuple[int, str], None, None]:
        terms = self._to_index(query.index_terms(order_by))
        if terms:
            # A query runs without its index if none can be written, for example on a full disk.
            with contextlib.suppress(CosmosError):
                self._storage.ensure_sort_index(self._number, terms)
        if where is not None and self._in_one_partition and self._is_current:
            where = query.array_lookup(where, self._array_index)
        return super().rows(where, params, order_by, limit, offset)

    def _to_index(self, terms: list[str]) -> list[str]:
        """The columns of an index in this order; none where it would not help."""
        if self._in_one_partition and terms:
            # By key and id there is an index already.
            return [] if terms == ["id"] else ["pk", *terms]
        return terms if self._is_physical and self._is_current else []

    def _array_index(self, path: str) -> str | None:
        """The table that maps texts in the array at this path to items."""
        with contextlib.suppress(CosmosError):
            return self._storage.ensure_array_index(self._number, path)
        return None
