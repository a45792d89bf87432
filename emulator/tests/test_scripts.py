"""Scripts, which are kept and never executed; and what a container tells of itself."""

import pytest
from azure.cosmos import exceptions

pytestmark = pytest.mark.parametrize("sync_client", ["in process"], indirect=True)


def test_a_stored_procedure_is_not_executed(sync_container):
    sync_container.scripts.create_stored_procedure({"id": "p", "body": "function () {}"})
    with pytest.raises(exceptions.CosmosHttpResponseError, match="not executed") as refused:
        sync_container.scripts.execute_stored_procedure("p", partition_key="x")
    assert refused.value.status_code == 501


def test_a_write_that_names_a_trigger_is_refused(sync_container):
    sync_container.scripts.create_trigger(
        {"id": "t", "body": "function () {}", "triggerType": "Pre", "triggerOperation": "All"}
    )
    with pytest.raises(exceptions.CosmosHttpResponseError, match="not run") as refused:
        sync_container.create_item({"id": "a", "pk": "x"}, pre_trigger_include="t")
    assert refused.value.status_code == 501
    with pytest.raises(exceptions.CosmosHttpResponseError, match="not run"):
        sync_container.create_item({"id": "a", "pk": "x"}, post_trigger_include="t")
    assert list(sync_container.read_all_items()) == []


def test_a_function_of_the_user_is_refused(sync_container):
    sync_container.scripts.create_user_defined_function({"id": "f", "body": "function () {}"})
    with pytest.raises(exceptions.CosmosHttpResponseError, match="not supported"):
        list(sync_container.query_items("SELECT VALUE udf.f(c) FROM c", partition_key="x"))


def test_the_size_of_a_container_and_its_limits_are_told(sync_container):
    seen = {}
    sync_container.read(
        populate_quota_info=True, response_hook=lambda headers, _: seen.update(headers)
    )
    assert "collectionSize=10485760" in seen["x-ms-resource-quota"]
    assert "documentsCount=0" in seen["x-ms-resource-usage"]


def test_a_query_tells_which_indexes_it_used(sync_container):
    sync_container.create_item({"id": "a", "pk": "x", "n": 1})
    found = sync_container.query_items(
        "SELECT * FROM c WHERE c.n > 0 AND c._etag != ''",
        partition_key="x",
        populate_index_metrics=True,
    )
    assert len(list(found)) == 1
    metrics = sync_container.client_connection.last_response_headers[
        "x-ms-cosmos-index-utilization"
    ]
    assert [each["IndexSpec"] for each in metrics["UtilizedSingleIndexes"]] == ["/pk/?", "/n/?"]
    assert [each["IndexSpec"] for each in metrics["PotentialSingleIndexes"]] == ["/_etag/?"]


def test_documents_are_numbered(sync_container):
    for name in "ab":
        sync_container.create_item({"id": name, "pk": "x"})
    found = sync_container.query_items("SELECT VALUE DOCUMENTID(c) FROM c", partition_key="x")
    assert list(found) == [1, 2]
