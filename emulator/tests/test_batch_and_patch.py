"""Transactional batches and partial updates."""

import pytest
from azure.core import MatchConditions
from azure.cosmos import exceptions

pytestmark = pytest.mark.parametrize("way", ["in process"], indirect=True)


def item(item_id, **more):
    return {"id": item_id, "pk": "x", **more}


async def ids(container):
    return [row["id"] async for row in container.query_items("SELECT * FROM c ORDER BY c.id")]


async def failing_batch(container, operations):
    with pytest.raises(exceptions.CosmosBatchOperationError) as caught:
        await container.execute_item_batch(operations, partition_key="x")
    return caught.value


async def test_a_batch_applies_all_six_operations(container):
    await container.create_item(item("old", n=1))
    await container.create_item(item("gone"))
    results = await container.execute_item_batch(
        [
            ("create", (item("new"),)),
            ("upsert", (item("more"),)),
            ("replace", ("old", item("old", n=2))),
            ("read", ("old",)),
            ("patch", ("old", [{"op": "incr", "path": "/n", "value": 5}])),
            ("delete", ("gone",)),
        ],
        partition_key="x",
    )
    assert [result["statusCode"] for result in results] == [201, 201, 200, 200, 200, 204]
    assert results[3]["resourceBody"]["n"] == 2
    assert (await container.read_item("old", "x"))["n"] == 7
    assert await ids(container) == ["more", "new", "old"]


async def test_a_batch_that_fails_leaves_nothing_and_tells_which_operation_it_was(container):
    await container.create_item(item("taken"))
    error = await failing_batch(
        container,
        [
            ("create", (item("a"),)),
            ("delete", ("taken",)),
            ("create", (item("a"),)),
            ("create", (item("b"),)),
        ],
    )
    assert (error.status_code, error.error_index) == (409, 2)
    codes = [response["statusCode"] for response in error.operation_responses]
    assert codes == [424, 424, 409, 424]
    assert await ids(container) == ["taken"]


@pytest.mark.parametrize("kind", ["replace", "upsert", "patch", "delete"])
async def test_each_operation_of_a_batch_honours_its_own_if_match(container, kind):
    stored = await container.create_item(item("a", n=1))
    operations = {
        "replace": ("replace", ("a", item("a", n=2))),
        "upsert": ("upsert", (item("a", n=2),)),
        "patch": ("patch", ("a", [{"op": "set", "path": "/n", "value": 2}])),
        "delete": ("delete", ("a",)),
    }
    operation = operations[kind]
    stale = ("create", (item("b"),)), (*operation, {"if_match_etag": '"stale"'})
    error = await failing_batch(container, list(stale))
    assert (error.status_code, error.error_index) == (412, 1)
    assert await ids(container) == ["a"]
    fresh = (*operation, {"if_match_etag": stored["_etag"]})
    await container.execute_item_batch([fresh], partition_key="x")


async def test_a_batch_costs_the_sum_of_its_operations(container, charge):
    results = await container.execute_item_batch(
        [("create", (item("a"),)), ("create", (item("b"),))],
        partition_key="x",
        response_hook=charge,
    )
    assert charge.value == pytest.approx(
        sum(result["requestCharge"] for result in results), abs=0.01
    )


async def test_a_batch_has_at_most_a_hundred_operations(container):
    operations = [("create", (item(str(n)),)) for n in range(101)]
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        await container.execute_item_batch(operations, partition_key="x")
    assert caught.value.status_code == 400
    await container.execute_item_batch(operations[:100], partition_key="x")


async def test_a_batch_stays_in_its_partition(container):
    other = ("create", ({"id": "a", "pk": "y"},))
    error = await failing_batch(container, [other])
    assert error.status_code == 400


START = {"n": 1, "list": [1, 2], "deep": {"a": 1}, "gone": True}


@pytest.mark.parametrize(
    ("operation", "path", "expected"),
    [
        ({"op": "set", "path": "/n", "value": 9}, "n", 9),
        ({"op": "set", "path": "/new", "value": {"a": 1}}, "new", {"a": 1}),
        ({"op": "set", "path": "/list/0", "value": 9}, "list", [9, 2]),
        ({"op": "add", "path": "/list/0", "value": 9}, "list", [9, 1, 2]),
        ({"op": "add", "path": "/list/-", "value": 9}, "list", [1, 2, 9]),
        ({"op": "replace", "path": "/deep/a", "value": None}, "deep", {"a": None}),
        ({"op": "remove", "path": "/list/1"}, "list", [1]),
        ({"op": "incr", "path": "/n", "value": -0.5}, "n", 0.5),
        ({"op": "incr", "path": "/counter", "value": 3}, "counter", 3),
        ({"op": "move", "from": "/gone", "path": "/deep/b"}, "deep", {"a": 1, "b": True}),
    ],
)
async def test_a_patch_changes_what_it_names(container, operation, path, expected):
    await container.create_item(item("a", **START))
    patched = await container.patch_item("a", "x", [operation])
    assert patched[path] == expected
    assert await container.read_item("a", "x") == patched


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "/missing", "value": 1},
        {"op": "remove", "path": "/missing"},
        {"op": "add", "path": "/list/7", "value": 1},
        {"op": "set", "path": "/missing/deeper", "value": 1},
        {"op": "incr", "path": "/list", "value": 1},
        {"op": "incr", "path": "/n", "value": "1"},
        {"op": "set", "path": "/_ts", "value": 1},
        {"op": "set", "path": "/id", "value": "b"},
        {"op": "set", "path": "no slash", "value": 1},
        {"op": "explode", "path": "/n", "value": 1},
        {"op": "set", "path": "/n"},
    ],
)
async def test_a_patch_that_cannot_be_is_refused_and_changes_nothing(container, operation):
    stored = await container.create_item(item("a", **START))
    first = {"op": "set", "path": "/n", "value": 5}
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        await container.patch_item("a", "x", [first, operation])
    assert caught.value.status_code == 400
    assert await container.read_item("a", "x") == stored


async def test_a_patch_has_at_most_ten_operations(container):
    await container.create_item(item("a", n=0))
    operations = [{"op": "incr", "path": "/n", "value": 1}] * 11
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        await container.patch_item("a", "x", operations)
    assert caught.value.status_code == 400
    assert (await container.patch_item("a", "x", operations[:10]))["n"] == 10


async def test_a_patch_with_a_condition_applies_only_where_it_holds(container):
    await container.create_item(item("a", n=1))
    operation = [{"op": "set", "path": "/n", "value": 2}]
    condition = "from c where c.n = 1"
    await container.patch_item("a", "x", operation, filter_predicate=condition)
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        await container.patch_item("a", "x", operation, filter_predicate=condition)
    assert caught.value.status_code == 412
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        await container.patch_item("a", "x", operation, filter_predicate="from c where (")
    assert caught.value.status_code == 400


async def test_a_batch_may_read_an_etag_and_write_on_it(container):
    stored = await container.create_item(item("a"))
    newer = await container.execute_item_batch(
        [("replace", ("a", item("a", n=1))), ("replace", ("a", item("a", n=2)))],
        partition_key="x",
    )
    assert len({stored["_etag"], newer[0]["eTag"], newer[1]["eTag"]}) == 3
    await container.delete_item(
        "a", "x", etag=newer[1]["eTag"], match_condition=MatchConditions.IfNotModified
    )
