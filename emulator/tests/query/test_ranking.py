"""Ranking by vectors and by words."""

import pytest

from cosmos_emulator.query import QueryError, run
from cosmos_emulator.query.policies import Policies

TEXTS = (
    {"id": "a", "text": "a quiet road", "v": [1, 0]},
    {"id": "b", "text": "mountain bike, mountain road", "v": [0, 1]},
    {"id": "c", "text": "mountain", "v": [3, 3]},
    {"id": "d", "v": "no vector"},
)


@pytest.fixture
def texts(table):
    return table(*TEXTS)


def ids(container, clause, **parameters):
    return "".join(container.query(f"SELECT VALUE c.id FROM c ORDER BY {clause}", **parameters))


def test_the_most_similar_vectors_come_first(texts):
    assert ids(texts, "VectorDistance(c.v, [0, 2])") == "bcad"
    assert (
        ids(texts, "VectorDistance(c.v, @v, false, {distanceFunction: 'dotproduct'})", v=[0, 2])
        == "cbad"
    )
    assert ids(texts, "VectorDistance(c.v, [0, 2], false, {distanceFunction: 'euclidean'})") == (
        "bacd"
    )


def test_the_distance_function_is_that_of_the_policy(texts):
    text = "SELECT VALUE VectorDistance(c.v, [0, 2]) FROM c ORDER BY VectorDistance(c.v, [0, 2])"
    page = run(
        text, [], texts, max_items=-1, continuation=None, policies=Policies({("v",): "euclidean"})
    )
    assert page.items[0] == 1


def test_the_policy_is_found_for_a_path_that_parameters_name(texts):
    text = "SELECT VALUE VectorDistance(c[@key], @v) FROM c ORDER BY VectorDistance(c[@key], @v)"
    parameters = [{"name": "@key", "value": "v"}, {"name": "@v", "value": [0, 2]}]
    policy = {("v",): "euclidean"}
    page = run(text, parameters, texts, max_items=-1, continuation=None, policies=Policies(policy))
    assert page.items[0] == 1


def test_statistics_are_those_of_all_documents_not_only_of_those_that_where_lets_through(table):
    container = table(
        {"id": "rare", "text": "heron stone stone"},
        {"id": "common", "text": "gull gull stone"},
        *({"text": "gull"} for _ in range(20)),
    )
    text = """SELECT VALUE c.id FROM c WHERE c.id IN ('rare', 'common')
              ORDER BY RANK FullTextScore(c.text, 'heron', 'gull')"""
    assert container.query(text) == ["rare", "common"]


def test_full_text_score_prefers_frequent_rare_words_in_short_texts(texts):
    assert ids(texts, "RANK FullTextScore(c.text, 'mountain')") == "cbad"
    assert ids(texts, "RANK FullTextScore(c.text, 'mountain', 'bike')") == "bcad"
    assert ids(texts, "RANK FullTextScore(c.text, 'mountain bike')") == "bacd"
    assert ids(texts, "RANK FullTextScore(c.text, ['quiet'])") == "abcd"


def test_ranks_are_fused(texts):
    both = "FullTextScore(c.text, 'mountain'), VectorDistance(c.v, [0, 2])"
    assert ids(texts, f"RANK RRF({both})") == "bcad"
    assert ids(texts, f"RANK RRF({both}, [10, 1])") == "cbad"
    assert ids(texts, f"RANK RRF({both}, @w)", w=[-1, -1])[0] == "d"


def test_pages_of_a_ranking_follow_each_other(texts):
    text = "SELECT VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'road') OFFSET 1 LIMIT 2"
    assert texts.query(text, max_items=1) == texts.query(text)


@pytest.mark.parametrize(
    "clause",
    [
        "RANK FullTextScore(c.text, 'x') DESC",
        "RANK c.text",
        "RANK FullTextScore(c.text)",
        "RANK RRF(FullTextScore(c.text, 'x'), [1, 2])",
        "VectorDistance(c.v, [1]), c.id",
    ],
)
def test_a_score_cannot_be_combined(texts, clause):
    with pytest.raises(QueryError):
        ids(texts, clause)


@pytest.mark.parametrize(
    ("policies", "found"),
    [
        (Policies(), []),
        (Policies(languages={("text",): "de-DE"}), ["1"]),
        (Policies(default_language="de-DE"), ["1"]),
        (Policies(languages={("other",): "de-DE"}), []),
    ],
)
def test_words_are_stems_of_the_language_that_the_policy_names(table, policies, found):
    texts = table({"id": "1", "text": "Die Häuser am See"})
    text = "SELECT VALUE c.id FROM c WHERE FullTextContains(c[@key], 'Haus am See')"
    named = [{"name": "@key", "value": "text"}]
    page = run(text, named, texts, max_items=-1, continuation=None, policies=policies)
    assert page.items == found


def test_a_text_is_as_long_as_its_words_without_stop_words(table):
    texts = table(
        {"id": "a", "text": "the bike of the one who was here before us all"},
        {"id": "b", "text": "bike mountain road"},
        {"id": "c", "text": "bike 1,977"},
    )
    assert ids(texts, "RANK FullTextScore(c.text, 'bikes')") == "acb"
