"""Ranked queries over several partitions: the SDK gathers statistics and scores, fuses ranks."""

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from cosmos_emulator import Emulator
from cosmos_emulator.query import describe

WORDS = ["heron", "gull", "tern", "plover", "curlew", "avocet", "stilt", "dunlin", "knot", "ruff"]
POLICY = {
    "vectorEmbeddings": [
        {"path": "/v", "dataType": "float32", "dimensions": 2, "distanceFunction": "euclidean"}
    ]
}
RANKED = [
    "SELECT TOP 5 VALUE c.n FROM c ORDER BY RANK FullTextScore(c.text, 'heron')",
    "SELECT TOP 5 VALUE c.n FROM c WHERE c.n > 9 "
    "ORDER BY RANK FullTextScore(c.text, 'gull', 'tern')",
    "SELECT VALUE c.n FROM c ORDER BY RANK FullTextScore(c.text, ['knot']) OFFSET 2 LIMIT 4",
    "SELECT TOP 6 VALUE c.n FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'gull'), "
    "VectorDistance(c.v, [3, 4]))",
    "SELECT TOP 6 VALUE c.n FROM c ORDER BY RANK RRF(FullTextScore(c.text, @terms), "
    "VectorDistance(c[@key], @v), [1, 2.5])",
]
PARAMETERS = [
    {"name": "@terms", "value": ["ruff", "stilt"]},
    {"name": "@key", "value": "v"},
    {"name": "@v", "value": [1, 7]},
]


def items():
    for n in range(40):
        # Counts and lengths differ, so that no two scores are equal.
        words = [word for at, word in enumerate(WORDS) for _ in range((n * (at + 3)) % 7)]
        yield {"id": str(n), "pk": f"key {n}", "n": n, "text": " ".join(words + ["shore"] * n)} | {
            "v": [n % 7 + n / 100, n % 11]
        }


def filled(emulator):
    client = CosmosClient(emulator.endpoint, emulator.key, transport=emulator.transport())
    container = client.create_database("db").create_container(
        "c", partition_key=PartitionKey("/pk"), vector_embedding_policy=POLICY
    )
    for item in items():
        container.create_item(item)
    return container


@pytest.fixture(scope="module")
def containers():
    with Emulator() as one, Emulator(partitions=4) as four:
        yield filled(one), filled(four), four


def ranked(container, text, **options):
    options = options or {"enable_cross_partition_query": True}
    named = [each for each in PARAMETERS if each["name"] in text]
    return list(container.query_items(text, parameters=named, **options))


@pytest.mark.parametrize("text", RANKED)
def test_four_partitions_rank_as_one(containers, text):
    one, four, _ = containers
    assert ranked(four, text) == ranked(one, text) != []


def test_statistics_come_from_all_partitions_or_from_those_that_were_asked(containers):
    _, four, emulator = containers
    text = RANKED[0]
    emulator.clear_requests()
    ranked(four, text)
    queries = [each for each in emulator.requests if each.operation == "query"]
    assert [each.status for each in queries] == [400] + [200] * 8
    emulator.clear_requests()
    ranked(four, text, partition_key="key 3")
    queries = [each for each in emulator.requests if each.operation == "query"]
    assert [each.status for each in queries] == [200]
    scope = {"enable_cross_partition_query": True, "full_text_score_scope": "Local"}
    assert sorted(ranked(four, text, **scope)) == sorted(ranked(four, text))


def test_the_plan_has_the_form_of_the_service():
    text = (
        "SELECT TOP 10 * FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'swim', 'run'), "
        "VectorDistance(c.image, [1, 2, 3]), [1, -0.3])"
    )
    info = describe(text, [])["hybridSearchQueryInfo"]
    assert (info["skip"], info["take"], info["requiresGlobalStatistics"]) == (None, 10, True)
    assert info["componentWeights"] == [1.0, 0.3]
    words, vectors = info["componentQueryInfos"]
    assert (words["top"], words["orderBy"], vectors["orderBy"]) == (
        120,
        ["Descending"],
        ["Ascending"],
    )
    assert vectors["orderByExpressions"] == ["_VectorScore(c.image, [1, 2, 3])"]
    assert vectors["rewrittenQuery"].endswith("ORDER BY _VectorScore(c.image, [1, 2, 3]) ASC")
    assert info["globalStatisticsQuery"] == (
        'SELECT COUNT(1) AS documentCount, [{"totalWordCount": SUM(_FullTextWordCount(c.text)), '
        '"hitCounts": [COUNTIF(FullTextContains(c.text, "swim")), '
        'COUNTIF(FullTextContains(c.text, "run"))]}] AS fullTextStatistics\nFROM c'
    )
