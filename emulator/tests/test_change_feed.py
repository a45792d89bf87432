"""The change feed: every change once, in order, from where the client left off."""

import pytest

pytestmark = pytest.mark.parametrize("way", ["in process"], indirect=True)


async def put(container, *ids, pk="x", **more):
    for item_id in ids:
        await container.upsert_item({"id": item_id, "pk": pk, **more})


async def changes(container, **options):
    return [row["id"] async for row in container.query_items_change_feed(**options)]


async def test_from_the_beginning_each_item_comes_once_in_the_order_of_its_last_write(container):
    await put(container, "a", "b", "c")
    await put(container, "a", n=2)
    assert await changes(container, start_time="Beginning") == ["b", "c", "a"]


async def test_a_deleted_item_is_not_in_the_feed(container):
    await put(container, "a", "b")
    await container.delete_item("a", "x")
    assert await changes(container, start_time="Beginning") == ["b"]


async def test_from_now_only_what_comes_later(container):
    await put(container, "a")
    feed = container.query_items_change_feed(start_time="Now")
    assert [row async for row in feed] == []
    token = container.client_connection.last_response_headers["etag"]
    await put(container, "b")
    assert await changes(container, continuation=token) == ["b"]


async def test_a_partition_has_a_feed_of_its_own(container):
    await put(container, "a", "b")
    await put(container, "c", pk="y")
    assert await changes(container, start_time="Beginning", partition_key="y") == ["c"]


async def test_a_feed_goes_on_page_by_page_from_where_it_was_left(container):
    await put(container, *"abcde")
    feed = container.query_items_change_feed(start_time="Beginning", max_item_count=2)
    pages = feed.by_page()
    first = [row["id"] async for row in await pages.__anext__()]
    token = container.client_connection.last_response_headers["etag"]
    assert first == ["a", "b"]
    rest = await changes(container, continuation=token, max_item_count=2)
    assert rest == ["c", "d", "e"]


async def test_a_page_may_end_within_a_batch(container):
    batch = [("create", ({"id": item_id, "pk": "x"},)) for item_id in "abc"]
    await container.execute_item_batch(batch, partition_key="x")
    assert await changes(container, start_time="Beginning", max_item_count=1) == ["a", "b", "c"]


async def test_an_expired_item_is_not_in_the_feed(new_container, emulator):
    container = await new_container(default_ttl=5)
    await put(container, "a")
    emulator.clock.advance(6)
    await put(container, "b")
    assert await changes(container, start_time="Beginning") == ["b"]
