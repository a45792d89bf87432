"""Erased bytes are gone, and an emulator that is not closed leaves nothing open."""

import contextlib
import gc
import os
import random
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from cosmos_emulator import Emulator, Replicas
from cosmos_emulator.storage import MANY

MARK = re.compile(rb"mark-\d{6}-")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.db"


@contextlib.contextmanager
def opened(path, **options):
    with (
        Emulator(path, **options) as emulator,
        CosmosClient(emulator.endpoint, emulator.key, transport=emulator.transport()) as client,
    ):
        database = client.create_database("db")
        yield emulator, database.create_container("c", partition_key=PartitionKey("/pk"))


def marks_in(path):
    """The marks in the file and the files beside it, whoever wrote them."""
    return {
        mark for file in path.parent.iterdir() for mark in MARK.findall(file.read_bytes())
    }  # fmt: skip


def document(number, pk, size):
    mark = f"mark-{number:06}-"
    return {"id": mark, "pk": pk, "mark": mark, "text": mark * (size // len(mark))}


def churn(container, chance, steps):
    """Creates, replaces and deletes at random. Returns the marks that are still stored."""
    stored = {}
    for number in range(steps):
        size = chance.choice([20, 200, 900, 3000, 20_000])
        kind = chance.random()
        if kind < 0.4 or not stored:
            key = f"key {chance.randrange(3)}"
            created = container.create_item(document(number, key, size))
            stored[created["id"]] = (created["mark"], key)
        else:
            item_id = chance.choice(list(stored))
            _, key = stored[item_id]
            if kind < 0.7:
                body = {**document(number, key, size), "id": item_id}
                stored[item_id] = (container.replace_item(item_id, body)["mark"], key)
            else:
                container.delete_item(item_id, key)
                del stored[item_id]
    return {mark.encode() for pair in stored.items() for mark in (pair[0], pair[1][0])}


@pytest.mark.parametrize("seed", range(3))
def test_after_erasing_remnants_nothing_deleted_or_replaced_is_in_the_file(path, seed):
    with opened(path) as (emulator, container):
        list(container.query_items("SELECT * FROM c ORDER BY c.mark", partition_key="key 0"))
        stored = churn(container, random.Random(seed), 400)
        assert marks_in(path) > stored
        assert emulator.erase_remnants()
        assert marks_in(path) == stored


def test_after_closing_nothing_deleted_is_in_the_file(path):
    with opened(path) as (_, container):
        stored = churn(container, random.Random(7), 400)
    assert marks_in(path) == stored


def test_a_deleted_partition_is_gone_at_once(path):
    with opened(path) as (_, container):
        for number in range(5):
            container.create_item(document(number, "key 0", 3000))
        kept = container.create_item(document(99, "key 1", 3000))
        container.delete_all_items_by_partition_key("key 0")
        assert marks_in(path) == {kept["id"].encode()}


def test_a_deleted_container_is_gone_at_once(path):
    with opened(path) as (_, container):
        for number in range(5):
            container.create_item(document(number, "key 0", 3000))
        container.client_connection.DeleteContainer("dbs/db/colls/c")
        assert marks_in(path) == set()


def test_many_deletes_empty_the_log(path):
    with opened(path) as (_, container):
        for start in range(0, MANY, 100):
            numbers = range(start, start + 100)
            batch = [("create", (document(number, "x", 20),)) for number in numbers]
            container.execute_item_batch(batch, "x")
        for start in range(0, MANY, 100):
            batch = [("delete", (f"mark-{n:06}-",)) for n in range(start, start + 100)]
            container.execute_item_batch(batch, "x")
        assert path.with_name("data.db-wal").stat().st_size == 0


def test_the_history_of_lagging_replicas_is_not_in_the_file(path):
    with opened(path, replicas=Replicas()) as (emulator, container):
        emulator.replicas.hold()
        stored = churn(container, random.Random(8), 100)
        assert emulator.erase_remnants()
        assert marks_in(path) == stored


def test_in_memory_there_is_nothing_to_erase():
    with Emulator() as emulator:
        assert emulator.erase_remnants()


FORGETFUL = """
import gc, sys
from cosmos_emulator import Emulator, Replicas
from raw import create, make_container

for path in (":memory:", sys.argv[1]):
    for replicas in (None, Replicas()):
        emulator = Emulator(path, replicas=replicas)
        make_container(emulator)
        create(emulator, {"id": "a", "pk": "x"})
        del emulator, replicas
        gc.collect()
kept = Emulator(sys.argv[1])  # until the interpreter ends
"""


def test_a_forgotten_emulator_closes_its_file_without_a_warning(path):
    command = [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", FORGETFUL]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        [*command, str(path)], capture_output=True, text=True, timeout=60, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [p.name for p in path.parent.iterdir()] == ["data.db"]


def test_a_dropped_emulator_lets_go_of_its_file(path):
    emulator = Emulator(path)
    assert path.with_name("data.db-wal").exists()
    del emulator
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gc.collect()
    assert not path.with_name("data.db-wal").exists()


def test_closing_twice_does_no_harm(path):
    emulator = Emulator(path)
    emulator.close()
    emulator.close()
