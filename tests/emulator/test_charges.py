"""Request units: the published figures, and what indexing adds to them."""

import pytest
from azure.cosmos import PartitionKey

from cosmos_emulator import charges

pytestmark = pytest.mark.parametrize("way", ["in process"], indirect=True)

LITTLE = {
    "includedPaths": [{"path": "/seq/?"}],
    "excludedPaths": [{"path": "/*"}],
}


def sized(kilobytes, item_id="a"):
    """An item of this many KB as the client sends it."""
    body = {"id": item_id, "pk": "x", "seq": 1, "text": ""}
    spare = kilobytes * 1024 - len('{"id":"a","pk":"x","seq":1,"text":""}')
    return {**body, "text": "t" * spare}


@pytest.fixture
async def little(database):
    return await database.create_container(
        "little", partition_key=PartitionKey("/pk"), indexing_policy=LITTLE
    )


@pytest.mark.parametrize(
    ("kilobytes", "read", "create"),
    [(1, 1.00, 4.95), (4, 1.14, 6.67), (16, 1.67, 9.52), (64, 4.76, 22.67), (1024, 145.9, 625.0)],
)
async def test_points_cost_what_is_published(little, charge, kilobytes, read, create):
    await little.create_item(sized(kilobytes), response_hook=charge)
    assert charge.value == pytest.approx(create + 0.2, abs=0.01)  # one indexed path
    await little.read_item("a", "x", response_hook=charge)
    # The stored item is a little larger than the one sent: it has the server's own properties.
    assert read <= charge.value <= read * 1.1


async def test_between_the_published_sizes_the_charge_lies_between(way):
    assert charges.read(3 * 1024) == pytest.approx((1.04 + 1.14) / 2)
    assert charges.write(3 * 1024, 0) == pytest.approx((6.29 + 6.67) / 2)


async def test_a_replace_costs_a_delete_and_a_create(little, charge):
    await little.create_item(sized(1), response_hook=charge)
    create = charge.value
    await little.replace_item("a", sized(1), response_hook=charge)
    replace = charge.value
    assert replace == pytest.approx(2 * create, rel=0.1)
    await little.patch_item(
        "a", "x", [{"op": "set", "path": "/seq", "value": 2}], response_hook=charge
    )
    assert charge.value == pytest.approx(replace + 0.4, rel=0.05)
    await little.delete_item("a", "x", response_hook=charge)
    assert charge.value == pytest.approx(create, rel=0.1)


@pytest.mark.parametrize(
    ("policy", "terms"),
    [
        ({"includedPaths": [{"path": "/*"}]}, 7),
        ({"includedPaths": [{"path": "/seq/?"}], "excludedPaths": [{"path": "/*"}]}, 1),
        ({"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/deep/*"}]}, 5),
        ({"includedPaths": [{"path": "/deep/*"}], "excludedPaths": [{"path": "/*"}]}, 2),
        (
            {
                "includedPaths": [{"path": "/*"}, {"path": "/deep/a/?"}],
                "excludedPaths": [{"path": "/deep/*"}],
            },
            6,
        ),
        ({"includedPaths": [{"path": "/list/[]/?"}], "excludedPaths": [{"path": "/*"}]}, 2),
        ({"indexingMode": "none"}, 0),
    ],
)
async def test_each_indexed_value_adds_a_fifth_of_a_unit(database, charge, policy, terms):
    container = await database.create_container(
        "c", partition_key=PartitionKey("/pk"), indexing_policy=policy
    )
    body = {"id": "a", "pk": "x", "seq": 1, "deep": {"a": 1, "b": 2}, "list": [1, 2]}
    await container.create_item(body, response_hook=charge)
    assert charge.value == pytest.approx(4.95 + 0.2 * terms)


async def test_a_query_that_finds_nothing_costs_little_and_a_page_more(container, charge):
    def query():
        return container.query_items("SELECT * FROM c", partition_key="x", response_hook=charge)

    assert [row async for row in query()] == []
    assert charge.value == pytest.approx(2.8)
    for n in range(5):
        await container.create_item(sized(1, str(n)))
    assert len([row async for row in query()]) == 5
    assert 2.8 < charge.value < 8
