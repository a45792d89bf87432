"""What a file contains: an embedded store, or data of ADK's own services."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from enum import StrEnum
from pathlib import Path
from typing import Any


class Holds(StrEnum):
    """What can be in a file."""

    STORE = "a store of the embedded emulator"
    SQLITE_SESSIONS = "sessions of ADK's SqliteSessionService"
    DATABASE_SESSIONS = "sessions of ADK's DatabaseSessionService"
    MEMORIES = "memories of ADK's SqliteMemoryService"


_COLUMNS = (
    "SELECT tables.name, columns.name FROM sqlite_master AS tables,"
    " pragma_table_info(tables.name) AS columns WHERE tables.type = 'table'"
)

OF_ADK = frozenset({Holds.SQLITE_SESSIONS, Holds.DATABASE_SESSIONS, Holds.MEMORIES})


def contents(path: str) -> set[Holds]:
    """What a file holds. Empty if it holds nothing known, or cannot be read."""
    tables = _tables(path)
    found = set()
    if {"resources", "containers"} <= tables.keys():
        found.add(Holds.STORE)
    if "memory_events" in tables:
        found.add(Holds.MEMORIES)
    if {"sessions", "events"} <= tables.keys():
        # The current database service names its schema. Its predecessor had a column for each field
        # of an event. The SQLite service has neither.
        named = "adk_internal_metadata" in tables
        of_database = named or "event_data" not in tables["events"]
        found.add(Holds.DATABASE_SESSIONS if of_database else Holds.SQLITE_SESSIONS)
    return found


def explained(path: str) -> str:
    """Why a file is not an embedded store, and what to do."""
    if os.path.isdir(path):
        return f"{path} is a folder: name a file, such as {path.rstrip('/')}/sessions.db."
    holds = contents(path) & OF_ADK
    if holds:
        return (
            f"{path} holds {' and '.join(sorted(holds))}. It is not a store of this service. Copy"
            f" them into one: cosmosservice migrate sqlite:///{path} cosmosdb://embedded/NEW_FILE."
        )
    if _tables(path):
        return f"{path} is a SQLite database of another program. Name another file."
    if os.path.isfile(path) and not _is_sqlite(path):
        return f"{path} is not a SQLite database. Name another file."
    return ""


def _is_sqlite(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def _tables(path: str) -> dict[str, set[str]]:
    """The tables of a SQLite file with their columns."""
    tables: dict[str, set[str]] = {}
    if os.path.isfile(path):
        with contextlib.suppress(sqlite3.Error):
            for table, column in rows_of(path, _COLUMNS):
                tables.setdefault(table, set()).add(column)
    return tables


def rows_of(path: str, query: str) -> list[tuple[Any, ...]]:
    """A connection to a SQLite file that cannot write."""
    address = Path(path).absolute().as_uri() + "?mode=ro"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
        return connection.execute(query).fetchall()
