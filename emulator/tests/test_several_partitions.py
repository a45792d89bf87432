"""Containers with several physical partitions: the SDK merges their answers, as on Azure."""

import json
import random

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.aio import CosmosClient as AsyncCosmosClient
from azure.cosmos.exceptions import CosmosHttpResponseError

from cosmos_emulator import Emulator
from cosmos_emulator.ranges import split

from .raw import create, make_container, send, signed

PARTITIONS = 5
POLICY = {
    "compositeIndexes": [
        [{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]
    ]
}
QUERIES = [
    "SELECT * FROM c",
    "SELECT c.id, c.a FROM c WHERE c.a > 3",
    "SELECT * FROM c ORDER BY c.n",
    "SELECT c.id FROM c WHERE c.a IN (1, 2, 3) ORDER BY c.n DESC",
    "SELECT VALUE c.n FROM c ORDER BY c.n",
    "SELECT VALUE c.sometimes FROM c ORDER BY c.n",
    "SELECT TOP 7 * FROM c ORDER BY c.n",
    "SELECT TOP @seven VALUE c.n FROM c WHERE c.n > @seven ORDER BY c.n DESC",
    "SELECT c.a, c.b, c.n FROM c WHERE c.a < 4 ORDER BY c.a, c.b DESC",
    "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 3 LIMIT 8",
    "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 300 LIMIT 8",
    "SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.n < 20 ORDER BY c.n",
    "SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a",
    "SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a DESC OFFSET 1 LIMIT 3",
    "SELECT DISTINCT c.a FROM c",
    "SELECT DISTINCT VALUE c.inner FROM c",
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT VALUE COUNT(c.sometimes) FROM c",
    "SELECT VALUE COUNT(1) FROM c WHERE c.a = 'nothing'",
    "SELECT VALUE SUM(c.n) FROM c",
    "SELECT VALUE AVG(c.n) FROM c WHERE c.a < 4",
    "SELECT VALUE MIN(c.n) FROM c WHERE c.a = 2",
    "SELECT VALUE MAX(c.n * 2) FROM c",
    "SELECT VALUE MAX(c.sometimes) FROM c WHERE c.n < 3",
    "SELECT VALUE COUNT(1) FROM (SELECT VALUE t FROM c JOIN t IN c.tags)",
    "SELECT VALUE MAX(c.missing) FROM c",
    "SELECT VALUE SUM(c.n) FROM c WHERE c.a > 2 ORDER BY c.n",
    "SELECT VALUE c.shout FROM c ORDER BY c.shout",
]
PARAMETERS = [{"name": "@seven", "value": 7}]


def items():
    numbers = list(range(60))
    random.Random(1).shuffle(numbers)
    for n in numbers:
        item = {"id": f"item {n}", "pk": f"key {n % 17}", "n": n, "a": n % 6, "b": n // 6}
        item |= {"tags": [f"{n}x", f"{n}y"], "inner": {"a": n % 2, "b": [n % 3]}}
        yield item | ({"sometimes": n} if n % 4 == 0 else {}), f"name {n:02}"


@pytest.fixture(scope="module")
def both():
    """The same items in one partition and in several."""
    emulators = Emulator(), Emulator(partitions=PARTITIONS)
    containers = []
    for emulator in emulators:
        client = CosmosClient(emulator.endpoint, emulator.key, transport=emulator.transport())
        container = client.create_database("db").create_container(
            "c",
            PartitionKey("/pk"),
            indexing_policy=POLICY,
            computed_properties=[{"name": "shout", "query": "SELECT VALUE UPPER(c.name) FROM c"}],
        )
        for item, name in items():
            container.create_item({**item, "name": name})
        containers.append(container)
    yield emulators, containers
    for emulator in emulators:
        emulator.close()


def rows(found):
    own = ("_rid", "_self", "_etag", "_ts", "_attachments")
    return [
        {key: value for key, value in row.items() if key not in own}
        if isinstance(row, dict)
        else row
        for row in found
    ]


def same(one, several, text):
    """Equal. Without an ORDER BY, ranges come one after another."""
    if "ORDER BY" not in text:
        one, several = sorted(one, key=json.dumps), sorted(several, key=json.dumps)
    assert several == one


@pytest.mark.parametrize("page", [3, 1000])
@pytest.mark.parametrize("text", QUERIES)
def test_the_answer_is_the_same_as_of_one_partition(both, text, page):
    answers = [
        rows(
            container.query_items(
                text, PARAMETERS, enable_cross_partition_query=True, max_item_count=page
            )
        )
        for container in both[1]
    ]
    same(*answers, text)


@pytest.mark.parametrize("text", QUERIES)
async def test_the_asynchronous_client_merges_alike(both, text):
    answers = []
    for emulator in both[0]:
        async with AsyncCosmosClient(
            emulator.endpoint, emulator.key, transport=emulator.async_transport()
        ) as client:
            container = client.get_database_client("db").get_container_client("c")
            found = container.query_items(text, parameters=PARAMETERS, max_item_count=4)
            answers.append(rows([row async for row in found]))
    same(*answers, text)


def test_results_that_are_only_cut_come_from_any_range(both):
    for text in ("SELECT TOP 5 VALUE c.n FROM c", "SELECT VALUE c.n FROM c OFFSET 2 LIMIT 5"):
        found = list(both[1][1].query_items(text, enable_cross_partition_query=True))
        assert len(set(found)) == 5


def test_each_range_is_asked_by_itself(both):
    (_, emulator), (_, container) = both
    emulator.clear_requests()
    text = "SELECT VALUE c.n FROM c ORDER BY c.n"
    list(container.query_items(text, enable_cross_partition_query=True))
    asked = [(each.operation, each.status, each.substatus) for each in emulator.requests]
    queries = [("query", 400, 1004), ("query plan", 200, 0), *[("query", 200, 0)] * PARTITIONS]
    assert [each for each in asked if each[0] != "list"] == queries


def test_a_plain_query_goes_through_the_ranges_page_by_page(both):
    (_, emulator), (_, container) = both
    emulator.clear_requests()
    text = "SELECT VALUE c.n FROM c WHERE c.n < 30"
    found = container.query_items(text, enable_cross_partition_query=True, max_item_count=4)
    pages = [list(page) for page in found.by_page()]
    assert sorted(n for page in pages for n in page) == list(range(30))
    assert len(pages) > PARTITIONS
    assert {(each.operation, each.status) for each in emulator.requests} == {("query", 200)}


def test_an_invalid_continuation_is_refused(both):
    whole = {"min": "", "max": "FF"}
    tokens = [[], {"range": whole}, {"token": 1, "range": whole}, {"token": "x", "range": whole}]
    tokens += [{"token": None, "range": {"min": "FF", "max": ""}}, 4, None]
    for token in ("9:", "x", *(json.dumps(token) for token in tokens)):
        found = both[1][1].query_items("SELECT * FROM c", enable_cross_partition_query=True)
        with pytest.raises(CosmosHttpResponseError, match="Invalid Continuation Token"):
            next(found.by_page(token))


def test_a_continuation_is_json_and_goes_on_in_the_ranges_that_a_split_made():
    with Emulator(partitions=2) as emulator:
        make_container(emulator)
        for n in range(30):
            create(emulator, {"id": str(n), "pk": str(n)})
        body = json.dumps({"query": "SELECT VALUE c.id FROM c"}).encode()
        found, token, forms = [], None, []
        while token or not found:
            headers = {"x_ms_continuation": token} if token else {}
            request = signed(
                emulator.key,
                "POST",
                "/dbs/db/colls/c/docs",
                body,
                x_ms_documentdb_isquery="True",
                x_ms_documentdb_query_enablecrosspartition="True",
                x_ms_max_item_count="3",
                **headers,
            )
            response = emulator.exchange(request)
            found += json.loads(response.body)["Documents"]
            token = response.headers.get("x-ms-continuation")
            if len(forms) < 2:
                forms.append(type(json.loads(token)))
                emulator.split("c")
        assert forms == [dict, list]
        assert sorted(map(int, found)) == list(range(30))


def test_one_partition_key_needs_no_merging(both):
    (_, emulator), (_, container) = both
    emulator.clear_requests()
    text = "SELECT VALUE c.n FROM c ORDER BY c.n"
    assert list(container.query_items(text, partition_key="key 3")) == [3, 20, 37, 54]
    assert [(each.operation, each.status) for each in emulator.requests] == [("query", 200)]


def test_what_the_sdk_cannot_merge_is_refused(both):
    for text, reason in (
        ("SELECT c.a FROM c GROUP BY c.a", "GroupBy"),
        ("SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a", "VALUE <AggregateFunc>"),
        ("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c)", "DCount"),
        ("SELECT COUNT(1) FROM c", "VALUE <AggregateFunc>"),
    ):
        with pytest.raises(CosmosHttpResponseError, match=reason) as caught:
            list(both[1][1].query_items(text, enable_cross_partition_query=True))
        assert caught.value.status_code == 400


def test_the_closest_vectors_of_all_ranges():
    with Emulator(partitions=3) as emulator:
        client = CosmosClient(emulator.endpoint, emulator.key, transport=emulator.transport())
        container = client.create_database("db").create_container("c", PartitionKey("/id"))
        for n in range(12):
            container.create_item({"id": str(n), "v": [n, 5]})
        text = (
            "SELECT TOP 3 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [4, 5], true, "
            "{'distanceFunction': 'euclidean'})"
        )
        found = list(container.query_items(text, enable_cross_partition_query=True))
        assert found[0] == "4"
        assert set(found) == {"3", "4", "5"}


def test_a_query_across_partitions_must_be_meant(both):
    for container in both[1]:
        with pytest.raises(CosmosHttpResponseError, match="required but disabled"):
            list(container.query_items("SELECT * FROM c WHERE c.n = 1"))
        fixed = container.query_items("SELECT VALUE c.n FROM c WHERE c.pk = 'key 3'")
        assert sorted(fixed) == [3, 20, 37, 54]
        assert list(container.query_items("SELECT VALUE 1")) == [1]


def test_the_refusal_carries_the_plan():
    with Emulator(partitions=2) as emulator:
        make_container(emulator)
        status, body = send(
            emulator,
            "POST",
            "/dbs/db/colls/c/docs",
            {"query": "SELECT VALUE COUNT(1) FROM c"},
            x_ms_documentdb_isquery="true",
            x_ms_documentdb_query_enablecrosspartition="True",
        )
        assert status == 400
        plan = json.loads(body["additionalErrorInfo"])
        assert plan["queryInfo"]["aggregates"] == ["Count"]


def test_ranges_share_the_keys_among_them():
    with Emulator(partitions=4) as emulator:
        make_container(emulator)
        _, body = send(emulator, "GET", "/dbs/db/colls/c/pkranges")
        ranges = body["PartitionKeyRanges"]
        assert [each["id"] for each in ranges] == ["3", "4", "5", "6"]
        bounds = [each["minInclusive"] for each in ranges] + ["FF"]
        assert bounds[0] == ""
        assert [each["maxExclusive"] for each in ranges] == bounds[1:]
        assert bounds == sorted(bounds)


def test_a_range_of_keys_within_a_range_is_both(both):
    (_, emulator), _ = both
    path = "/dbs/db/colls/c/docs"
    query = {"query": "SELECT VALUE c.n FROM c"}
    options = {"x_ms_documentdb_isquery": "true", "x_ms_documentdb_partitionkeyrangeid": "5"}
    _, whole = send(emulator, "POST", path, query, **options)
    assert whole["_count"] > 0
    _, all_keys = send(emulator, "POST", path, query, **options, x_ms_start_epk="")
    assert all_keys["Documents"] == whole["Documents"]
    _, others = send(emulator, "POST", path, query, **options, x_ms_start_epk="3F")
    assert others["_count"] == 0


def test_the_change_feed_of_each_range_has_its_own_items_and_token(both):
    container = both[1][1]
    seen, tokens = [], []
    for found in container.read_feed_ranges():
        seen += [
            row["n"]
            for row in container.query_items_change_feed(feed_range=found, start_time="Beginning")
        ]
        headers = container.client_connection.last_response_headers
        tokens.append(headers["x-ms-session-token"].partition(":")[0])
    assert sorted(seen) == list(range(60))
    assert len(set(tokens)) == PARTITIONS


def test_the_number_stays_with_the_container(tmp_path):
    path = tmp_path / "data.db"
    with Emulator(path, partitions=3) as emulator:
        make_container(emulator)
    with Emulator(path) as emulator:
        make_container(emulator, "another")
        counts = [
            send(emulator, "GET", f"/dbs/db/colls/{name}/pkranges")[1]["_count"]
            for name in ("c", "another")
        ]
    assert counts == [3, 1]


def test_no_partition_is_too_few():
    with pytest.raises(ValueError, match="at least one partition"):
        Emulator(partitions=0)


async def in_a_container(emulator, work):
    async with AsyncCosmosClient(
        emulator.endpoint, emulator.key, transport=emulator.async_transport()
    ) as client:
        database = await client.create_database("db")
        container = await database.create_container("items", PartitionKey("/pk"))
        for n in range(12):
            await container.create_item({"id": str(n), "pk": f"key {n}", "n": n})
        return await work(container)


@pytest.mark.parametrize("partitions", [1, 2, 3])
async def test_a_client_that_knows_the_old_ranges_finds_the_new_ones_after_a_split(partitions):
    async def work(container):
        text = "SELECT VALUE c.n FROM c ORDER BY c.n"
        assert [n async for n in container.query_items(text)] == list(range(12))
        before = [found async for found in container.read_feed_ranges()]
        emulator.split("items")
        emulator.split("items")
        assert [n async for n in container.query_items(text)] == list(range(12))
        after = [found async for found in container.read_feed_ranges()]
        assert (len(before), len(after)) == (partitions, 4 * partitions)

    with Emulator(partitions=partitions) as emulator:
        await in_a_container(emulator, work)


@pytest.mark.parametrize("partitions", [1, 2, 3])
async def test_a_change_feed_goes_on_after_a_split_with_nothing_twice(partitions):
    async def work(container):
        pages = container.query_items_change_feed(
            start_time="Beginning", max_item_count=2
        ).by_page()
        found = [row["id"] async for row in await anext(pages)]
        emulator.split("items")
        await container.create_item({"id": "new", "pk": "key 1"})
        async for page in pages:
            found += [row["id"] async for row in page]
        assert sorted(found) == sorted([*map(str, range(12)), "new"])

    with Emulator(partitions=partitions) as emulator:
        await in_a_container(emulator, work)


def test_a_container_that_is_not_there_cannot_be_split():
    with Emulator() as emulator, pytest.raises(ValueError, match="no container 'items'"):
        emulator.split("items")


def test_bounds_are_the_service_s_and_stay_when_ranges_are_split():
    lows = [each.low for each in split(5, 2)]
    assert lows[4] == "33333333333333333333333333333330"  # as Microsoft's tests expect it
    assert set(lows) < {each.low for each in split(10, 2)}
