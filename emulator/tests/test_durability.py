"""Files: restarts, kill -9, two processes, damage, a full disk."""

import asyncio
import itertools
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from azure.cosmos import CosmosClient, PartitionKey, exceptions
from azure.cosmos.aio import CosmosClient as AsyncCosmosClient

from cosmos_emulator import Emulator, ForeignFile, StorageError, storage


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.db"


def connect(emulator):
    return CosmosClient(emulator.endpoint, emulator.key, transport=emulator.transport())


def open_container(client):
    database = client.create_database_if_not_exists("db")
    return database.create_container_if_not_exists("c", partition_key=PartitionKey("/pk"))


def test_what_was_stored_is_there_after_a_restart_with_the_same_etag(path):
    with Emulator(path) as emulator, connect(emulator) as client:
        stored = open_container(client).create_item({"id": "a", "pk": "x"})
    with Emulator(path) as emulator, connect(emulator) as client:
        container = open_container(client)
        assert container.read_item("a", "x") == stored
        newer = container.upsert_item({"id": "a", "pk": "x"})
    assert newer["_etag"] != stored["_etag"]


WRITER = """
import sys
from raw import create
from cosmos_emulator import Emulator

emulator = Emulator(sys.argv[1])
for n in range(int(sys.argv[2]), int(sys.argv[3])):
    status, _ = create(emulator, {"id": str(n), "pk": "x"})
    assert status == 201, status
    print(n, flush=True)
"""


def writer(path, first, last):
    """Another process that creates items and reports them."""
    command = [sys.executable, "-c", WRITER, str(path), str(first), str(last)]
    here = str(Path(__file__).parent)
    return subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": here}, stdout=subprocess.PIPE, text=True
    )


def test_what_was_acknowledged_survives_a_kill(path):
    with Emulator(path) as emulator, connect(emulator) as client:
        open_container(client)
    process = writer(path, 0, 1_000_000)
    seen = [int(process.stdout.readline()) for _ in range(50)]
    process.send_signal(signal.SIGKILL)
    seen += [int(line) for line in process.stdout.read().split()]
    process.stdout.close()
    process.wait()
    with Emulator(path) as emulator, connect(emulator) as client:
        container = open_container(client)
        stored = {
            int(row["id"]) for row in container.query_items("SELECT * FROM c", partition_key="x")
        }
    assert set(seen) <= stored
    assert len(stored) <= len(seen) + 1


def test_two_processes_share_a_file(path):
    with Emulator(path) as emulator, connect(emulator) as client:
        container = open_container(client)
        process = writer(path, 0, 50)
        for n in range(50, 100):
            container.create_item({"id": str(n), "pk": "x"})
        assert process.wait(60) == 0
        process.stdout.close()
        rows = list(container.query_items("SELECT * FROM c", partition_key="x"))
        assert {int(row["id"]) for row in rows} == set(range(100))
        assert len({row["_etag"] for row in rows}) == 100


def test_a_container_made_by_another_process_is_seen_and_a_deleted_one_is_missed(path):
    with Emulator(path) as one, Emulator(path) as two, connect(one) as a, connect(two) as b:
        mine, yours = open_container(a), open_container(b)
        mine.create_item({"id": "a", "pk": "x"})
        assert yours.read_item("a", "x")
        database = a.get_database_client("db")
        database.delete_container("c")
        with pytest.raises(exceptions.CosmosResourceNotFoundError):
            yours.read_item("a", "x")
        open_container(a).create_item({"id": "b", "pk": "x"})
        assert open_container(b).read_item("b", "x")


def test_of_two_processes_that_create_one_id_one_wins(path):
    with Emulator(path) as one, Emulator(path) as two, connect(one) as a, connect(two) as b:
        containers = [open_container(a), open_container(b)]
        for n in range(20):
            won = 0
            for container in containers if n % 2 else reversed(containers):
                try:
                    container.create_item({"id": str(n), "pk": "x"})
                    won += 1
                except exceptions.CosmosResourceExistsError:
                    pass
            assert won == 1


def test_one_emulator_serves_several_threads_and_loops(path):
    with Emulator(path) as emulator:
        with connect(emulator) as client:
            open_container(client)

        async def work(name):
            async with AsyncCosmosClient(
                emulator.endpoint, emulator.key, transport=emulator.async_transport()
            ) as client:
                container = client.get_database_client("db").get_container_client("c")
                for n in range(20):
                    await container.create_item({"id": f"{name}-{n}", "pk": "x"})
                    await container.upsert_item({"id": "shared", "pk": "x", "by": name})

        threads = [threading.Thread(target=asyncio.run, args=[work(n)]) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        with connect(emulator) as client:
            rows = list(
                open_container(client).query_items("SELECT VALUE c.id FROM c", partition_key="x")
            )
    assert len(rows) == 81


def test_a_file_that_is_not_a_database_is_refused_and_left_alone(path):
    path.write_bytes(b"This is a letter to my aunt. " * 100)
    before = path.read_bytes()
    with pytest.raises(StorageError, match="not a usable SQLite database"):
        Emulator(path)
    assert path.read_bytes() == before


def test_a_database_of_somebody_else_is_refused_and_left_alone(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE aunts (name TEXT)")
    connection.close()
    with pytest.raises(ForeignFile, match="SQLite database of another program"):
        Emulator(path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM aunts").fetchone() == (0,)
    connection.close()


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(StorageError, match="nowhere"):
        Emulator(tmp_path / "nowhere" / "data.db")


def test_a_disk_that_is_nearly_full_leaves_deletes_possible(path, monkeypatch):
    def free(_):
        used = sum(each.stat().st_size for each in path.parent.iterdir())
        assert used < 6_000_000, "the disk is full"
        return 6_000_000 - used

    monkeypatch.setattr(storage, "free_bytes", free)
    with Emulator(path) as emulator, connect(emulator) as client:
        container = open_container(client)
        numbers = itertools.count()

        def create():
            item = {"id": f"{next(numbers)}", "pk": "x", "text": "t" * 50_000}
            container.create_item(item)

        with pytest.raises(exceptions.CosmosHttpResponseError, match="Deletes are") as refused:
            list(iter(create, False))
        assert refused.value.status_code == 507
        for number in range(next(numbers) - 1):
            container.delete_item(f"{number}", "x")
        create()


def test_a_full_disk_refuses_the_write_and_keeps_the_rest(path, opened):
    with Emulator(path) as emulator, connect(emulator) as client:
        container = open_container(client)
        container.create_item({"id": "small", "pk": "x"})
        (pages,) = opened[0].execute("PRAGMA page_count").fetchone()
        opened[0].execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
            container.create_item({"id": "big", "pk": "x", "text": "t" * 100_000})
        assert caught.value.status_code == 507
        assert "full" in caught.value.message
        assert container.read_item("small", "x")
        rows = container.query_items("SELECT * FROM c ORDER BY c.n", partition_key="x")
        assert [row["id"] for row in rows] == ["small"]
