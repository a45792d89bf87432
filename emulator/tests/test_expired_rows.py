"""Expired items are not only hidden: writes delete them from the file, a few at a time."""

import contextlib
import sqlite3

import pytest

from cosmos_emulator import Emulator

from .raw import create, make_container


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.db"


def stored(path, table="items_1"):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


@pytest.mark.parametrize("definition", [{"defaultTtl": 60}, {"defaultTtl": -1}])
def test_what_expired_leaves_the_file(path, definition):
    with Emulator(path) as emulator:
        unique = {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/n"]}]}}
        make_container(emulator, **definition, **unique)
        for n in range(300):
            create(emulator, {"id": f"old {n}", "pk": "p", "n": n, "ttl": 60})
        create(emulator, {"id": "kept", "pk": "p", "n": -1, "ttl": -1})
        assert stored(path) == 301
        emulator.clock.advance(61)
        for n in range(300):
            create(emulator, {"id": f"new {n}", "pk": "q", "n": n})
        assert stored(path) == stored(path, "uniques_1") == 301


def test_nothing_leaves_a_container_in_which_nothing_expires(path):
    with Emulator(path) as emulator:
        make_container(emulator)
        for n in range(300):
            create(emulator, {"id": str(n), "pk": "p", "ttl": 1})
        emulator.clock.advance(61)
        for n in range(300):
            create(emulator, {"id": str(n), "pk": "q", "ttl": 1})
        assert stored(path) == 600


def test_an_id_is_free_when_the_write_that_wants_it_sweeps(path):
    with Emulator(path) as emulator:
        make_container(emulator, defaultTtl=60)
        for n in range(255):
            create(emulator, {"id": str(n), "pk": "p"})
        emulator.clock.advance(61)
        status, _ = create(emulator, {"id": "7", "pk": "p"})
        assert (status, stored(path)) == (201, 1)
