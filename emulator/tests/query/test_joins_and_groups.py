"""JOIN, subqueries, DISTINCT, GROUP BY and aggregates."""

import pytest

from cosmos_emulator.query import QueryError

FAMILIES = (
    {
        "id": "andersen",
        "city": "Seattle",
        "children": [
            {"name": "Henriette", "grade": 5, "pets": [{"name": "Fluffy"}]},
            {"name": "Jesse", "grade": 1, "pets": []},
        ],
    },
    {
        "id": "wakefield",
        "city": "NY",
        "children": [
            {"name": "Lisa", "grade": 8, "pets": [{"name": "Goofy"}, {"name": "Shadow"}]},
        ],
    },
    {"id": "empty", "city": "NY"},
)


@pytest.fixture
def families(table):
    return table(*FAMILIES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT VALUE k.name FROM c JOIN k IN c.children", ["Henriette", "Jesse", "Lisa"]),
        ("SELECT VALUE k.name FROM k IN c.children", ["Henriette", "Jesse", "Lisa"]),
        (
            "SELECT c.id, p.name FROM c JOIN k IN c.children JOIN p IN k.pets WHERE k.grade > 5",
            [{"id": "wakefield", "name": "Goofy"}, {"id": "wakefield", "name": "Shadow"}],
        ),
        ("SELECT VALUE children[0].name FROM c.children", ["Henriette", "Lisa"]),
        ("SELECT * FROM c.children[0].pets[0] AS pet", [{"name": "Fluffy"}, {"name": "Goofy"}]),
        ("SELECT VALUE x FROM c['city'] x", ["Seattle", "NY", "NY"]),
        (
            "SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE k FROM k IN c.children "
            "WHERE k.grade > 5)",
            ["wakefield"],
        ),
        (
            "SELECT VALUE ARRAY(SELECT VALUE k.name FROM k IN c.children) FROM c "
            "WHERE c.id != 'empty'",
            [["Henriette", "Jesse"], ["Lisa"]],
        ),
        (
            "SELECT VALUE (SELECT VALUE COUNT(1) FROM k IN c.children) FROM c",
            [2, 1, 0],
        ),
        (
            "SELECT c.id, best.name FROM c JOIN (SELECT VALUE k FROM k IN c.children "
            "WHERE k.grade = 8) AS best",
            [{"id": "wakefield", "name": "Lisa"}],
        ),
        (
            "SELECT VALUE k.name FROM c JOIN k IN (SELECT VALUE c.children)",
            ["Henriette", "Jesse", "Lisa"],
        ),
        (
            "SELECT VALUE n FROM c JOIN (SELECT VALUE ARRAY_LENGTH(c.children)) AS n",
            [2, 1],
        ),
        (
            "SELECT VALUE ALL(SELECT VALUE k.grade > 3 FROM k IN c.children) FROM c",
            [False, True, True],
        ),
        (
            "SELECT VALUE FIRST(SELECT VALUE k.name FROM k IN c.children) FROM c",
            ["Henriette", "Lisa"],
        ),
        ("SELECT VALUE LAST(SELECT VALUE k.name FROM k IN c.children) FROM c", ["Jesse", "Lisa"]),
        (
            "SELECT VALUE ARRAY(SELECT VALUE k.grade FROM k IN c.children ORDER BY k.grade) "
            "FROM c WHERE c.id = 'andersen'",
            [[1, 5]],
        ),
        ("SELECT DISTINCT VALUE c.city FROM c", ["Seattle", "NY"]),
        ("SELECT DISTINCT c.city FROM c ORDER BY c.city", [{"city": "NY"}, {"city": "Seattle"}]),
        ("SELECT DISTINCT TOP 1 VALUE c.city FROM c", ["Seattle"]),
        ("SELECT DISTINCT c.missing FROM c", [{}]),
        (
            "SELECT c.city, COUNT(1) AS n FROM c GROUP BY c.city",
            [{"city": "Seattle", "n": 1}, {"city": "NY", "n": 2}],
        ),
        (
            "SELECT VALUE {c: c.city, n: COUNT(1) * 10} FROM c GROUP BY c.city",
            [{"c": "Seattle", "n": 10}, {"c": "NY", "n": 20}],
        ),
        (
            "SELECT COUNT(1) AS n, MAX(k.grade) AS best FROM c JOIN k IN c.children GROUP BY c.id",
            [{"n": 2, "best": 5}, {"n": 1, "best": 8}],
        ),
        ("SELECT VALUE COUNT(1) FROM c GROUP BY LOWER(c.city)", [1, 2]),
        ("SELECT COUNT(1) FROM c GROUP BY c.children = undefined", [{"$1": 3}]),
        ("SELECT VALUE c.city FROM c GROUP BY c.city OFFSET 1 LIMIT 1", ["NY"]),
        ("SELECT 1 AS one", [{"one": 1}]),
        ("SELECT VALUE (SELECT VALUE 5)", [5]),
    ],
)
def test_a_query_gives_its_answer(families, text, expected):
    assert families.query(text) == expected
    assert families.query(text, max_items=1) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT VALUE k FROM c JOIN k IN x.children",
        "SELECT VALUE c FROM c JOIN c IN c.children",
        "SELECT c.id, c.city FROM c GROUP BY c.city",
        "SELECT * FROM c GROUP BY c.city",
        "SELECT c.city FROM c GROUP BY c.city ORDER BY c.city",
        "SELECT VALUE (SELECT VALUE k FROM k IN c.children) FROM c",
        "SELECT VALUE COUNT(COUNT(1)) FROM c",
    ],
)
def test_a_query_without_meaning_is_refused(families, text):
    with pytest.raises(QueryError):
        families.query(text)


@pytest.mark.parametrize(
    ("values", "aggregate", "expected"),
    [
        ([1, 2, 3.5], "SUM", [6.5]),
        ([], "SUM", [0]),
        ([1, "x"], "SUM", []),
        ([1, None], "AVG", []),
        ([1, 2], "AVG", [1.5]),
        ([], "AVG", []),
        ([3, "a", True, None], "MIN", [None]),
        ([3, "a", True, None], "MAX", ["a"]),
        ([3, 7], "MAX", [7]),
        ([], "MAX", []),
        ([3, [1]], "MAX", []),
        ([None, 0], "COUNT", [2]),
        ([], "COUNT", [0]),
    ],
)
def test_aggregates_skip_what_is_undefined_and_stumble_over_types(
    table, values, aggregate, expected
):
    container = table(*({"v": value} for value in values), {})
    assert container.query(f"SELECT VALUE {aggregate}(c.v) FROM c") == expected


def test_a_query_over_the_answer_of_another(families):
    assert families.query("SELECT COUNT(1) AS n FROM (SELECT DISTINCT c.city FROM c)") == [{"n": 2}]
    assert families.query(
        "SELECT VALUE g.n FROM (SELECT c.city, COUNT(1) AS n FROM c GROUP BY c.city) AS g "
        "WHERE g.n > 1"
    ) == [2]
