"""The plan by which SDKs merge the answers of several ranges. The queries are the service's own."""

import pytest

from cosmos_emulator.query import QueryError, Split, describe, split
from cosmos_emulator.query.policies import Policies

FILTER = "{documentdb-formattableorderbyquery-filter}"


def info(text, **parameters):
    named = [{"name": f"@{name}", "value": value} for name, value in parameters.items()]
    return describe(text, named)["queryInfo"]


def rewritten(text, **parameters):
    return info(text, **parameters)["rewrittenQuery"].split("\n")


def test_a_plain_query_is_left_as_it_is():
    plan = describe("SELECT * FROM c WHERE c.a = 1", [])
    assert plan["queryRanges"] == [
        {"min": "", "max": "FF", "isMinInclusive": True, "isMaxInclusive": False}
    ]
    assert plan["queryInfo"] == {
        "distinctType": "None",
        "top": None,
        "offset": None,
        "limit": None,
        "orderBy": [],
        "orderByExpressions": [],
        "groupByExpressions": [],
        "groupByAliases": [],
        "aggregates": [],
        "groupByAliasToAggregateType": {},
        "rewrittenQuery": "",
        "hasSelectValue": False,
        "dCountInfo": None,
        "hasNonStreamingOrderBy": False,
    }


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "SELECT * FROM Root r ORDER BY r.key DESC",
            [
                'SELECT r._rid, [{"item": r.key}] AS orderByItems, r AS payload',
                "FROM Root AS r",
                f"WHERE ({FILTER})",
                "ORDER BY r.key DESC",
            ],
        ),
        (
            "SELECT VALUE r.a FROM r WHERE r.d = true ORDER BY r.b",
            [
                'SELECT r._rid, [{"item": r.b}] AS orderByItems, r.a AS payload',
                "FROM r",
                f"WHERE (((r.d = true) AND ({FILTER})) AND IS_DEFINED(r.a))",
                "ORDER BY r.b",
            ],
        ),
        (
            "SELECT TOP 50 r[0] FROM r ORDER BY r.key ASC",
            [
                'SELECT TOP 50 r._rid, [{"item": r.key}] AS orderByItems, {"$1": r[0]} AS payload',
                "FROM r",
                f"WHERE ({FILTER})",
                "ORDER BY r.key ASC",
            ],
        ),
        (
            "SELECT c.x FROM c ORDER BY c.a, c.b OFFSET 1 LIMIT 2",
            [
                'SELECT c._rid, [{"item": c.a}, {"item": c.b}] AS orderByItems, '
                '{"x": c.x} AS payload',
                "FROM c",
                f"WHERE ({FILTER})",
                "ORDER BY c.a, c.b",
                "OFFSET 0 LIMIT 3",
            ],
        ),
        (
            "SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a OFFSET 1 LIMIT 2",
            [
                'SELECT c._rid, [{"item": c.a}] AS orderByItems, c.a AS payload',
                "FROM c",
                f"WHERE (({FILTER}) AND IS_DEFINED(c.a))",
                "ORDER BY c.a",
            ],
        ),
    ],
)
def test_sort_keys_are_returned_with_the_result(text, lines):
    assert rewritten(text) == lines


@pytest.mark.parametrize(
    ("text", "aggregate", "first_line"),
    [
        ("SELECT VALUE COUNT(1) FROM c", "Count", 'SELECT VALUE [{"item": COUNT(1)}]'),
        ("SELECT TOP 5 VALUE SUM(c.x) FROM c", "Sum", 'SELECT VALUE [{"item": SUM(c.x)}]'),
        (
            "SELECT VALUE AVG(c.x) FROM c",
            "Average",
            'SELECT VALUE [{"item": {"sum": SUM(c.x), "count": COUNT(c.x)}}]',
        ),
        (
            "SELECT VALUE MIN(c.x + 1) FROM c",
            "Min",
            'SELECT VALUE [{"item": MIN((c.x + 1)), '
            '"item2": {"min": MIN((c.x + 1)), "count": COUNT((c.x + 1))}}]',
        ),
    ],
)
def test_an_aggregate_comes_in_parts_that_can_be_put_together(text, aggregate, first_line):
    assert info(text)["aggregates"] == [aggregate]
    assert rewritten(text) == [first_line, "FROM c"]


def test_groups_come_with_their_keys():
    found = info("SELECT c.grp, COUNT(1) AS n FROM c GROUP BY c.grp OFFSET 5 LIMIT 6")
    assert found["groupByExpressions"] == ["c.grp"]
    assert found["groupByAliases"] == ["grp", "n"]
    assert found["groupByAliasToAggregateType"] == {"grp": None, "n": "Count"}
    assert (found["offset"], found["limit"], found["aggregates"]) == (5, 6, [])
    assert found["rewrittenQuery"] == (
        'SELECT [{"item": c.grp}] AS groupByItems, '
        '{"grp": c.grp, "n": {"item": COUNT(1)}} AS payload\nFROM c\nGROUP BY c.grp'
    )


