"""Queries as the SDK sees them: what the container's definition adds."""

import json

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from cosmos_emulator import Emulator


@pytest.fixture
def database():
    emulator = Emulator()
    client = CosmosClient(emulator.endpoint, emulator.key, transport=emulator.transport())
    yield client.create_database("db")
    emulator.close()


def test_a_syntax_error_is_400_and_says_where(database):
    container = database.create_container("c", PartitionKey("/pk"))
    with pytest.raises(CosmosHttpResponseError) as caught:
        list(container.query_items("SELECT * FORM c", partition_key="p"))
    assert caught.value.status_code == 400
    message = json.loads(caught.value.http_error_message)["message"]
    details = message.removeprefix("Message: ").split("\r\n")[0]
    (error,) = json.loads(details)["errors"]
    assert error["location"] == {"start": 9, "end": 13}
    assert error["code"] == "SC1001"


def test_several_sort_keys_need_a_composite_index(database):
    text = "SELECT * FROM c ORDER BY c.a, c.b"
    plain = database.create_container("plain", PartitionKey("/pk"))
    with pytest.raises(CosmosHttpResponseError, match="composite index"):
        list(plain.query_items(text, partition_key="p"))
    columns = [{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "ascending"}]
    indexed = database.create_container(
        "indexed", PartitionKey("/pk"), indexing_policy={"compositeIndexes": [columns]}
    )
    indexed.create_item({"id": "1", "pk": "p", "a": 1, "b": 2})
    assert len(list(indexed.query_items(text, partition_key="p"))) == 1


def test_computed_properties_of_the_container(database):
    container = database.create_container(
        "c",
        PartitionKey("/pk"),
        computed_properties=[{"name": "lower", "query": "SELECT VALUE LOWER(c.name) FROM c"}],
    )
    container.create_item({"id": "1", "pk": "p", "name": "ADA"})
    text = "SELECT VALUE c.lower FROM c WHERE c.lower = 'ada'"
    assert list(container.query_items(text, partition_key="p")) == ["ada"]
