"""Aggregates across partitions, which SDKs combine."""

import pytest

from cosmos_emulator.query import QueryError, run


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
