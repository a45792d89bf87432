"""Files of older versions: they are upgraded when opened, with a backup beside them."""

import contextlib
import json
import sqlite3
import subprocess
import sys

import pytest
from azure.core import MatchConditions
from azure.cosmos import CosmosClient, exceptions

from cosmos_emulator import Emulator, ForeignFile, StorageError

APPLICATION_ID = 0x436F736D
IF_MATCH = MatchConditions.IfNotModified

RESOURCES = """
CREATE TABLE resources (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL, parent TEXT NOT NULL, id TEXT NOT NULL,
    rid TEXT NOT NULL UNIQUE, ts INTEGER NOT NULL, body TEXT NOT NULL,
    UNIQUE (kind, parent, id));
"""
UNIQUES = """
CREATE TABLE uniques_1 (
    pk TEXT NOT NULL, rule INTEGER NOT NULL, value TEXT NOT NULL, seq INTEGER NOT NULL,
    PRIMARY KEY (pk, rule, value)) WITHOUT ROWID;
CREATE INDEX uniques_1_by_seq ON uniques_1 (seq);
CREATE UNIQUE INDEX items_1_by_id ON items_1 (pk, id);
CREATE INDEX items_1_by_pk ON items_1 (pk);
"""
# The first files of format 1, where the LSN counts single writes.
FIRST = """
CREATE TABLE containers (
    num INTEGER PRIMARY KEY AUTOINCREMENT, rid TEXT NOT NULL UNIQUE, lsn INTEGER NOT NULL);
CREATE TABLE items_1 (
    seq INTEGER PRIMARY KEY, pk TEXT NOT NULL, id TEXT NOT NULL, epk TEXT NOT NULL,
    lsn INTEGER NOT NULL, ts INTEGER NOT NULL, ttl INTEGER, body TEXT NOT NULL);
CREATE INDEX items_1_by_lsn ON items_1 (lsn);
INSERT INTO containers VALUES (1, 'AQAAAIAAAAI=', 2);
"""
# Later files of format 1, where a batch has one LSN and many versions.
LATER = """
CREATE TABLE containers (
    num INTEGER PRIMARY KEY AUTOINCREMENT, rid TEXT NOT NULL UNIQUE,
    lsn INTEGER NOT NULL, version INTEGER NOT NULL);
CREATE TABLE items_1 (
    seq INTEGER PRIMARY KEY, pk TEXT NOT NULL, id TEXT NOT NULL, epk TEXT NOT NULL,
    lsn INTEGER NOT NULL, version INTEGER NOT NULL,
    ts INTEGER NOT NULL, ttl INTEGER, body TEXT NOT NULL);
CREATE INDEX items_1_by_version ON items_1 (version);
INSERT INTO containers VALUES (1, 'AQAAAIAAAAI=', 1, 2);
"""
DATABASE = {
    "id": "db", "_rid": "AQAAAA==", "_self": "dbs/AQAAAA==/",
    "_etag": '"00000000-0000-0000-0000-000000000001"',
    "_colls": "colls/", "_users": "users/", "_ts": 1794942388,
}  # fmt: skip
CONTAINER = {
    "id": "c",
    "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
    "indexingPolicy": {
        "indexingMode": "consistent", "automatic": True,
        "includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": '/"_etag"/?'}],
    },
    "_rid": "AQAAAIAAAAI=", "_self": "dbs/AQAAAA==/colls/AQAAAIAAAAI=/",
    "_etag": '"00000000-0000-0000-0000-000000000002"',
    "_docs": "docs/", "_ts": 1794942388,
}  # fmt: skip


def item(item_id, number):
    return {
        "id": item_id,
        "pk": "x",
        "_rid": "AQAAAIAAAAIBAAAAAAAAAA==",
        "_self": f"dbs/AQAAAA==/colls/AQAAAIAAAAI=/docs/{item_id}/",
        "_etag": f'"00000001-0000-0000-0000-{number:012x}"',
        "_attachments": "attachments/",
        "_ts": 1794942388,
    }


