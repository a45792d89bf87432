"""Queries within one partition read only what they return, not the whole partition."""

import json

import pytest

from cosmos_emulator import query_routes
from cosmos_emulator.query.deadline import Deadline

from .raw import create, make_container, send

KEY = '["x"]'


def ask(emulator, text, *parameters, **headers):
    body = {"query": text, "parameters": [{"name": n, "value": v} for n, v in parameters]}
    status, answer = send(
        emulator,
        "POST",
        "/dbs/db/colls/c/docs",
        body,
        x_ms_documentdb_isquery="True",
        **(headers or {"x_ms_documentdb_partitionkey": KEY}),
    )
    assert status == 200, answer
    return [row["id"] for row in answer["Documents"]]


def steps_of(call):
    """Counts the work of a query, in units of a hundred instructions of SQLite or sixteen rows."""
    count = 0

    def look(deadline):
        nonlocal count
        count += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query_routes, "_OFTEN", 100)
        patch.setattr(Deadline, "look", look)
        result = call()
    return count, result


@pytest.fixture
def filled(emulator):
    """A thousand items in one partition, written a hundred at a time."""
    make_container(emulator)
    for start in range(0, 1000, 100):
        operations = [
            {
                "operationType": "Create",
                "resourceBody": {"id": f"{n:05}", "pk": "x", "seq": n, "deep": {"a": n % 7}},
            }
            for n in range(start, start + 100)
        ]
        status, _ = send(
            emulator,
            "POST",
            "/dbs/db/colls/c/docs",
            json.dumps(operations).encode(),
            x_ms_documentdb_partitionkey=KEY,
            x_ms_cosmos_is_batch_request="True",
        )
        assert status == 200
    create(emulator, {"id": "other", "pk": "y", "seq": 5000})
    return emulator


@pytest.mark.parametrize(
    ("text", "parameters", "expected"),
    [
        ("SELECT TOP 10 * FROM c ORDER BY c.seq DESC", [], range(999, 989, -1)),
        ("SELECT * FROM c ORDER BY c.seq DESC OFFSET 0 LIMIT 10", [], range(999, 989, -1)),
        ("SELECT TOP 10 * FROM c ORDER BY c.seq", [], range(10)),
        ("SELECT TOP 10 * FROM c ORDER BY c.id DESC", [], range(999, 989, -1)),
        (
            "SELECT * FROM c WHERE c.id > @a AND c.id < @b ORDER BY c.id DESC",
            [("@a", "00500"), ("@b", "00511")],
            range(510, 500, -1),
        ),
        ("SELECT TOP 10 * FROM c", [], range(10)),
        ("SELECT * FROM c WHERE c.id = @a", [("@a", "00500")], [500]),
    ],
)
def test_a_few_items_of_a_long_partition_cost_a_few_steps(filled, text, parameters, expected):
    ask(filled, text, *parameters)  # creates the index that it needs
    steps, found = steps_of(lambda: ask(filled, text, *parameters))
    assert found == [f"{n:05}" for n in expected]
    everything, _ = steps_of(lambda: ask(filled, "SELECT * FROM c WHERE c.deep.a >= 0"))
    assert steps * 10 < everything


@pytest.mark.parametrize("order", ["c.seq", "c.seq DESC", "c.deep.a", "c.id DESC"])
def test_a_sorted_page_over_all_partitions_reads_what_it_returns(filled, order):
    text = f"SELECT TOP 10 * FROM c WHERE c.seq >= 0 ORDER BY {order}"
    whole = {"x_ms_documentdb_partitionkeyrangeid": "0"}
    ask(filled, text, **whole)  # creates the index that it needs
    steps, found = steps_of(lambda: ask(filled, text, **whole))
    assert len(found) == 10
    everything, _ = steps_of(lambda: ask(filled, "SELECT * FROM c WHERE c.deep.a >= 0"))
    assert steps * 10 < everything
