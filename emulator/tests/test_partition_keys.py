"""Hierarchical keys, ranges of keys, and the hash that places them."""

import pytest
from azure.cosmos import PartitionKey, exceptions
from azure.cosmos.partition_key import NonePartitionKeyValue
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmos_emulator.partition_keys import PartitionKeys, key_text

in_process = pytest.mark.parametrize("way", ["in process"], indirect=True)

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False), st.text()
)


@settings(deadline=None)
@given(st.text(alphabet=st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"])))
def test_keys_of_version_1_hash_as_the_sdk_hashes_them(value):
    theirs = PartitionKey("/pk", version=1)._get_effective_partition_key_string([value])
    mine = PartitionKeys.parse({"paths": ["/pk"], "kind": "Hash", "version": 1})
    assert mine.epk(key_text([value])) == theirs.upper()


@settings(deadline=None)
@given(scalars.filter(lambda v: not isinstance(v, float) or (abs(v) < 1e21 and str(v) != "-0.0")))
def test_keys_of_version_2_hash_as_the_sdk_hashes_them(value):
    # Except -0.0, which is the same key as 0.
    theirs = PartitionKey("/pk")._get_effective_partition_key_string([value])
    mine = PartitionKeys.parse({"paths": ["/pk"], "kind": "Hash", "version": 2})
    assert mine.epk(key_text([value])) == theirs


@settings(deadline=None)
@given(st.lists(st.text(), min_size=1, max_size=3))
def test_hierarchical_keys_hash_as_the_sdk_hashes_them(values):
    theirs = PartitionKey(["/a", "/b", "/c"])._get_effective_partition_key_string(values)
    mine = PartitionKeys.parse({"paths": ["/a", "/b", "/c"], "kind": "MultiHash", "version": 2})
    assert mine.epk(key_text(values)) == theirs


@pytest.fixture
async def tree(new_container):
    container = await new_container(path=["/a", "/b", "/c"])
    for a in ("1", "2"):
        for b in ("1", "2"):
            for c in ("1", "2"):
                await container.create_item({"id": a + b + c, "a": a, "b": b, "c": c})
    return container


async def ids(pages):
    return sorted([row["id"] async for row in pages])


@in_process
async def test_a_prefix_of_a_hierarchical_key_selects_a_subtree(tree):
    text = "SELECT * FROM c"
    assert await ids(tree.query_items(text, partition_key=["1", "2", "1"])) == ["121"]
    assert await ids(tree.query_items(text, partition_key=["1", "2"])) == ["121", "122"]
    subtree = ["211", "212", "221", "222"]
    assert await ids(tree.query_items(text, partition_key=["2"])) == subtree
    assert len(await ids(tree.query_items(text))) == 8


@in_process
async def test_a_point_needs_the_full_key(tree):
    assert (await tree.read_item("111", ["1", "1", "1"]))["c"] == "1"
    with pytest.raises((exceptions.CosmosHttpResponseError, ValueError)):
        await tree.read_item("111", ["1", "1"])


@in_process
async def test_everything_under_a_key_can_be_deleted_at_once(container):
    for pk in ("x", "y"):
        for n in range(3):
            await container.create_item({"id": str(n), "pk": pk})
    await container.delete_all_items_by_partition_key("x")
    assert await ids(container.query_items("SELECT * FROM c")) == ["0", "1", "2"]
    assert await ids(container.query_items("SELECT * FROM c", partition_key="x")) == []


@in_process
async def test_an_item_without_a_key_is_found_under_none(container):
    await container.create_item({"id": "a"})
    assert (await container.read_item("a", NonePartitionKeyValue))["id"] == "a"


@in_process
async def test_feed_ranges_cover_the_container(container):
    for n in range(10):
        await container.create_item({"id": str(n), "pk": str(n)})
    ranges = [found async for found in container.read_feed_ranges()]
    found = []
    for feed_range in ranges:
        found += await ids(container.query_items("SELECT * FROM c", feed_range=feed_range))
    assert sorted(found) == [str(n) for n in range(10)]
    one = await container.feed_range_from_partition_key("3")
    assert await ids(container.query_items("SELECT * FROM c", feed_range=one)) == ["3"]


@in_process
async def test_many_items_are_read_at_once(container):
    for n in range(5):
        await container.create_item({"id": str(n), "pk": str(n)})
    found = await container.read_items([(str(n), str(n)) for n in (4, 2, 7)])
    assert sorted(row["id"] for row in found) == ["2", "4"]


@in_process
async def test_a_container_with_much_throughput_has_several_ranges(new_container, emulator):
    container = await new_container(offer_throughput=30_000)
    for n in range(40):
        await container.create_item({"id": str(n), "pk": f"key {n}"})
        assert (await container.read_item(str(n), f"key {n}"))["id"] == str(n)
    ranges = [found async for found in container.read_feed_ranges()]
    assert len(ranges) == 5
    parts = [
        await ids(container.query_items("SELECT * FROM c", feed_range=found)) for found in ranges
    ]
    assert all(parts)
    assert sorted(row for part in parts for row in part) == sorted(str(n) for n in range(40))
    changes = [row["id"] async for row in container.query_items_change_feed(start_time="Beginning")]
    assert sorted(changes) == sorted(str(n) for n in range(40))
    found = await container.read_items([(str(n), f"key {n}") for n in range(40)])
    assert len(found) == 40