def test_an_aggregate_without_value_has_a_name():
    found = info("SELECT AVG(c.x) FROM c")
    assert found["groupByAliasToAggregateType"] == {"$1": "Average"}
    assert found["rewrittenQuery"] == (
        'SELECT {"$1": {"item": {"sum": SUM(c.x), "count": COUNT(c.x)}}} AS payload\nFROM c'
    )


def test_counts_that_are_parameters_have_their_values_in_the_plan():
    found = info("SELECT TOP @n * FROM c ORDER BY c.a", n=42)
    assert found["top"] == 42
    assert found["rewrittenQuery"].startswith("SELECT TOP 42 c._rid")
    found = info("SELECT * FROM c OFFSET @o LIMIT @l", o=42, l=1337)
    assert (found["offset"], found["limit"]) == (42, 1337)
    assert found["rewrittenQuery"] == "SELECT *\nFROM c\nOFFSET 0 LIMIT 1379"
    with pytest.raises(QueryError, match="TOP"):
        info("SELECT TOP @n * FROM c", n="many")


def test_distinct_is_ordered_if_it_sorts_by_the_value_itself():
    assert info("SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a")["distinctType"] == "Ordered"
    found = info("SELECT DISTINCT c.a FROM c")
    assert (found["distinctType"], found["rewrittenQuery"]) == ("Unordered", "")
    assert rewritten("SELECT DISTINCT TOP 5 VALUE c.a FROM c") == [
        "SELECT DISTINCT VALUE c.a",
        "FROM c",
    ]


def test_counting_what_is_distinct_has_a_place_of_its_own():
    found = info("SELECT COUNT(1) AS n FROM (SELECT DISTINCT VALUE c.a FROM c)")
    assert found["dCountInfo"] == {"dCountAlias": "n"}
    assert found["distinctType"] == "Unordered"
    assert found["rewrittenQuery"] == "SELECT DISTINCT VALUE c.a\nFROM c"


def test_vectors_are_sorted_by_how_close_they_are():
    text = "SELECT TOP 2 c.id FROM c ORDER BY VectorDistance(c.v, [1, 2])"
    found = info(text)
    assert (found["orderBy"], found["hasNonStreamingOrderBy"]) == (["Descending"], True)
    plan = describe(text, [], policies=Policies({("v",): "euclidean"}))
    assert plan["queryInfo"]["orderBy"] == ["Ascending"]


def test_a_client_that_cannot_merge_gets_no_plan():
    features = frozenset({"OrderBy", "Top"})
    describe("SELECT TOP 1 * FROM c ORDER BY c.a", [], features=features)
    with pytest.raises(QueryError, match="Query contained GroupBy, which the calling client"):
        describe("SELECT c.a FROM c GROUP BY c.a", [], features=features)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM c WHERE c.a > 1", Split.APPENDED),
        ("SELECT VALUE t FROM c JOIN t IN c.tags", Split.APPENDED),
        ("SELECT c.n, (SELECT VALUE COUNT(1) FROM t IN c.tags) AS k FROM c", Split.APPENDED),
        ("SELECT TOP 1 * FROM c", Split.MERGED),
        ("SELECT * FROM c ORDER BY c.a", Split.MERGED),
        ("SELECT * FROM c OFFSET 1 LIMIT 2", Split.MERGED),
        ("SELECT DISTINCT c.a FROM c", Split.MERGED),
        ("SELECT VALUE COUNT(1) FROM c", Split.MERGED),
        ("SELECT c.a FROM c GROUP BY c.a", Split.MERGED),
        ("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c)", Split.MERGED),
        ("SELECT VALUE COUNT(1) FROM (SELECT VALUE c.a FROM c)", Split.MERGED),
        ("SELECT VALUE x FROM (SELECT TOP 3 VALUE c.a FROM c) AS x", Split.WHOLE),
        ("SELECT * FROM c ORDER BY RANK FullTextScore(c.text, 'a')", Split.MERGED),
        ("SELECT TOP 1 5", Split.WHOLE),
    ],
)
def test_how_the_answers_of_ranges_become_one(text, expected):
    assert split(text) is expected


def test_aggregates_that_no_sdk_puts_together():
    for text in ("SELECT COUNT(1) FROM c", "SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a"):
        with pytest.raises(QueryError, match="VALUE <AggregateFunc>"):
            split(text)
