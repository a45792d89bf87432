"""The change feed in the mode "all versions and deletes"."""

import pytest
from azure.cosmos import PartitionKey, exceptions

MODE = "AllVersionsAndDeletes"

pytestmark = pytest.mark.parametrize("sync_client", ["in process"], indirect=True)


@pytest.fixture
def container(sync_client):
    return sync_client.create_database("db").create_container(
        "c",
        partition_key=PartitionKey("/pk"),
        default_ttl=-1,
        change_feed_policy={"retentionDuration": 10},
    )


def item(item_id, key="x", **more):
    return {"id": item_id, "pk": key, **more}


def changes(container, **options):
    found = list(container.query_items_change_feed(mode=MODE, **options))
    return found, container.client_connection.last_response_headers["etag"]


def kinds(found):
    return [change["metadata"]["operationType"] for change in found]


def test_it_tells_of_every_version_and_of_deletes_in_order(container):
    nothing, token = changes(container)
    assert nothing == []
    container.create_item(item("a", n=1))
    container.upsert_item(item("a", n=2))
    container.patch_item("a", "x", [{"op": "set", "path": "/n", "value": 3}])
    container.delete_item("a", "x")
    container.create_item(item("a", n=4))
    found, token = changes(container, continuation=token)
    assert kinds(found) == ["create", "replace", "replace", "delete", "create"]
    assert [change["current"].get("n") for change in found] == [1, 2, 3, None, 4]
    deleted = found[3]
    assert deleted["previous"]["n"] == 3
    assert deleted["metadata"]["id"] == "a"
    assert deleted["metadata"]["partitionKey"] == {"pk": "x"}
    assert deleted["metadata"]["timeToLiveExpired"] is False
    lsns = [change["metadata"]["lsn"] for change in found]
    assert lsns == sorted(set(lsns))
    assert deleted["metadata"]["previousImageLSN"] == lsns[2]
    assert changes(container, continuation=token)[0] == []


def test_it_comes_in_pages_and_by_partition(container):
    _, token = changes(container)
    for n in range(7):
        container.create_item(item(str(n), key=f"key {n % 2}"))
    pages = container.query_items_change_feed(
        mode=MODE, continuation=token, max_item_count=3
    ).by_page()
    assert [len(list(page)) for page in pages] == [3, 3, 1]
    _, here = changes(container, partition_key="key 1")
    container.create_item(item("8", key="key 0"))
    container.create_item(item("9", key="key 1"))
    found, _ = changes(container, partition_key="key 1", continuation=here)
    assert [change["current"]["id"] for change in found] == ["9"]


def test_what_a_failed_batch_did_is_not_told(container):
    _, token = changes(container)
    with pytest.raises(exceptions.CosmosBatchOperationError):
        container.execute_item_batch(
            [("create", (item("a"),)), ("create", (item("a"),))], partition_key="x"
        )
    assert changes(container, continuation=token)[0] == []


def test_items_that_expire_are_told_as_such(emulator, container):
    _, token = changes(container)
    container.create_item(item("a", ttl=5))
    emulator.clock.advance(6)
    found, _ = changes(container, continuation=token)
    assert kinds(found) == ["create", "delete"]
    assert found[1]["metadata"]["timeToLiveExpired"] is True


def test_a_continuation_older_than_the_retention_is_refused(emulator, container):
    _, token = changes(container)
    container.create_item(item("a"))
    emulator.clock.advance(9 * 60)
    found, here = changes(container, continuation=token)
    assert kinds(found) == ["create"]
    emulator.clock.advance(2 * 60)
    with pytest.raises(exceptions.CosmosHttpResponseError, match="retention period"):
        changes(container, continuation=token)
    container.create_item(item("b"))
    assert kinds(changes(container, continuation=here)[0]) == ["create"]


def test_a_container_without_a_policy_has_no_such_feed(sync_client):
    database = sync_client.create_database("other")
    container = database.create_container("c", partition_key=PartitionKey("/pk"))
    with pytest.raises(exceptions.CosmosHttpResponseError, match="must be enabled"):
        changes(container)
    with pytest.raises(exceptions.CosmosHttpResponseError, match="retention"):
        database.create_container(
            "d", partition_key=PartitionKey("/pk"), change_feed_policy={"retentionDuration": -1}
        )
