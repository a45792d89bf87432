"""The content of the SQLite file: tables, transactions, locking.

Layout:
    resources     databases, containers, offers, users, scripts …: one row each, JSON in `body`
    containers    one row per container: its number, its counters of transactions (LSN) and of
                  single writes (version), and how many ranges it has
    items_<n>     the documents of container n: one row each, JSON text in `body`
    uniques_<n>   the values that unique keys have taken in container n
    changes_<n>   all versions and deletes, if the container's change feed policy keeps them

Two processes may open one file: SQLite's locks decide, counters and etags live in the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from cosmos_emulator.errors import CosmosError
from cosmos_emulator.files import (
    BUSY_TIMEOUT_MS,
    Connection,
    copy_in_memory,
    open_file,
    open_for_reading,
)
from cosmos_emulator.forks import hold_during_forks, opening
from cosmos_emulator.history import History

MANY = 1000  # deleted items after which the log is emptied
SMALL = 64 * 1024 * 1024  # bytes: a file up to this size is rewritten on close, if needed
MAX_SORT_INDEXES = 32  # per container: each one slows its writes a little
MAX_ARRAY_INDEXES = 4  # the same for arrays, of which every item has a row
_PAGE = 4096  # bytes, SQLite's default
_ROOM = 2 * 1024 * 1024  # bytes that are left for deletes
_PLENTY = 256 * 1024 * 1024  # with so many bytes left, not every write asks for them:
_UNCHECKED = 64  # as many as this cannot use them up

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

_CHANGES = """
CREATE TABLE IF NOT EXISTS changes_{n} (
    position INTEGER PRIMARY KEY AUTOINCREMENT, version INTEGER NOT NULL, lsn INTEGER NOT NULL,
    at INTEGER NOT NULL, pk TEXT NOT NULL, epk TEXT NOT NULL, kind TEXT NOT NULL,
    previous_lsn INTEGER NOT NULL, expired INTEGER NOT NULL, body TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS changes_{n}_by_time ON changes_{n} (at)
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

    def __init__(self, path: str, content: bytes | None = None) -> None:
        self.path = path
        self.lock = threading.RLock()
        self._in_memory = path in (":memory:", "")
        # Absolute: the process may have changed its directory when the file is opened again.
        self._file = path if self._in_memory else os.path.abspath(path)
        self._seen_version = -1
        self._on_foreign_change: list[Callable[[], None]] = []
        # A container made anew goes on from here: clients still hold tokens of the old one.
        self._last_lsn = 0
        self._made_indexes: set[str] = set()
        self._closed = False
        self._erased = 0
        self._free = 0  # bytes of the disk, when they were last counted
        self._unchecked = 0  # writes since then
        self.history: History | None = None
        with opening:
            self._opened: Connection | None = open_file(self._file)
            if content is not None:
                self._opened.deserialize(content)
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

    def dump(self) -> bytes:
        with self.lock:
            return self._connection.serialize()

    def before_fork(self) -> None:
        """Keeps all threads out, and closes the file: SQLite must not carry it into a child."""
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
        """Counts deleted items. Call it after the transaction: many deletions empty the log."""
        before, self._erased = self._erased, self._erased + count
        if before // MANY != self._erased // MANY:
            # They are deleted in any case; a full disk may keep them in the log for longer.
            with contextlib.suppress(CosmosError):
                self.empty_log()

    def empty_log(self) -> bool:
        """Moves the log into the file; returns False if another process prevented it."""
        if self._in_memory:
            return True
        with self.lock, _translated:
            self._connection.execute("PRAGMA busy_timeout = 0")
            try:
                busy = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            finally:
                self._connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        return not busy

    def rewrite(self) -> bool:
        """Rewrites the file, with only the stored data."""
        if self._in_memory:
            return True
        with self.lock, _translated:
            self._connection.execute("VACUUM")
            return self.empty_log()

    def keep_history(self, time: Callable[[], float]) -> History:
        """Keeps superseded versions of items from now on, for replicas that lag."""
        with self.lock:
            self.history = History(self._connection, time)
            self.on_foreign_change(self.history.outdate)
            return self.history

    def on_foreign_change(self, callback: Callable[[], None]) -> None:
        """Calls `callback` when another process has written the file, which makes caches stale."""
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
        with self.lock, _translated:
            self._notice_foreign_changes()
            yield self._connection

    @contextmanager
    def separate_connection(self) -> Iterator[sqlite3.Connection]:
        """A connection on which a long query holds nobody up. It sees the state of now. In memory
        that is a copy. The history of replicas is not in it: with replicas all share one."""
        if self.history is not None:
            with self.reading() as shared:
                yield shared
            return
        with _translated, contextlib.closing(self._open_separate()) as connection:
            yield connection

    def _open_separate(self) -> Connection:
        if not self._in_memory:
            with opening:
                return open_for_reading(self._file)
        with self.lock:
            return copy_in_memory(self._connection, self._let_others_in)

    def _let_others_in(self) -> None:
        self.lock.release()
        time.sleep(0)
        self.lock.acquire()

    @contextmanager
    def writing(self, *, frees: bool = False) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it or nothing. One that only deletes `frees` space."""
        with self.lock, _translated:
            if not self._in_memory:
                self._keep_room(frees=frees)
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

    def _keep_room(self, *, frees: bool) -> None:
        """Refuses to fill the disk: a delete needs room in the log, and moving the log into the
        file needs as much as the log has."""
        self._unchecked += 1
        if self._unchecked < _UNCHECKED and self._free > _PLENTY:
            return
        self._unchecked = 0
        self._free, log = free_bytes(self._file), _size(f"{self._file}-wal")
        if self._free > _PLENTY + log or (self._free > _ROOM + log and log < _ROOM // 2):
            return
        if self.empty_log():
            self._free, log = free_bytes(self._file), 0
        (unused,) = self._connection.execute("PRAGMA freelist_count").fetchone()
        needed = _ROOM if unused * _PAGE < _ROOM else _ROOM // 2
        if not frees and self._free < needed + log:
            raise sqlite3.OperationalError("the disk is nearly full")

    def add_container(self, rid: str, ranges: int) -> int:
        cursor = self._connection.execute(
            "INSERT INTO containers (rid, lsn, version, ranges) VALUES (?, ?, 0, ?)",
            [rid, self._last_lsn, ranges],
        )
        number = cursor.lastrowid or 0
        for statement in _ITEMS.format(n=number).split(";"):
            self._connection.execute(statement)
        return number

    def drop_container(self, number: int) -> None:
        (lsn,) = self._connection.execute(
            "SELECT lsn FROM containers WHERE num = ?", [number]
        ).fetchone()
        self._last_lsn = max(self._last_lsn, lsn)
        self._connection.execute("DELETE FROM containers WHERE num = ?", [number])
        self._connection.execute(f"DROP TABLE items_{number}")
        self._connection.execute(f"DROP TABLE uniques_{number}")
        self._connection.execute(f"DROP TABLE IF EXISTS changes_{number}")
        for name in self._named("table", f"array_{number}_*"):
            self._connection.execute(f"DROP TABLE {name}")
            self._made_indexes.discard(name)

    def keep_changes(self, number: int, *, keep: bool) -> None:
        """Keeps all versions and deletes of a container, or drops them."""
        if not keep:
            self._connection.execute(f"DROP TABLE IF EXISTS changes_{number}")
            return
        for statement in _CHANGES.format(n=number).split(";"):
            self._connection.execute(statement)

    def ensure_feed_index(self, number: int) -> None:
        """Makes the index of the change feed at its first use, since many never read the feed."""
        name = f"items_{number}_by_version"
        if name not in self._made_indexes:
            with self.writing() as connection:
                connection.execute(f"CREATE INDEX IF NOT EXISTS {name} ON items_{number} (version)")
            self._made_indexes.add(name)

    def ensure_sort_index(self, number: int, terms: Sequence[str]) -> None:
        """Makes the index by which SQLite reads items in the order of `terms`."""
        name = f"sort_{number}_" + hashlib.sha256("\n".join(terms).encode()).hexdigest()[:16]
        if name in self._made_indexes:
            return
        with self.writing() as connection:
            if len(self._named("index", f"sort_{number}_*")) < MAX_SORT_INDEXES:
                connection.execute(
                    f"CREATE INDEX IF NOT EXISTS {name} ON items_{number} ({', '.join(terms)})"
                )
        self._made_indexes.add(name)

    def ensure_array_index(self, number: int, path: str) -> str | None:
        """The table of (value, seq) for the texts in the arrays at `path`, a JSON path in quotes.
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


def free_bytes(path: str) -> int:
    """How much the disk with a file has left."""
    return shutil.disk_usage(os.path.dirname(path)).free


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0


class _Translated:
    """Turns SQLite's errors into errors of the service. Every request enters it: hence a class."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if not isinstance(error, sqlite3.DatabaseError) or isinstance(
            error, sqlite3.IntegrityError
        ):
            return
        if "full" in str(error):
            raise CosmosError(
                "The disk of the emulator is full; the request was not applied. Deletes are.",
                status=507,
            ) from error
        if "locked" in str(error):
            raise CosmosError(
                "Another process holds the emulator's file; the request was not applied.",
                status=503,
            ) from error
        raise CosmosError(f"The emulator's file cannot be used: {error}", status=500) from error


_translated = _Translated()
