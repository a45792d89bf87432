"""The SQLite file: opens it, and checks that it is an emulator's."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from cosmos_emulator.errors import ForeignFile, StorageError

APPLICATION_ID = 0x436F736D  # "Cosm"
SCHEMA_VERSION = 2
BUSY_TIMEOUT_MS = 30_000
_COPIED_AT_ONCE = 256  # pages

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


class Connection(sqlite3.Connection):
    """Closes itself when it is garbage-collected. Emulators are often not closed, and sqlite3 warns
    about that since Python 3.13.

    It uses neither weakref.finalize nor atexit: they would run before services that were made
    earlier have written their data.
    """

    def __del__(self) -> None:
        try:  # noqa: SIM105  at the exit of Python contextlib may be gone
            self.close()
        except sqlite3.ProgrammingError:  # it was never opened
            pass


def open_file(path: str) -> Connection:
    """A connection that all threads may use, to a file that is ready for use."""
    try:
        connection = _connect(path)
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


def open_for_reading(path: str) -> Connection:
    """Another connection to a file that is in use: it sees one moment, and holds nobody up."""
    connection = _connect(path)
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA query_only = ON")
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM containers").fetchone()
    return connection


def copy_in_memory(connection: sqlite3.Connection, pause: Callable[[], None]) -> Connection:
    """A copy of a whole database; `pause` is called after every megabyte."""
    copy = _connect(":memory:")
    try:
        connection.backup(copy, pages=_COPIED_AT_ONCE, progress=lambda *_: pause(), sleep=0)
    except BaseException:
        copy.close()
        raise
    return copy


def _connect(path: str) -> Connection:
    return sqlite3.connect(
        path,
        factory=Connection,
        isolation_level=None,
        check_same_thread=False,
        timeout=BUSY_TIMEOUT_MS / 1000,
        cached_statements=256,
    )


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    if _is_filled(connection):
        if _pragma(connection, "application_id") != APPLICATION_ID:
            raise ForeignFile(f"{path}: a SQLite database of another program, not of this emulator")
        _check_version(connection, path)
    # With WAL, NORMAL survives a crash of the process; only a power cut may lose the last writes.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA temp_store = MEMORY")
    # Deleted and replaced data is overwritten in the file.
    connection.execute("PRAGMA secure_delete = ON")
    # A longer log, because only moving it into the file waits for the disk.
    connection.execute("PRAGMA wal_autocheckpoint = 4000")
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have made the tables since the check above.
        if not _is_filled(connection):
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
        _check_version(connection, path)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _is_filled(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _check_version(connection: sqlite3.Connection, path: str) -> None:
    version = _pragma(connection, "user_version")
    if version > SCHEMA_VERSION:
        raise StorageError(
            f"{path}: written by a newer version of this emulator (its format is {version}, this "
            f"version knows format {SCHEMA_VERSION}); nothing was changed"
        )
    if version < SCHEMA_VERSION:
        raise StorageError(
            f"{path}: written in a format that this emulator does not know; nothing was changed"
        )
