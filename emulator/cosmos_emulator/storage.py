"""The SQLite file: tables, transactions, locking.

Layout:
    resources     databases, containers, offers, users, scripts …: one row each, JSON in ``body``
    containers    one row per container: its number, its counters of transactions (LSN) and of
                  single writes (version), and how many ranges it has
    items_<n>     the documents of container n: one row each, JSON text in ``body``
    uniques_<n>   the values that unique keys have taken in container n

Two processes may open one file: SQLite's locks decide, counters and etags live in the file.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .errors import CosmosError, StorageError
from .history import History

APPLICATION_ID = 0x436F736D  # "Cosm"
SCHEMA_VERSION = 2
BUSY_TIMEOUT_MS = 30_000
MAX_SORT_INDEXES = 32  # per container: each one slows its writes a little

_SCHEMA = """
CREATE TABLE resources (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL, parent TEXT NOT NULL, id TEXT NOT NULL,
    rid TEXT NOT NULL UNIQUE, ts INTEGER NOT NULL, body TEXT NOT NULL,
    UNIQUE (kind, parent, id));
CREATE TABLE containers (
    num INTEGER PRIMARY KEY AUTOINCREMENT, rid TEXT NOT NULL UNIQUE,
    lsn INTEGER NOT NULL, version INTEGER NOT NULL, ranges INTEGER NOT NULL);
"""

_ITEMS = """
CREATE TABLE items_{n} (
    seq INTEGER PRIMARY KEY, pk TEXT NOT NULL, id TEXT NOT NULL, epk TEXT NOT NULL,
    lsn INTEGER NOT NULL, version INTEGER NOT NULL,
    ts INTEGER NOT NULL, ttl INTEGER, body TEXT NOT NULL);
CREATE UNIQUE INDEX items_{n}_by_id ON items_{n} (pk, id);
CREATE INDEX items_{n}_by_pk ON items_{n} (pk);
CREATE TABLE uniques_{n} (
    pk TEXT NOT NULL, rule INTEGER NOT NULL, value TEXT NOT NULL, seq INTEGER NOT NULL,
    PRIMARY KEY (pk, rule, value)) WITHOUT ROWID;
CREATE INDEX uniques_{n}_by_seq ON uniques_{n} (seq);
"""


class Storage:
    """One connection to one file, shared by all threads under a lock."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lock = threading.RLock()
        self._in_memory = path == ":memory:"
        self._seen_version = -1
        self._on_foreign_change: list[Callable[[], None]] = []
        self._made_indexes: set[str] = set()
        self._connection = _open(path)
        self.history: History | None = None

    def close(self) -> None:
        with self.lock:
            self._connection.close()

    def keep_history(self, time: Callable[[], float]) -> History:
        """Keep what items were from now on, for replicas that lag."""
        with self.lock:
            self.history = History(self._connection, time)
            self.history.refresh()
            self.on_foreign_change(self.history.outdate)
            return self.history

    def on_foreign_change(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` when another process has written the file: caches are stale then."""
        self._on_foreign_change.append(callback)

    def _notice_foreign_changes(self) -> None:
        if self._in_memory:
            return
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        if version != self._seen_version:
            self._seen_version = version
            for callback in self._on_foreign_change:
                callback()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        with self.lock, _translated():
            self._notice_foreign_changes()
            yield self._connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it or nothing."""
        connection = self._connection
        with self.lock, _translated():
            if self.history is not None and not connection.in_transaction:
                self.history.refresh()
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._notice_foreign_changes()
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def add_container(self, rid: str, ranges: int) -> int:
        cursor = self._connection.execute(
            "INSERT INTO containers (rid, lsn, version, ranges) VALUES (?, 0, 0, ?)", [rid, ranges]
        )
        number = cursor.lastrowid or 0
        for statement in _ITEMS.format(n=number).split(";"):
            self._connection.execute(statement)
        return number

    def drop_container(self, number: int) -> None:
        self._connection.execute("DELETE FROM containers WHERE num = ?", [number])
        self._connection.execute(f"DROP TABLE items_{number}")
        self._connection.execute(f"DROP TABLE uniques_{number}")

    def ensure_feed_index(self, number: int) -> None:
        """Make the index of the change feed; those who never read it need not pay for it."""
        name = f"items_{number}_by_version"
        if name not in self._made_indexes:
            with self.writing() as connection:
                connection.execute(f"CREATE INDEX IF NOT EXISTS {name} ON items_{number} (version)")
            self._made_indexes.add(name)

    def ensure_sort_index(self, number: int, terms: Sequence[str]) -> None:
        """Make the index by which SQLite reads a partition in the order of ``terms``."""
        name = f"sort_{number}_" + hashlib.sha256("\n".join(terms).encode()).hexdigest()[:16]
        if name in self._made_indexes:
            return
        with self.writing() as connection:
            (count,) = connection.execute(
                "SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name GLOB ?",
                [f"sort_{number}_*"],
            ).fetchone()
            if count < MAX_SORT_INDEXES:
                connection.execute(
                    f"CREATE INDEX IF NOT EXISTS {name} ON items_{number} (pk, {', '.join(terms)})"
                )
        self._made_indexes.add(name)


@contextmanager
def _translated() -> Iterator[None]:
    """SQLite's troubles, told as the service tells its own."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except sqlite3.DatabaseError as error:
        if "full" in str(error):
            raise CosmosError(
                "The disk of the emulator is full; the request was not applied.",
                status=507,
            ) from error
        if "locked" in str(error):
            raise CosmosError(
                "Another process holds the emulator's file; the request was not applied.",
                status=503,
            ) from error
        raise CosmosError(f"The emulator's file cannot be used: {error}", status=500) from error


def _open(path: str) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(
            path,
            isolation_level=None,
            check_same_thread=False,
            timeout=BUSY_TIMEOUT_MS / 1000,
            cached_statements=256,
        )
    except sqlite3.OperationalError as error:
        raise StorageError(f"{path}: cannot be opened ({error})") from error
    try:
        _prepare(connection, path)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise StorageError(f"{path}: not a usable SQLite database ({error})") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    def pragma(name: str) -> Any:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]

    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and pragma("application_id") != APPLICATION_ID:
        raise StorageError(f"{path}: a SQLite database, but not one of this emulator's")
    if tables and pragma("user_version") != SCHEMA_VERSION:
        raise StorageError(f"{path}: written by another version of this emulator")
    # With WAL, NORMAL survives the death of the process; only a power cut may lose the last writes.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA temp_store = MEMORY")
    # A longer log: moving it into the file is what waits for the disk.
    connection.execute("PRAGMA wal_autocheckpoint = 4000")
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have made the tables between the look above and the lock.
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
