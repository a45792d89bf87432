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
    # Indexed are the path and the value of id and seq, and the time.
    assert charge.value == pytest.approx(create + 5 * charges.TERM, abs=0.01)
    await little.read_item("a", "x", response_hook=charge)
    # The stored item is a little larger than the one sent: it has the server's own properties.
    assert read <= charge.value <= read * 1.1


async def test_between_the_published_sizes_the_charge_lies_between(way):
    assert charges.read(3 * 1024) == pytest.approx((1.04 + 1.14) / 2)
    assert charges.write(3 * 1024, 0) == pytest.approx((6.29 + 6.67) / 2)


async def test_a_replace_pays_for_the_terms_that_change(little, charge):
    await little.create_item(sized(1), response_hook=charge)
    create = charge.value
    await little.replace_item("a", sized(1), response_hook=charge)
    unchanged = charge.value
    assert unchanged == pytest.approx(2 * (create - 4 * charges.TERM), rel=0.05)
    changes = [{"op": "set", "path": "/seq", "value": 2}]
    await little.patch_item("a", "x", changes, response_hook=charge)
    assert charge.value == pytest.approx(unchanged + 2 * charges.TERM, rel=0.05)
    await little.delete_item("a", "x", response_hook=charge)
    assert charge.value == pytest.approx(create, rel=0.1)


@pytest.mark.parametrize(
    ("policy", "terms"),
    [
        ({"includedPaths": [{"path": "/*"}]}, 17),
        ({"includedPaths": [{"path": "/seq/?"}], "excludedPaths": [{"path": "/*"}]}, 5),
        ({"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/deep/*"}]}, 12),
        ({"includedPaths": [{"path": "/deep/*"}], "excludedPaths": [{"path": "/*"}]}, 8),
        (
            {
                "includedPaths": [{"path": "/*"}, {"path": "/deep/a/?"}],
                "excludedPaths": [{"path": "/deep/*"}],
            },
            14,
        ),
        ({"includedPaths": [{"path": "/list/[]/?"}], "excludedPaths": [{"path": "/*"}]}, 7),
        ({"indexingMode": "none"}, 0),
    ],
)
async def test_each_path_and_each_value_in_the_index_is_a_term(database, charge, policy, terms):
    container = await database.create_container(
        "c", partition_key=PartitionKey("/pk"), indexing_policy=policy
    )
    body = {"id": "a", "pk": "x", "seq": 1, "deep": {"a": 1, "b": 2}, "list": [1, 2]}
    await container.create_item(body, response_hook=charge)
    assert charge.value == pytest.approx(charges.write(100, terms), abs=0.01)


async def test_a_query_that_finds_nothing_costs_little_and_a_page_more(container, charge):
    def query():
        return container.query_items("SELECT * FROM c", partition_key="x", response_hook=charge)

    assert [row async for row in query()] == []
    assert charge.value == pytest.approx(2.8)
    for n in range(5):
        await container.create_item(sized(1, str(n)))
    assert len([row async for row in query()]) == 5
    assert 2.8 < charge.value < 8


async def test_counting_what_an_array_contains_reads_no_document(database, charge):
    items = await database.create_container("words", partition_key=PartitionKey("/pk"))
    for number in range(30):
        words = ["common", f"rare{number}"]
        await items.create_item({"id": f"{number}", "pk": "x", "words": words, "text": "t" * 5_000})
    query = "SELECT VALUE COUNT(1) FROM c WHERE ARRAY_CONTAINS(c.words, @word)"
    for word, count in (("common", 30), ("rare7", 1), ("none", 0)):
        parameters = [{"name": "@word", "value": word}]
        found = items.query_items(
            query, parameters=parameters, partition_key="x", response_hook=charge
        )
        assert [each async for each in found] == [count]
        assert charge.value < 3
