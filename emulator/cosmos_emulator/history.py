"""The history of items: superseded versions, so that a read can see a container at an LSN.

Triggers of this connection store them in its temporary tables, which are in memory. The file is
never changed, and without replicas there is no history.

    commits      by container: each LSN, the version it reached, and when
    history_<n>  rows of items_<n> that were replaced or deleted, and the LSN that did it

The triggers do not see what another process writes into the file. After such a write the history
starts again: everything written before counts as seen everywhere.
"""

from __future__ import annotations

import math
import sqlite3
import weakref
from collections.abc import Callable, Sequence
from functools import partial

from cosmos_emulator.ranges import Range

_COLUMNS = "seq, pk, id, epk, lsn, version, ts, ttl, body"
_OLD = ", ".join(f"OLD.{name}" for name in _COLUMNS.split(", "))

_COMMITS = """
CREATE TEMP TABLE commits (
    num INTEGER NOT NULL, lsn INTEGER NOT NULL, version INTEGER NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (num, lsn)) WITHOUT ROWID;
CREATE INDEX temp.commits_by_time ON commits (num, at, lsn);
CREATE TEMP TRIGGER keep_commits AFTER UPDATE OF version ON main.containers BEGIN
    INSERT OR REPLACE INTO commits VALUES (NEW.num, NEW.lsn, NEW.version, replica_time());
END;
"""

_HISTORY = f"""
DROP TABLE IF EXISTS temp.history_{{n}};
CREATE TEMP TABLE history_{{n}} (
    seq INTEGER NOT NULL, pk TEXT NOT NULL, id TEXT NOT NULL, epk TEXT NOT NULL,
    lsn INTEGER NOT NULL, version INTEGER NOT NULL,
    ts INTEGER NOT NULL, ttl INTEGER, body TEXT NOT NULL, until INTEGER NOT NULL);
CREATE INDEX temp.history_{{n}}_by_id ON history_{{n}} (pk, id);
CREATE INDEX temp.history_{{n}}_by_until ON history_{{n}} (until);
DROP TRIGGER IF EXISTS temp.keep_replaced_{{n}};
CREATE TEMP TRIGGER keep_replaced_{{n}} AFTER UPDATE ON main.items_{{n}} BEGIN
    INSERT INTO history_{{n}} VALUES ({_OLD}, NEW.lsn);
END;
DROP TRIGGER IF EXISTS temp.keep_deleted_{{n}};
CREATE TEMP TRIGGER keep_deleted_{{n}} AFTER DELETE ON main.items_{{n}} BEGIN
    INSERT INTO history_{{n}} VALUES ({_OLD}, (SELECT lsn FROM containers WHERE num = {{n}}));
END;
"""


class History:
    """The history of all containers, as far back as a replica may lag."""

    def __init__(self, connection: sqlite3.Connection, time: Callable[[], float]) -> None:
        self._time = time
        self._watched: set[int] = set()
        self._outdated = False
        self.begin(connection)

    def begin(self, connection: sqlite3.Connection) -> None:
        """Starts on a new connection: everything written before counts as seen everywhere."""
        self._connection = connection
        self._watched.clear()
        # SQLite keeps the function where garbage collection does not see it. If the function
        # referred to an owner of the connection, none of them could ever be collected.
        connection.create_function("replica_time", 0, partial(_time_of, weakref.ref(self)))
        _run(connection, _COMMITS)
        self.refresh()

    def outdate(self) -> None:
        """Another process has written: start again at the next use."""
        self._outdated = True

    def refresh(self) -> None:
        """Starts the history of new containers. Call it outside a transaction."""
        if self._outdated:
            self._outdated = False
            self._watched.clear()
        rows = self._connection.execute("SELECT num, lsn, version FROM containers").fetchall()
        if len(rows) == len(self._watched) and all(row[0] in self._watched for row in rows):
            return
        for number in self._watched - {row[0] for row in rows}:
            self._connection.execute(f"DROP TABLE IF EXISTS temp.history_{number}")
            self._connection.execute("DELETE FROM commits WHERE num = ?", [number])
        for number, lsn, version in rows:
            if number not in self._watched:
                _run(self._connection, _HISTORY.format(n=number))
                self._connection.execute("DELETE FROM commits WHERE num = ?", [number])
                self._connection.execute(
                    "INSERT INTO commits VALUES (?, ?, ?, ?)", [number, lsn, version, -math.inf]
                )
        self._watched = {row[0] for row in rows}

    def lsn_at(self, number: int, moment: float) -> int:
        """The LSN that a container had reached at a moment."""
        row = self._connection.execute(
            "SELECT lsn FROM commits WHERE num = ? AND at <= ? ORDER BY at DESC, lsn DESC LIMIT 1",
            [number, moment],
        ).fetchone()
        # Before the first known moment: the state when the history began.
        return int(row[0]) if row is not None else self._first(number)

    def _first(self, number: int) -> int:
        (lsn,) = self._connection.execute(
            "SELECT min(lsn) FROM commits WHERE num = ?", [number]
        ).fetchone()
        return int(lsn)

    def version_at(self, number: int, lsn: int) -> int:
        """The number of the last single write up to an LSN."""
        (version,) = self._connection.execute(
            "SELECT coalesce(max(version), 0) FROM commits WHERE num = ? AND lsn <= ?",
            [number, lsn],
        ).fetchone()
        return int(version)

    def forget(self, number: int, lsn: int) -> None:
        """Drops versions that no read at `lsn` or later can see."""
        self._connection.execute(f"DELETE FROM history_{number} WHERE until <= ?", [lsn])
        self._connection.execute("DELETE FROM commits WHERE num = ? AND lsn < ?", [number, lsn])


def _time_of(history: weakref.ref[History]) -> float:
    found = history()
    assert found is not None, "the connection is in use, and so is its history"
    return found._time()


def as_of(number: int, lsns: Sequence[tuple[Range, int]]) -> str:
    """The FROM clause for the items of a container, each range at its own LSN."""
    now = " OR ".join(_within(found, lsns, f"lsn <= {lsn}") for found, lsn in lsns)
    then = " OR ".join(
        _within(found, lsns, f"lsn <= {lsn} AND until > {lsn}") for found, lsn in lsns
    )
    return (
        f"(SELECT seq AS rowid, {_COLUMNS} FROM items_{number} WHERE {now} UNION ALL "
        f"SELECT seq AS rowid, {_COLUMNS} FROM history_{number} WHERE {then})"
    )


def _within(found: Range, lsns: Sequence[tuple[Range, int]], condition: str) -> str:
    if len(lsns) == 1:
        return condition
    return f"(epk >= '{found.low}' AND epk < '{found.high}' AND {condition})"


def _run(connection: sqlite3.Connection, script: str) -> None:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""
