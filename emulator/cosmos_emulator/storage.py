"""The content of the SQLite file: tables, transactions, locking.

Layout:
    resources     databases, containers, offers, users, scripts …: one row each, JSON in ``body``
    containers    one row per container: its number, its counters of transactions (LSN) and of
                  single writes (version), and how many ranges it has
    items_<n>     the documents of container n: one row each, JSON text in ``body``
    uniques_<n>   the values that unique keys have taken in container n

Two processes may open one file: SQLite's locks decide, counters and etags live in the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from .errors import CosmosError
from .files import BUSY_TIMEOUT_MS, Connection, open_file
from .forks import hold_during_forks, opening
from .history import History

MANY = 1000  # deleted items after which the log is emptied
SMALL = 64 * 1024 * 1024  # bytes: a file up to this size is rewritten on close, if needed
MAX_SORT_INDEXES = 32  # per container: each one slows its writes a little
MAX_ARRAY_INDEXES = 4  # the same for arrays, of which every item has a row

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

# Made with a container whose policy names the array, or for the first query that asks what it
# contains: SQLite keeps it up to date.
_TEXTS = "SELECT value, new.seq FROM json_each(new.body, {path}) WHERE type = 'text'"
_ARRAYS = (
    "CREATE TABLE {name} (value TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (value, seq))"
    " WITHOUT ROWID",
    "CREATE INDEX {name}_by_seq ON {name} (seq)",
    "INSERT OR IGNORE INTO {name} SELECT item.value, items_{n}.seq"
    " FROM items_{n}, json_each(items_{n}.body, {path}) AS item WHERE item.type = 'text'",
    "CREATE TRIGGER {name}_added AFTER INSERT ON items_{n} BEGIN"
    f" INSERT OR IGNORE INTO {{name}} {_TEXTS}; END",
    "CREATE TRIGGER {name}_changed AFTER UPDATE OF body ON items_{n} BEGIN"
    " DELETE FROM {name} WHERE seq = old.seq;"
    f" INSERT OR IGNORE INTO {{name}} {_TEXTS}; END",
    "CREATE TRIGGER {name}_removed AFTER DELETE ON items_{n} BEGIN"
    " DELETE FROM {name} WHERE seq = old.seq; END",
)


class Storage:
    """One connection to one file, shared by all threads under a lock."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lock = threading.RLock()
        self._in_memory = path in (":memory:", "")
        # Absolute: the process may have changed its directory when the file is opened again.
        self._file = path if self._in_memory else os.path.abspath(path)
        self._seen_version = -1
        self._on_foreign_change: list[Callable[[], None]] = []
        self._made_indexes: set[str] = set()
        self._closed = False
        self._erased = 0
        self.history: History | None = None
        with opening:
            self._opened: Connection | None = open_file(self._file)
            hold_during_forks(self)

    @property
    def _connection(self) -> Connection:
        """For the holder of the lock."""
        if self._opened is None:
            self._opened = open_file(self._file)
            self._seen_version = -1
            if self.history is not None:
                self.history.begin(self._opened)
        return self._opened

    def before_fork(self) -> None:
        """Keep all threads out, and close the file: SQLite must not carry it into a child."""
        self.lock.acquire()
        if self._opened is not None and not self._in_memory and not self._closed:
            self._opened.close()
            self._opened = None

    def after_fork(self) -> None:
        self.lock.release()

    def close(self) -> None:
        with self.lock:
            if self._erased and not self._in_memory and not self._closed:
                self._compact()
            self._closed = True
            self._connection.close()

    def _compact(self) -> None:
        """Before the file is closed: rewrite it if something was erased, unless it is large."""
        with contextlib.suppress(sqlite3.DatabaseError, OSError):
            # Do not wait for another process that is using the file.
            self._connection.execute("PRAGMA busy_timeout = 0")
            if os.path.getsize(self.path) <= SMALL:
                self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def erased(self, count: int) -> None:
        """Count deleted items. Call it after the transaction: many deletions empty the log."""
        before, self._erased = self._erased, self._erased + count
        if before // MANY != self._erased // MANY:
            # They are deleted in any case; a full disk may keep them in the log for longer.
            with contextlib.suppress(CosmosError):
                self.empty_log()

    def empty_log(self) -> bool:
        """Move the log into the file; returns False if another process prevented it."""
        if self._in_memory:
            return True
        with self.lock, _translated():
            self._connection.execute("PRAGMA busy_timeout = 0")
            try:
                busy = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            finally:
                self._connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        return not busy

    def rewrite(self) -> bool:
        """Rewrite the file, with only the stored data."""
        if self._in_memory:
            return True
        with self.lock, _translated():
            self._connection.execute("VACUUM")
            return self.empty_log()

    def keep_history(self, time: Callable[[], float]) -> History:
        """Keep superseded versions of items from now on, for replicas that lag."""
        with self.lock:
            self.history = History(self._connection, time)
            self.on_foreign_change(self.history.outdate)
            return self.history

    def on_foreign_change(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` when another process has written the file, which makes caches stale."""
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
        with self.lock, _translated():
            connection = self._connection
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
        for name in self._named("table", f"array_{number}_*"):
            self._connection.execute(f"DROP TABLE {name}")
            self._made_indexes.discard(name)

    def ensure_feed_index(self, number: int) -> None:
        """Make the index of the change feed at its first use, since many never read the feed."""
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
            if len(self._named("index", f"sort_{number}_*")) < MAX_SORT_INDEXES:
                connection.execute(
                    f"CREATE INDEX IF NOT EXISTS {name} ON items_{number} (pk, {', '.join(terms)})"
                )
        self._made_indexes.add(name)

    def ensure_array_index(self, number: int, path: str) -> str | None:
        """The table of (value, seq) for the texts in the arrays at ``path``, a JSON path in quotes.
        None if the container has too many of them."""
        name = f"array_{number}_" + hashlib.sha256(path.encode()).hexdigest()[:16]
        if name in self._made_indexes:
            return name
        with self.writing() as connection:
            made = self._named("table", f"array_{number}_*")
            if name not in made:
                if len(made) >= MAX_ARRAY_INDEXES:
                    return None
                for statement in _ARRAYS:
                    connection.execute(statement.format(name=name, n=number, path=path))
        self._made_indexes.add(name)
        return name

    def _named(self, kind: str, pattern: str) -> list[str]:
        rows = self._connection.execute(
            "SELECT name FROM sqlite_master WHERE type = ? AND name GLOB ?", [kind, pattern]
        )
        return [name for (name,) in rows]


@contextmanager
def _translated() -> Iterator[None]:
    """Turns SQLite's errors into errors of the service."""
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
