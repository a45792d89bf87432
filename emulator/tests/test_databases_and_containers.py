"""Databases, containers, throughput, users: every level above items."""

import pytest
from azure.cosmos import CosmosClient, PartitionKey, ThroughputProperties, exceptions
from azure.cosmos.aio import CosmosClient as AsyncCosmosClient

ETAG_EXCLUDED = {"path": '/"_etag"/?'}


async def test_databases_are_created_listed_and_deleted(client):
    await client.create_database("a")
    await client.create_database_if_not_exists("a")
    await client.create_database("b")
    with pytest.raises(exceptions.CosmosResourceExistsError):
        await client.create_database("a")
    assert [row["id"] async for row in client.list_databases()] == ["a", "b"]
    found = client.query_databases(
        "SELECT * FROM d WHERE d.id = @id", parameters=[{"name": "@id", "value": "b"}]
    )
    assert [row["id"] async for row in found] == ["b"]
    await client.delete_database("a")
    with pytest.raises(exceptions.CosmosResourceNotFoundError):
        await client.get_database_client("a").read()


async def test_a_container_gets_the_services_defaults(database):
    container = await database.create_container("c", partition_key=PartitionKey("/pk"))
    found = await container.read()
    assert found["indexingPolicy"] == {
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [{"path": "/*"}],
        "excludedPaths": [ETAG_EXCLUDED],
    }
    assert found["partitionKey"] == {"paths": ["/pk"], "kind": "Hash", "version": 2}
    assert "defaultTtl" not in found
    assert found["_self"].startswith("dbs/")


async def test_a_container_keeps_its_own_indexing_policy(database):
    policy = {
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [{"path": "/seq/?"}],
        "excludedPaths": [{"path": "/*"}],
        "compositeIndexes": [
            [{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]
        ],
    }
    container = await database.create_container(
        "c", partition_key=PartitionKey("/pk"), indexing_policy=policy
    )
    found = (await container.read())["indexingPolicy"]
    assert found == {**policy, "excludedPaths": [{"path": "/*"}, ETAG_EXCLUDED]}


@pytest.mark.parametrize(
    "bad",
    [
        {"indexing_policy": {"indexingMode": "sometimes"}},
        {"indexing_policy": {"includedPaths": [{"path": "/a"}]}},
        {"indexing_policy": {"includedPaths": [{"path": "/a/?"}]}},
        {"default_ttl": 0},
        {"unique_key_policy": {"uniqueKeys": [{"paths": []}]}},
        {"offer_throughput": 1},
        {"partition_key": PartitionKey(["/a", "/b", "/c", "/d"])},
        {"partition_key": {"paths": ["/a"], "kind": "Sorted"}},
    ],
)
@pytest.mark.parametrize("way", ["in process"], indirect=True)
async def test_a_definition_that_cannot_be_is_refused(database, bad):
    options = {"partition_key": PartitionKey("/pk"), **bad}
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        await database.create_container("c", **options)
    assert caught.value.status_code == 400
    assert [row async for row in database.list_containers()] == []


async def test_a_container_can_be_changed_but_not_its_partition_key(database):
    container = await database.create_container("c", partition_key=PartitionKey("/pk"))
    await container.create_item({"id": "a", "pk": "x"})
    await database.replace_container(container, PartitionKey("/pk"), default_ttl=100)
    assert (await container.read())["defaultTtl"] == 100
    assert await container.read_item("a", "x")
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        await database.replace_container(container, PartitionKey("/other"))
    assert caught.value.status_code == 400


async def test_a_container_made_anew_is_empty_and_another(database):
    first = await database.create_container("c", partition_key=PartitionKey("/pk"))
    old = await first.create_item({"id": "a", "pk": "x"})
    await database.delete_container("c")
    second = await database.create_container("c", partition_key=PartitionKey("/pk"))
    assert [row async for row in second.query_items("SELECT * FROM c")] == []
    new = await second.create_item({"id": "a", "pk": "x"})
    assert new["_etag"] != old["_etag"]


async def test_throughput_can_be_read_and_changed(database):
    container = await database.create_container(
        "c", partition_key=PartitionKey("/pk"), offer_throughput=1000
    )
    assert (await container.get_throughput()).offer_throughput == 1000
    await container.replace_throughput(500)
    assert (await container.get_throughput()).offer_throughput == 500
    scaled = await database.create_container(
        "d",
        partition_key=PartitionKey("/pk"),
        offer_throughput=ThroughputProperties(auto_scale_max_throughput=4000),
    )
    assert (await scaled.get_throughput()).auto_scale_max_throughput == 4000


def test_containers_of_a_database_with_throughput_have_none_of_their_own(sync_client):
    database = sync_client.create_database("shared", offer_throughput=400)
    database.create_container("c", partition_key=PartitionKey("/pk"))
    assert database.get_throughput().offer_throughput == 400
    offers = list(sync_client.client_connection.QueryOffers("SELECT * FROM root"))
    assert [offer["resource"] for offer in offers] == [database.read()["_self"]]


async def test_ids_with_spaces_and_other_scripts_work(client):
    database = await client.create_database("db ä 中 % x")
    container = await database.create_container("c 😀 +", partition_key=PartitionKey("/pk"))
    await container.create_item({"id": "ä b+%25&=", "pk": "x"})
    assert (await container.read_item("ä b+%25&=", "x"))["id"] == "ä b+%25&="


def test_a_permission_lets_its_holder_do_what_it_says(emulator):
    with CosmosClient(emulator.endpoint, emulator.key, transport=emulator.transport()) as client:
        database = client.create_database("db")
        container = database.create_container("c", partition_key=PartitionKey("/pk"))
        container.create_item({"id": "a", "pk": "x"})
        user = database.create_user({"id": "u"})
        link = "dbs/db/colls/c"
        read = {"id": "p", "permissionMode": "read", "resource": link}
        token = user.create_permission(read).properties["_token"]
    with CosmosClient(
        emulator.endpoint, {link: token}, transport=emulator.transport()
    ) as restricted:
        container = restricted.get_database_client("db").get_container_client("c")
        assert container.read_item("a", "x")
        with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
            container.create_item({"id": "b", "pk": "x"})
    assert caught.value.status_code == 403


async def test_a_wrong_key_is_401(emulator):
    wrong = "d3Jvbmc=" + emulator.key[8:]
    client = AsyncCosmosClient(emulator.endpoint, wrong, transport=emulator.async_transport())
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        await client.create_database("db")
    assert caught.value.status_code == 401
    assert {record.status for record in emulator.requests} == {401}


class Credential:
    """An Entra ID credential with an empty token."""

    async def get_token(self, *scopes, **kwargs):
        from azure.core.credentials import AccessToken

        return AccessToken("e30.e30.c2ln", 2**31)

    async def close(self):
        pass


async def test_an_entra_token_reads_and_writes_items_but_creates_no_containers(emulator):
    async with AsyncCosmosClient(
        emulator.endpoint, emulator.key, transport=emulator.async_transport()
    ) as client:
        database = await client.create_database("db")
        await database.create_container("c", partition_key=PartitionKey("/pk"))
    async with AsyncCosmosClient(
        emulator.endpoint, Credential(), transport=emulator.async_transport()
    ) as client:
        database = client.get_database_client("db")
        await database.get_container_client("c").create_item({"id": "a", "pk": "x"})
        with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
            await database.create_container("d", partition_key=PartitionKey("/pk"))
    assert caught.value.status_code == 403