def old_file(path, tables, version=1):
    connection = sqlite3.connect(path)
    connection.executescript(RESOURCES + tables + UNIQUES)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute("PRAGMA journal_mode = WAL")
    for kind, parent, body in [("dbs", "", DATABASE), ("colls", "AQAAAA==", CONTAINER)]:
        connection.execute(
            "INSERT INTO resources (kind, parent, id, rid, ts, body) VALUES (?, ?, ?, ?, ?, ?)",
            [kind, parent, body["id"], body["_rid"], body["_ts"], json.dumps(body)],
        )
    epk = "2F8CDDAEB4C9B1B5E5F4C5D2B2E4E0A1"
    for number, item_id in [(1, "a"), (2, "b")]:
        body = json.dumps(item(item_id, number), separators=(",", ":"))
        if tables == FIRST:
            values = [number, '["x"]', item_id, epk, number, 1794942388, None, body]
        else:
            values = [number, '["x"]', item_id, epk, 1, number, 1794942388, None, body]
        marks = ", ".join("?" * len(values))
        connection.execute(f"INSERT INTO items_1 VALUES ({marks})", values)
    connection.commit()
    connection.close()


@contextlib.contextmanager
def opened(path):
    with (
        Emulator(path) as emulator,
        CosmosClient(emulator.endpoint, emulator.key, transport=emulator.transport()) as client,
    ):
        yield client.get_database_client("db").get_container_client("c")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.db"


@pytest.mark.parametrize("tables", [FIRST, LATER], ids=["first", "later"])
def test_an_older_file_is_upgraded_and_goes_on_as_it_was(path, tables):
    old_file(path, tables)
    with opened(path) as container:
        assert container.read_item("b", "x") == item("b", 2)
        rows = container.query_items("SELECT VALUE c.id FROM c ORDER BY c.id", partition_key="x")
        assert list(rows) == ["a", "b"]
        feed = container.query_items_change_feed(start_time="Beginning")
        assert [row["id"] for row in feed] == ["a", "b"]
        with pytest.raises(exceptions.CosmosAccessConditionFailedError):
            container.replace_item(
                "b", {"id": "b", "pk": "x"}, etag='"none"', match_condition=IF_MATCH
            )
        etag = item("b", 2)["_etag"]
        body = {"id": "b", "pk": "x", "n": 1}
        newer = container.replace_item("b", body, etag=etag, match_condition=IF_MATCH)
        assert newer["_etag"] == '"00000001-0000-0000-0000-000000000003"'
        container.create_item({"id": "c", "pk": "x"})
    with opened(path) as container:
        assert len(list(container.read_all_items())) == 3


def test_a_backup_lies_beside_an_upgraded_file(path):
    old_file(path, LATER)
    with opened(path) as container:
        container.delete_item("a", "x")
    assert sorted(p.name for p in path.parent.iterdir()) == ["data.db", "data.db.backup-v1"]
    backup = sqlite3.connect(path.parent / "data.db.backup-v1")
    assert backup.execute("PRAGMA user_version").fetchone() == (1,)
    assert backup.execute("SELECT id FROM items_1 ORDER BY id").fetchall() == [("a",), ("b",)]
    backup.close()


def test_an_older_backup_is_kept(path):
    for _ in range(2):
        old_file(path, LATER)
        Emulator(path).close()
        path.unlink()
    names = {p.name for p in path.parent.iterdir()}
    assert names == {"data.db.backup-v1", "data.db.backup-v1-2"}


def test_without_a_backup_nothing_is_upgraded(path):
    old_file(path, LATER)
    (path.parent / "data.db.backup-v1.unfinished").mkdir()
    with pytest.raises(StorageError, match=r"older version .* no backup .* nothing was changed"):
        Emulator(path)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    connection.close()


def test_two_processes_that_open_an_older_file_at_once_both_get_it(path):
    old_file(path, FIRST)
    program = "import sys; from cosmos_emulator import Emulator; Emulator(sys.argv[1]).close()"
    command = [sys.executable, "-c", program, str(path)]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    with opened(path) as container:
        assert len(list(container.read_all_items())) == 2
    assert len(list(path.parent.glob("*.backup-*"))) == 1


def test_a_newer_file_is_refused_and_left_alone(path):
    old_file(path, LATER, version=99)
    before = path.read_bytes()
    with pytest.raises(StorageError, match=r"newer version of this emulator \(its format is 99"):
        Emulator(path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["data.db"]


def test_a_file_of_adk_itself_is_distinguished_from_a_damaged_one(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE sessions (app_name TEXT, user_id TEXT, id TEXT)")
    connection.close()
    with pytest.raises(ForeignFile, match="SQLite database of another program"):
        Emulator(path)
