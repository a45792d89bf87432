"""Bulk requests, as the SDKs for JavaScript, .NET and Java write many items."""

import json

import pytest

from cosmos_emulator import Emulator

from .raw import make_container, send

DOCS = "/dbs/db/colls/c/docs"


def bulk(emulator, operations, *, go_on=True, **headers):
    return send(
        emulator,
        "POST",
        DOCS,
        operations,
        x_ms_cosmos_is_batch_request="True",
        x_ms_cosmos_batch_atomic="False",
        x_ms_cosmos_batch_continue_on_error=str(go_on),
        **headers,
    )


def in_range(range_id="0"):
    return {"x_ms_documentdb_partitionkeyrangeid": range_id}


def create(item_id, key, **more):
    body = {"id": item_id, "pk": key}
    return {
        "operationType": "Create",
        "partitionKey": json.dumps([key]),
        "resourceBody": body,
        **more,
    }


def read(item_id, key):
    return {"operationType": "Read", "id": item_id, "partitionKey": json.dumps([key])}


def codes(results):
    return [result["statusCode"] for result in results]


@pytest.fixture
def container(emulator):
    make_container(emulator)
    return emulator


def test_operations_on_several_keys_of_one_range_are_applied_in_order(container):
    status, results = bulk(
        container,
        [
            create("a", "x"),
            create("a", "y"),
            {
                "operationType": "Patch",
                "id": "a",
                "partitionKey": '["y"]',
                "resourceBody": {"operations": [{"op": "add", "path": "/n", "value": 1}]},
            },
            read("a", "y"),
            {"operationType": "Delete", "id": "a", "partitionKey": '["x"]'},
        ],
        **in_range(),
    )
    assert (status, codes(results)) == (200, [201, 201, 200, 200, 204])
    assert results[3]["resourceBody"]["n"] == 1


def test_an_operation_that_fails_leaves_the_others_alone(container):
    status, results = bulk(
        container, [create("a", "x"), create("a", "x"), create("b", "x")], **in_range()
    )
    assert (status, codes(results)) == (207, [201, 409, 201])
    assert "resourceBody" not in results[1]
    assert codes(bulk(container, [read("a", "x"), read("b", "x")], **in_range())[1]) == [200, 200]


def test_without_continue_on_error_what_comes_after_an_error_is_not_tried(container):
    _, results = bulk(
        container,
        [create("a", "x"), read("no", "x"), create("b", "x")],
        go_on=False,
        **in_range(),
    )
    assert codes(results) == [201, 404, 424]
    assert codes(bulk(container, [read("a", "x"), read("b", "x")], **in_range())[1]) == [200, 404]


def test_a_bulk_request_to_one_partition_uses_its_key(container):
    operations = [{"operationType": "Create", "resourceBody": {"id": "a", "pk": "x"}}]
    status, results = bulk(container, operations, x_ms_documentdb_partitionkey='["x"]')
    assert (status, codes(results)) == (200, [201])


def test_an_operation_without_a_key_is_refused(container):
    operation = {"operationType": "Create", "resourceBody": {"id": "a", "pk": "x"}}
    assert codes(bulk(container, [operation], **in_range())[1]) == [400]
    assert bulk(container, [create("a", "x")])[0] == 400


def test_documents_are_left_out_of_the_answer_on_request(container):
    _, results = bulk(
        container,
        [create("a", "x"), read("a", "x")],
        prefer="return=minimal",
        **in_range(),
    )
    assert ["resourceBody" in result for result in results] == [False, True]
    assert "eTag" in results[0]
    _, (result,) = bulk(container, [create("b", "x", minimalReturnPreference=True)], **in_range())
    assert "resourceBody" not in result


def test_a_key_of_another_range_and_a_range_that_was_split_are_gone():
    with Emulator(partitions=2) as emulator:
        make_container(emulator)
        operations = [create("a", "x")]
        ranges = send(emulator, "GET", "/dbs/db/colls/c/pkranges")[1]["PartitionKeyRanges"]
        names = [found["id"] for found in ranges]
        found = [bulk(emulator, operations, **in_range(name))[1][0] for name in names]
        assert sorted(codes(found)) == [201, 410]
        assert [result.get("subStatusCode") for result in found if result["statusCode"] == 410] == [
            1002
        ]
        emulator.split("c")
        assert bulk(emulator, operations, **in_range(names[0]))[0] == 410


def test_every_operation_is_a_transaction_with_an_lsn_of_its_own(container):
    bulk(container, [create("a", "x"), create("b", "y")], **in_range())
    _, first = send(container, "GET", DOCS, a_im="Incremental Feed")
    assert [document["_lsn"] for document in first["Documents"]] == [1, 2]
