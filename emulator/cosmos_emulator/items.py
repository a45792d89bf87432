"""Items and their rules: identity, etags, TTL, unique keys, and what each operation costs.

Every function runs inside a transaction that its caller opened, so that a batch is one of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cosmos_emulator import charges, rids
from cosmos_emulator.change_log import ChangeLog
from cosmos_emulator.containers import Container, check_ttl
from cosmos_emulator.documents import (
    MAX_BYTES,
    SYSTEM_PROPERTIES,
    UNDEFINED,
    check_depth,
    check_id,
    dumps,
    loads,
    value_at,
)
from cosmos_emulator.errors import (
    BadRequest,
    Conflict,
    NotFound,
    NotModified,
    PreconditionFailed,
    TooLarge,
)
from cosmos_emulator.messages import Document

_TAKEN = "Entity with the specified id already exists in the system."
_MISSING = (
    "Entity with the specified id does not exist in the system. "
    "More info: https://aka.ms/cosmosdb-tsg-not-found"
)
SWEEP = 256  # least number of writes between two sweeps for expired items


@dataclass(slots=True)
class Outcome:
    """The result of an operation on one item."""

    status: int
    etag: str
    charge: float
    lsn: int
    text: str = ""


@dataclass(slots=True)
class Row:
    seq: int
    version: int
    ts: int
    ttl: int | None
    body: str


@dataclass(slots=True)
class Conditions:
    """If-Match and If-None-Match."""

    if_match: str | None = None
    if_none_match: str | None = None

    def check_write(self, container: Container, row: Row | None) -> None:
        if self.if_match is not None and self.if_match != "*":
            if row is None:
                return
            if self.if_match != rids.etag(container.number, row.version):
                raise PreconditionFailed(charge=charges.REFUSED_WRITE)
        if self.if_none_match == "*" and row is not None:
            raise PreconditionFailed(charge=charges.REFUSED_WRITE)


class Items:
    """The items of one container, at one moment, in one transaction."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        container: Container,
        now: int,
        seen: str | None = None,
    ) -> None:
        """`seen` is what reads use instead of the table: a past state."""
        self._connection = connection
        self._container = container
        self._now = now
        self._written = False
        table = container.table
        self._seen = seen or table
        self._select = (
            f"SELECT seq, version, ts, ttl, body FROM {self._seen} WHERE pk = ? AND id = ?"
        )
        self._insert = (
            f"INSERT INTO {table} (seq, pk, id, epk, lsn, version, ts, ttl, body) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
        self._update = (
            f"UPDATE {table} SET id = ?, lsn = ?, version = ?, ts = ?, ttl = ?, body = ? "
            "WHERE seq = ?"
        )
        self._remove = f"DELETE FROM {table} WHERE seq = ?"
        self._log = (
            ChangeLog(connection, container.number, now, container.retention)
            if container.retention is not None
            else None
        )

    def read(self, key: str, item_id: str, if_none_match: str | None = None) -> Outcome:
        row = self._alive(key, item_id)
        if row is None:
            raise NotFound(_MISSING, charge=charges.MISS, plain=True)
        etag = rids.etag(self._container.number, row.version)
        if if_none_match is not None and if_none_match in (etag, "*"):
            raise NotModified(etag, charges.MISS)
        return Outcome(200, etag, charges.read(len(row.body)), 0, row.body)

    def resolve(self, container: str, name: str) -> str:
        """The id of an item; in a link by rids, the item's name is also a rid."""
        if container != self._container.rid:
            return name
        row = self._connection.execute(
            f"SELECT id FROM {self._seen} WHERE seq = ?", (rids.item_number(name),)
        ).fetchone()
        return str(row[0]) if row is not None else name

    def create(self, key: str, document: Document) -> Outcome:
        item_id = self._checked(key, document)
        try:
            return self._write_new(key, item_id, document)
        except sqlite3.IntegrityError:
            row = self._row(key, item_id)
        if row is None or self._is_alive(row):
            charge = self._charge(len(dumps(document)), document)
            raise Conflict(_TAKEN, charge=charges.REFUSED * charge, plain=True)
        self._expire(row)
        return self._write_new(key, item_id, document)

    def upsert(self, key: str, document: Document, conditions: Conditions) -> Outcome:
        item_id = self._checked(key, document)
        row = self._row(key, item_id)
        if row is not None and not self._is_alive(row):
            self._expire(row)
            row = None
        conditions.check_write(self._container, row)
        if row is None:
            return self._write_new(key, item_id, document)
        return self._write_over(key, item_id, document, row)

    def replace(
        self, key: str, item_id: str, document: Document, conditions: Conditions
    ) -> Outcome:
        new_id = self._checked(key, document)
        row = self._alive(key, item_id)
        if row is None:
            raise NotFound(_MISSING, charge=charges.REFUSED_WRITE, plain=True)
        conditions.check_write(self._container, row)
        return self._write_over(key, new_id, document, row)

    def patch(
        self,
        key: str,
        item_id: str,
        change: Callable[[Document], Document],
        conditions: Conditions,
        holds: Callable[[str], bool] | None = None,
    ) -> Outcome:
        """Changes an item in place: `change` returns the new document."""
        row = self._alive(key, item_id)
        if row is None:
            raise NotFound(_MISSING, charge=charges.REFUSED_WRITE, plain=True)
        conditions.check_write(self._container, row)
        if holds is not None and not holds(row.body):
            raise PreconditionFailed(substatus=1110, charge=charges.REFUSED_WRITE)
        document = change(_user_properties(loads(row.body)))
        new_id = self._checked(key, document)
        if new_id != item_id:
            raise BadRequest("The id of an item cannot be patched.")
        return self._write_over(key, new_id, document, row)

    def delete(self, key: str, item_id: str, conditions: Conditions) -> Outcome:
        row = self._alive(key, item_id)
        if row is None:
            raise NotFound(_MISSING, charge=charges.REFUSED_WRITE, plain=True)
        conditions.check_write(self._container, row)
        lsn, version = self._next_version()
        if self._log is not None:
            self._log.removed("seq = ?", [row.seq], version, lsn, expired=False)
        self._erase(row)
        charge = self._charge(len(row.body), _user_properties(loads(row.body)))
        return Outcome(204, "", charge, lsn)

    def delete_partition(self, key: str) -> int:
        """Deletes everything under one partition key."""
        lsn, version = self._next_version()
        number = self._container.number
        if self._log is not None:
            self._log.removed("pk = ?", [key], version, lsn, expired=False)
        self._connection.execute(f"DELETE FROM uniques_{number} WHERE pk = ?", [key])
        self._connection.execute(f"DELETE FROM items_{number} WHERE pk = ?", [key])
        return lsn

    def _row(self, key: str, item_id: str) -> Row | None:
        row = self._connection.execute(self._select, (key, item_id)).fetchone()
        return Row(*row) if row is not None else None

    def _alive(self, key: str, item_id: str) -> Row | None:
        row = self._row(key, item_id)
        return row if row is not None and self._is_alive(row) else None

    def _is_alive(self, row: Row) -> bool:
        return self._container.is_alive(row.ts, row.ttl, self._now)

    def _next_version(self) -> tuple[int, int]:
        """The LSN of this transaction, one for all its writes, and a version for this write."""
        row: tuple[int, int] | None = self._connection.execute(
            "UPDATE containers SET lsn = lsn + ?, version = version + 1 WHERE num = ? "
            "RETURNING lsn, version",
            (0 if self._written else 1, self._container.number),
        ).fetchone()
        if row is None:
            raise NotFound
        self._written = True
        if not row[1] % SWEEP and self._container.default_ttl is not None:
            self._sweep(*row)
        return row

    def _sweep(self, lsn: int, version: int) -> None:
        """Removes expired items from time to time: the more items there may be, the less often.

        There are no more items than writes, so each write pays for checking at most sixteen items.
        """
        if not version % max(SWEEP, 1 << (version.bit_length() - 4)):
            self._remove_expired(lsn, version)

    def expire(self) -> None:
        """Removes all expired items now, so that the change feed tells of their end."""
        alive = self._container.alive_sql(self._now)
        expired = f"SELECT 1 FROM {self._container.table} WHERE {alive} IS NOT TRUE LIMIT 1"
        if alive is not None and self._connection.execute(expired).fetchone():
            self._remove_expired(*self._next_version())

    def _remove_expired(self, lsn: int, version: int) -> None:
        alive = self._container.alive_sql(self._now)
        number = self._container.number
        if self._log is not None:
            self._log.removed(f"{alive} IS NOT TRUE", [], version, lsn, expired=True)
        if self._container.unique_keys:
            self._connection.execute(
                f"DELETE FROM uniques_{number} WHERE seq IN "
                f"(SELECT seq FROM items_{number} WHERE {alive} IS NOT TRUE)"
            )
        self._connection.execute(f"DELETE FROM items_{number} WHERE {alive} IS NOT TRUE")

    def _checked(self, key: str, document: Document) -> str:
        item_id = check_id(document.get("id"))
        check_depth(document)
        if "ttl" in document:
            check_ttl(document["ttl"])
        if self._container.keys.of_document(document) != key:
            raise BadRequest(
                "PartitionKey extracted from document doesn't match the one specified in the "
                "header. Learn more: https://aka.ms/CosmosDB/sql/errors/wrong-pk-value",
                substatus=1001,
                charge=charges.REFUSED_WRITE,
            )
        return item_id

    def _write_new(self, key: str, item_id: str, document: Document) -> Outcome:
        lsn, version = self._next_version()
        text, size = self._stamped(document, version, version)
        container = self._container
        self._connection.execute(
            self._insert,
            (
                version,
                key,
                item_id,
                container.keys.epk(key),
                lsn,
                version,
                self._now,
                document.get("ttl"),
                text,
            ),
        )
        if self._log is not None:
            self._log.created(version, version)
        charge = self._charge(size, document)
        if container.unique_keys:
            self._take_unique_values(key, document, version, charge)
        return Outcome(201, rids.etag(container.number, version), charge, lsn, text)

    def _write_over(self, key: str, item_id: str, document: Document, row: Row) -> Outcome:
        lsn, version = self._next_version()
        text, size = self._stamped(document, row.seq, version)
        container = self._container
        previous_lsn = self._log.lsn_of(row.seq) if self._log is not None else 0
        try:
            self._connection.execute(
                self._update,
                (item_id, lsn, version, self._now, document.get("ttl"), text, row.seq),
            )
        except sqlite3.IntegrityError:
            raise Conflict(_TAKEN, charge=charges.REFUSED_WRITE, plain=True) from None
        if self._log is not None:
            self._log.replaced(row.seq, version, previous_lsn)
        changed = container.terms.changed(_user_properties(loads(row.body)), document)
        charge = charges.replace(len(row.body), size, changed)
        if container.unique_keys:
            charge *= charges.UNIQUE_KEYS
            self._free_unique_values(row.seq)
            self._take_unique_values(key, document, row.seq, charge)
        return Outcome(200, rids.etag(container.number, version), charge, lsn, text)

    def _charge(self, size: int, document: Document) -> float:
        """The charge for adding an item to the store and its index, or removing it."""
        charge = charges.write(size, self._container.terms.count(document))
        return charge * charges.UNIQUE_KEYS if self._container.unique_keys else charge

    def _stamped(self, document: Document, seq: int, version: int) -> tuple[str, int]:
        """The text to store: the client's properties, then the service's own."""
        for name in SYSTEM_PROPERTIES:
            document.pop(name, None)
        text = dumps(document)
        if len(text) > MAX_BYTES:
            raise TooLarge
        container = self._container
        rid = rids.item_rid(container.rid, seq)
        etag = rids.etag(container.number, version).replace('"', '\\"')
        return (
            f'{text[:-1]},"_rid":"{rid}","_self":"{container.self_prefix}{rid}/",'
            f'"_etag":"{etag}","_attachments":"attachments/","_ts":{self._now}}}'
        ), len(text)

    def _expire(self, row: Row) -> None:
        """Removes an item that has expired, but that no sweep has found yet."""
        if self._log is not None:
            lsn, version = self._next_version()
            self._log.removed("seq = ?", [row.seq], version, lsn, expired=True)
        self._erase(row)

    def _erase(self, row: Row) -> None:
        self._connection.execute(self._remove, (row.seq,))
        if self._container.unique_keys:
            self._free_unique_values(row.seq)

    def _free_unique_values(self, seq: int) -> None:
        self._connection.execute(
            f"DELETE FROM uniques_{self._container.number} WHERE seq = ?", [seq]
        )

    def _take_unique_values(self, key: str, document: Document, seq: int, charge: float) -> None:
        number = self._container.number
        for rule, paths in enumerate(self._container.unique_keys):
            value = dumps([_unique_value(document, path) for path in paths])
            holder = self._connection.execute(
                f"SELECT i.seq, i.version, i.ts, i.ttl, i.body FROM uniques_{number} u "
                f"JOIN items_{number} i ON i.seq = u.seq "
                "WHERE u.pk = ? AND u.rule = ? AND u.value = ?",
                [key, rule, value],
            ).fetchone()
            if holder is not None:
                if self._is_alive(Row(*holder)):
                    raise Conflict(_TAKEN, charge=charges.REFUSED * charge, plain=True)
                self._expire(Row(*holder))
            self._connection.execute(
                f"INSERT INTO uniques_{number} (pk, rule, value, seq) VALUES (?, ?, ?, ?)",
                [key, rule, value, seq],
            )


def _unique_value(document: Document, path: tuple[str, ...]) -> Any:
    value = value_at(document, path)
    return None if value is UNDEFINED else value


def _user_properties(document: Document) -> Document:
    for name in SYSTEM_PROPERTIES:
        document.pop(name, None)
    return document
