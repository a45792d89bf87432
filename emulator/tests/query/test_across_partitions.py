"""Aggregates across partitions, which SDKs combine."""

import pytest

from cosmos_emulator.query import QueryError, describe, run


@pytest.fixture
def numbers(table):
    return table({"n": 1}, {"n": 2}, {"n": "x"})


def across(container, text):
    page = run(text, [], container, max_items=10, continuation=None, across_partitions=True)
    return page.items


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT VALUE COUNT(1) FROM c", [3]),
        ("SELECT VALUE SUM(c.n) FROM c", [None]),
        ("SELECT VALUE AVG(c.n) FROM c WHERE c.n > 5", [None]),
        ("SELECT VALUE MAX(c.missing) FROM c", [None]),
        ("SELECT c.n, COUNT(1) AS k FROM c WHERE c.n = 1 GROUP BY c.n", [{"n": 1, "k": 1}]),
        ("SELECT VALUE c.missing FROM c", []),
    ],
)
def test_an_undefined_aggregate_is_null(numbers, text, expected):
    assert across(numbers, text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(1) FROM c",
        "SELECT COUNT(1) + 5 FROM c",
        "SELECT VALUE COUNT(1) + SUM(c.n) FROM c",
    ],
)
def test_only_a_single_aggregate_value_is_allowed(numbers, text):
    with pytest.raises(QueryError, match="VALUE <AggregateFunc>"):
        across(numbers, text)


def test_counting_all_reads_no_document(numbers):
    page = run("SELECT VALUE COUNT(1) FROM c", [], numbers, max_items=1, continuation=None)
    assert (page.items, page.scanned, page.scanned_bytes) == ([3], 0, 0)
    page = run("SELECT VALUE COUNT(c.n) FROM c", [], numbers, max_items=1, continuation=None)
    assert (page.items, page.scanned) == ([3], 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT VALUE COUNTIF(c.n > 1) FROM c", [2]),
        ("SELECT VALUE COUNTIF(c.n) FROM c", [0]),
        ("SELECT VALUE MAKELIST(c.kind) FROM c", [["a", "b", "a"]]),
        ("SELECT VALUE MAKESET(c.kind) FROM c", [["a", "b"]]),
        ("SELECT VALUE MAKESET(c.missing) FROM c", [[]]),
        (
            "SELECT c.kind, MakeList(c.n) AS all FROM c GROUP BY c.kind",
            [{"kind": "a", "all": [1, 3]}, {"kind": "b", "all": [2]}],
        ),
        ("SELECT VALUE CountIf(c.n > 2) FROM c GROUP BY c.kind", [1, 0]),
    ],
)
def test_values_are_collected_and_counted_by_a_condition(table, text, expected):
    kinds = table({"n": 1, "kind": "a"}, {"n": 2, "kind": "b"}, {"n": 3, "kind": "a"})
    assert kinds.query(text) == expected


@pytest.mark.parametrize(
    ("text", "features"),
    [
        ("SELECT VALUE COUNTIF(c.a) FROM c", {"CountIf"}),
        ("SELECT VALUE MAKELIST(c.a) FROM c", {"ListAndSetAggregate"}),
        ("SELECT VALUE MAKESET(c.a) FROM c", {"ListAndSetAggregate"}),
    ],
)
def test_a_plan_names_what_a_client_must_be_able_to_merge(text, features):
    with pytest.raises(QueryError, match=features.copy().pop()):
        describe(text, [], features=frozenset({"Aggregate"}))
    info = describe(text, [], features=frozenset({"Aggregate", *features}))["queryInfo"]
    assert info["aggregates"] == [
        {"COUNTIF": "CountIf", "MAKELIST": "MakeList", "MAKESET": "MakeSet"}[
            text.split()[2].partition("(")[0]
        ]
    ]


def test_an_aggregate_of_groups_without_a_name_comes_as_one_in_a_list():
    info = describe("SELECT VALUE SUM(c.a) FROM c GROUP BY c.b", [])["queryInfo"]
    assert '[{"item": SUM(c.a)}] AS payload' in info["rewrittenQuery"]
