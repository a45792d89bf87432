"""Items that expire, and values that must be unique."""

import pytest
from azure.cosmos import exceptions

pytestmark = pytest.mark.parametrize("way", ["in process"], indirect=True)


async def exists(container, item_id="a"):
    try:
        await container.read_item(item_id, "x")
    except exceptions.CosmosResourceNotFoundError:
        found = False
    else:
        found = True
    rows = [row async for row in container.query_items("SELECT * FROM c", partition_key="x")]
    assert (item_id in [row["id"] for row in rows]) == found
    return found


@pytest.mark.parametrize(
    ("default", "own", "lives"),
    [
        (None, 500, True),
        (-1, None, True),
        (-1, 500, False),
        (500, None, False),
        (500, 6000, True),
        (500, -1, True),
        (6000, 500, False),
    ],
)
async def test_an_item_lives_as_long_as_its_container_and_itself_say(
    new_container, emulator, default, own, lives
):
    container = await new_container(default_ttl=default)
    await container.create_item({"id": "a", "pk": "x", **({"ttl": own} if own else {})})
    emulator.clock.advance(400)
    assert await exists(container)
    emulator.clock.advance(200)
    assert await exists(container) == lives


async def test_a_write_starts_the_time_anew(new_container, emulator):
    container = await new_container(default_ttl=500)
    await container.create_item({"id": "a", "pk": "x"})
    emulator.clock.advance(400)
    await container.upsert_item({"id": "a", "pk": "x"})
    emulator.clock.advance(400)
    assert await exists(container)


async def test_an_expired_id_is_free_for_every_kind_of_write(new_container, emulator):
    container = await new_container(default_ttl=500)
    first = await container.create_item({"id": "a", "pk": "x"})
    emulator.clock.advance(600)
    for gone in (
        container.replace_item("a", {"id": "a", "pk": "x"}),
        container.patch_item("a", "x", [{"op": "set", "path": "/n", "value": 1}]),
        container.delete_item("a", "x"),
    ):
        with pytest.raises(exceptions.CosmosResourceNotFoundError):
            await gone
    second = await container.create_item({"id": "a", "pk": "x"})
    assert second["_rid"] != first["_rid"]
    emulator.clock.advance(600)
    await container.upsert_item({"id": "a", "pk": "x"})
    assert emulator.requests[-1].status == 201


async def test_a_default_set_later_counts_for_items_that_are_there(
    new_container, emulator, database
):
    container = await new_container()
    await container.create_item({"id": "a", "pk": "x"})
    emulator.clock.advance(1000)
    key = (await container.read())["partitionKey"]
    await database.replace_container(container, partition_key=key, default_ttl=500)
    assert not await exists(container)


@pytest.fixture
async def unique(new_container):
    keys = {"uniqueKeys": [{"paths": ["/email"]}, {"paths": ["/first", "/last/name"]}]}
    return await new_container(unique_key_policy=keys)


def person(item_id, email, first="f", last="l", pk="x"):
    return {"id": item_id, "pk": pk, "email": email, "first": first, "last": {"name": last}}


async def test_a_value_is_unique_within_its_partition(unique):
    await unique.create_item(person("a", "mail", last="1"))
    with pytest.raises(exceptions.CosmosResourceExistsError):
        await unique.create_item(person("b", "mail", last="2"))
    with pytest.raises(exceptions.CosmosResourceExistsError):
        await unique.create_item(person("b", "other", last="1"))
    await unique.create_item(person("b", "mail", last="1", pk="y"))


async def test_values_are_freed_by_replace_and_delete(unique):
    await unique.create_item(person("a", "mail", last="1"))
    await unique.create_item(person("b", "other", last="2"))
    with pytest.raises(exceptions.CosmosResourceExistsError):
        await unique.upsert_item(person("b", "mail", last="2"))
    await unique.replace_item("a", person("a", "new", last="1"))
    await unique.upsert_item(person("b", "mail", last="2"))
    await unique.delete_item("b", "x")
    await unique.create_item(person("c", "mail", last="2"))


async def test_a_missing_value_counts_as_null(unique):
    await unique.create_item({"id": "a", "pk": "x"})
    with pytest.raises(exceptions.CosmosResourceExistsError):
        await unique.create_item({"id": "b", "pk": "x"})
