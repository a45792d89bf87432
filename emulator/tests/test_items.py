"""Items as a client sees them: identity, conditions, limits, system properties."""

import asyncio

import pytest
from azure.core import MatchConditions
from azure.cosmos import exceptions

IF_SAME = MatchConditions.IfNotModified
IF_CHANGED = MatchConditions.IfModified


async def status_of(call):
    errors = (exceptions.CosmosHttpResponseError, exceptions.CosmosBatchOperationError)
    with pytest.raises(errors) as caught:
        await call
    return caught.value.status_code


async def test_an_item_comes_back_with_the_services_properties(container):
    created = await container.create_item({"id": "a", "pk": "x", "text": "π 😀"})
    assert await container.read_item("a", "x") == created
    assert created["text"] == "π 😀"
    assert {"_rid", "_self", "_etag", "_ts", "_attachments"} <= created.keys()


async def test_creating_an_id_twice_is_a_conflict_only_within_its_partition(container):
    await container.create_item({"id": "a", "pk": "x"})
    assert await status_of(container.create_item({"id": "a", "pk": "x"})) == 409
    await container.create_item({"id": "a", "pk": "y"})


async def test_a_missing_item_is_404_for_every_operation(container):
    assert await status_of(container.read_item("a", "x")) == 404
    assert await status_of(container.replace_item("a", {"id": "a", "pk": "x"})) == 404
    assert await status_of(container.delete_item("a", "x")) == 404
    patch = [{"op": "set", "path": "/n", "value": 1}]
    assert await status_of(container.patch_item("a", "x", patch)) == 404


async def test_a_missing_container_is_404(database):
    gone = database.get_container_client("gone")
    with pytest.raises(exceptions.CosmosResourceNotFoundError) as caught:
        await gone.create_item({"id": "a", "pk": "x"})
    assert (caught.value.status_code, caught.value.sub_status) == (404, None)


async def test_a_container_that_vanished_is_404_owner_missing(database, container):
    await container.create_item({"id": "a", "pk": "x"})
    await database.delete_container(container)
    with pytest.raises(exceptions.CosmosResourceNotFoundError) as caught:
        await container.create_item({"id": "b", "pk": "x"})
    assert caught.value.sub_status == 1003


async def test_every_write_honours_if_match(container):
    item = await container.create_item({"id": "a", "pk": "x"})
    stale = {"etag": item["_etag"], "match_condition": IF_SAME}
    body = {"id": "a", "pk": "x", "n": 1}
    newer = await container.replace_item("a", body, **stale)
    assert newer["_etag"] != item["_etag"]
    patch = [{"op": "set", "path": "/n", "value": 2}]
    assert await status_of(container.replace_item("a", body, **stale)) == 412
    assert await status_of(container.upsert_item(body, **stale)) == 412
    assert await status_of(container.patch_item("a", "x", patch, **stale)) == 412
    assert await status_of(container.delete_item("a", "x", **stale)) == 412
    assert await container.read_item("a", "x") == newer


async def test_a_conditional_read_of_an_unchanged_item_is_empty_and_costs_one_unit(
    container, charge, emulator
):
    item = await container.create_item({"id": "a", "pk": "x", "text": "t" * 100_000})
    same = await container.read_item(
        "a", "x", etag=item["_etag"], match_condition=IF_CHANGED, response_hook=charge
    )
    assert same == {}
    assert charge.value == 1.0
    assert emulator.requests[-1].status == 304
    newer = await container.upsert_item({"id": "a", "pk": "x"})
    read = await container.read_item("a", "x", etag=item["_etag"], match_condition=IF_CHANGED)
    assert read == newer


async def test_upsert_creates_and_replaces(container, emulator):
    await container.upsert_item({"id": "a", "pk": "x", "n": 1})
    assert emulator.requests[-1].status == 201
    await container.upsert_item({"id": "a", "pk": "x", "n": 2})
    assert emulator.requests[-1].status == 200
    assert (await container.read_item("a", "x"))["n"] == 2


async def test_a_minimal_answer_has_no_body_but_an_etag(container):
    item = await container.create_item({"id": "a", "pk": "x"}, no_response=True)
    assert item == {}
    etag = item.get_response_headers()["etag"]
    assert (await container.read_item("a", "x"))["_etag"] == etag


async def test_numbers_are_integers_of_64_bits_and_doubles(container):
    await container.create_item(
        {"id": "a", "pk": "x", "one": 1.0, "big": 2**53 + 1, "half": 0.5, "huge": 2**64}
    )
    item = await container.read_item("a", "x")
    assert (item["one"], type(item["one"])) == (1, int)
    assert item["big"] == 2**53 + 1
    assert (item["half"], item["huge"]) == (0.5, float(2**64))


@pytest.mark.parametrize("bad_id", ["a/b", "a\\b", "", "a" * 1024, 7, None])
async def test_a_bad_id_is_refused(container, bad_id):
    # In a batch: for single items, the SDK checks or completes ids itself.
    create = ("create", ({"id": bad_id, "pk": "x"},))
    assert await status_of(container.execute_item_batch([create], "x")) == 400


async def test_a_key_that_does_not_match_the_item_is_refused(container):
    await container.create_item({"id": "a", "pk": "x"})
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        await container.patch_item("a", "x", [{"op": "set", "path": "/pk", "value": "y"}])
    assert caught.value.status_code == 400


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_an_item_above_two_megabytes_is_413(container):
    assert (
        await status_of(
            container.create_item({"id": "a", "pk": "x", "text": "t" * (2 * 1024 * 1024)})
        )
        == 413
    )
    await container.create_item({"id": "a", "pk": "x", "text": "t" * (2 * 1024 * 1024 - 100)})


@pytest.mark.parametrize("ttl", [0, -2, None, "1", 1.5, 2**31])
async def test_a_bad_ttl_is_refused(container, ttl):
    assert await status_of(container.create_item({"id": "a", "pk": "x", "ttl": ttl})) == 400


async def test_an_item_nested_too_deeply_is_refused(container):
    deep = []
    for _ in range(200):
        deep = [deep]
    assert await status_of(container.create_item({"id": "a", "pk": "x", "deep": deep})) == 400


async def test_unusual_partition_keys_name_partitions_of_their_own(container):
    for number, key in enumerate([None, True, 1, 1.5, "1", "é😀"]):
        await container.create_item({"id": "a", "pk": key, "n": number})
        assert (await container.read_item("a", key))["n"] == number
    await container.create_item({"id": "no key at all"})


async def test_of_many_creators_of_one_id_exactly_one_wins(container):
    calls = [container.create_item({"id": "a", "pk": "x", "n": n}) for n in range(20)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(result, dict) for result in results) == 1


def test_the_synchronous_client_sees_the_same(sync_container):
    item = sync_container.create_item({"id": "a", "pk": "x"})
    assert sync_container.read_item("a", "x") == item
    with pytest.raises(exceptions.CosmosResourceExistsError):
        sync_container.create_item({"id": "a", "pk": "x"})
    newer = sync_container.replace_item(
        "a", {"id": "a", "pk": "x", "n": 1}, etag=item["_etag"], match_condition=IF_SAME
    )
    with pytest.raises(exceptions.CosmosAccessConditionFailedError):
        sync_container.delete_item("a", "x", etag=item["_etag"], match_condition=IF_SAME)
    assert list(sync_container.query_items("SELECT * FROM c", partition_key="x")) == [newer]
    sync_container.delete_item("a", "x")
    with pytest.raises(exceptions.CosmosResourceNotFoundError):
        sync_container.read_item("a", "x")
