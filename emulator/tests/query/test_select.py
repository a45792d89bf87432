"""The results of SELECT, WHERE, ORDER BY, TOP and OFFSET LIMIT."""

import pytest

from cosmos_emulator.query import QueryError, check_order, run

PEOPLE = (
    {"id": "a", "name": "Ada", "age": 36, "tags": ["x", "y"]},
    {"id": "b", "name": "Bob", "age": 20, "address": {"city": "Rome"}},
    {"id": "c", "name": "Cyd", "tags": []},
    {"id": "d", "name": None, "age": "old", "tags": ["y"]},
)


@pytest.fixture
def people(table):
    return table(*PEOPLE)


def test_star_returns_whole_documents(people):
    assert people.query("SELECT * FROM c") == list(PEOPLE)


def test_the_container_may_have_any_name_and_an_alias(people):
    for source in ("root", "c", "Families AS f", "people p"):
        assert people.query(f"SELECT * FROM {source}") == list(PEOPLE)
    assert people.query("select value x.id from people as x where x.id = 'b'") == ["b"]


def test_missing_properties_are_left_out(people):
    assert people.query("SELECT c.id, c.address.city FROM c WHERE c.id IN ('a', 'b')") == [
        {"id": "a"},
        {"id": "b", "city": "Rome"},
    ]
    assert people.query("SELECT VALUE c.address.city FROM c") == ["Rome"]


def test_columns_are_named_after_their_path_alias_or_place(people):
    assert people.query(
        'SELECT c["name"], c.age + 1, c.age AS years, c.tags[0], 1 one FROM c WHERE c.id = "a"'
    ) == [{"name": "Ada", "$1": 37, "years": 36, "$2": "x", "one": 1}]


def test_a_selected_alias_is_a_property(people):
    assert people.query("SELECT c FROM c WHERE c.id = 'c'") == [{"c": PEOPLE[2]}]


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("c.age = 36", "a"),
        ("c.age > 19", "ab"),
        ("c.age >= '0'", "d"),
        ("c.age != 36", "bd"),
        ("NOT (c.age = 36)", "bd"),
        ("c.name = null", "d"),
        ("c.name != null", "abc"),
        ("c.age = undefined", ""),
        ("c.age > 30 OR c.name = 'Cyd'", "ac"),
        ("c.age > 30 AND c.name = 'Ada'", "a"),
        ("NOT c.missing", ""),
        ("c.missing OR true", "abcd"),
        ("IS_DEFINED(c.age)", "abd"),
        ("NOT IS_DEFINED(c.age)", "c"),
        ("c.age IN (36, 'old')", "ad"),
        ("c.age NOT IN (36, 'old')", "b"),
        ("c.age BETWEEN 20 AND 36", "ab"),
        ("c.age NOT BETWEEN 30 AND 36", "b"),
        ("c.id BETWEEN 'b' AND 'c' AND true", "bc"),
        ("c.name LIKE '_d%'", "a"),
        ("c.name NOT LIKE '%d%'", "b"),
        ("c['address']['city'] = 'Rome'", "b"),
        ("c.tags = ['x', 'y']", "a"),
        ("c.address = {city: 'Rome'}", "b"),
        ("c.id > 'b'", "cd"),
        ("c.id = 5", ""),
        ("1", ""),
    ],
)
def test_where_keeps_what_is_true(people, condition, ids):
    assert "".join(people.query(f"SELECT VALUE c.id FROM c WHERE {condition}")) == ids


def test_order_by_sorts_types_then_values(table):
    values = [{"k": 1}, [2], "b", "a", 2, 1.5, -3, True, False, None]
    container = table(*({"v": value} for value in values), {})
    ordered = [None, False, True, -3, 1.5, 2, "a", "b", [2], {"k": 1}]
    documents = container.query("SELECT * FROM c ORDER BY c.v")
    assert "v" not in documents[0]
    assert [document["v"] for document in documents[1:]] == ordered
    assert container.query("SELECT VALUE c.v FROM c ORDER BY c.v DESC") == ordered[::-1]


def test_order_by_several_keys(table):
    container = table(*({"a": a, "b": b} for a in (1, 2) for b in (1, 2)))
    assert container.query("SELECT VALUE [c.a, c.b] FROM c ORDER BY c.a DESC, c.b") == [
        [2, 1],
        [2, 2],
        [1, 1],
        [1, 2],
    ]


def test_top_offset_and_limit_take_numbers_and_parameters(table):
    container = table(*({"n": n} for n in range(10)))
    text = "SELECT VALUE c.n FROM c ORDER BY c.n"
    assert container.query("SELECT TOP 2 VALUE c.n FROM c") == [0, 1]
    assert container.query("SELECT TOP @n VALUE c.n FROM c", n=3) == [0, 1, 2]
    assert container.query(f"{text} OFFSET 7 LIMIT 5") == [7, 8, 9]
    assert container.query(f"{text} OFFSET @a LIMIT @b", a=2, b=2) == [2, 3]
    assert container.query("SELECT TOP 0 * FROM c") == []


def test_parameters_stand_for_any_value(people):
    assert people.query("SELECT VALUE c.id FROM c WHERE c.name = @n", n="Ada") == ["a"]
    assert people.query("SELECT VALUE c.id FROM c WHERE c.tags = @n", n=["y"]) == ["d"]
    assert people.query("SELECT VALUE c[@n] FROM c", n="age") == [36, 20, "old"]


def test_aggregates_without_group(people):
    assert people.query("SELECT VALUE COUNT(1) FROM c") == [4]
    assert people.query("SELECT COUNT(c.age) AS n, MAX(c.name) FROM c") == [{"n": 3, "$1": "Cyd"}]
    assert people.query("SELECT VALUE COUNT(1) FROM c WHERE c.id = 'none'") == [0]
    assert people.query("SELECT VALUE AVG(c.age) FROM c WHERE IS_NUMBER(c.age)") == [28]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SELECT",
        "SELECT * FORM c",
        "SELECT * FROM c WHERE",
        "SELECT * FROM c WHERE c.a = ",
        "SELECT c.order FROM c",
        "SELECT * FROM c; DROP TABLE c",
        "SELECT x.id FROM c",
        "SELECT NOSUCH(c.id) FROM c",
        "SELECT udf.twice(c.n) FROM c",
        "SELECT VALUE 'open FROM c",
        "SELECT VALUE '\\q' FROM c",
        "SELECT TOP -1 * FROM c",
        "SELECT TOP 1.5 * FROM c",
        "SELECT *",
        "SELECT * FROM c JOIN t IN c.tags",
        "SELECT c.id, COUNT(1) FROM c",
        "SELECT * FROM c WHERE COUNT(1) > 1",
        "SELECT c.a, c.a FROM c",
        "SELECT * FROM c ORDER BY LOWER(c.name)",
        "SELECT * FROM c ORDER BY c",
        "SELECT VALUE t FROM c JOIN t IN c.tags ORDER BY t.name",
    ],
)
def test_what_is_not_a_query_is_refused(people, text):
    with pytest.raises(QueryError) as caught:
        people.query(text)
    (error,) = caught.value.body()["errors"]
    assert error["severity"] == "Error"
    assert error["code"].startswith("SC")
    assert error["message"] == caught.value.message


def test_a_syntax_error_says_where(people):
    with pytest.raises(QueryError) as caught:
        people.query("SELECT * FORM c")
    assert caught.value.body() == {
        "errors": [
            {
                "severity": "Error",
                "location": {"start": 9, "end": 13},
                "code": "SC1001",
                "message": "Syntax error, incorrect syntax near 'FORM'.",
            }
        ]
    }


def test_comments_and_any_case(people):
    assert people.query("select -- the id\n value c.id From c wHere c.age = 36 -- Ada") == ["a"]


def test_several_sort_keys_need_a_composite_index():
    policy = {
        "compositeIndexes": [
            [{"path": "/a", "order": "ascending"}, {"path": "/b/c", "order": "descending"}]
        ]
    }
    for text in (
        "SELECT * FROM c ORDER BY c.a, c.b.c DESC",
        "SELECT * FROM c ORDER BY c.a DESC, c.b.c",
        "SELECT * FROM c ORDER BY c.x",
        "SELECT * FROM c",
    ):
        check_order(text, policy, lambda path: True)
    for text in ("SELECT * FROM c ORDER BY c.a, c.b.c", "SELECT * FROM c ORDER BY c.b.c DESC, c.a"):
        with pytest.raises(QueryError, match="composite index"):
            check_order(text, policy, lambda path: True)
    with pytest.raises(QueryError, match="order-by item is excluded"):
        check_order("SELECT * FROM c ORDER BY c.x", policy, lambda path: False)


def test_computed_properties_are_read_like_others_but_not_returned_with_the_document(people):
    computed = (("lower", "SELECT VALUE LOWER(x.name) FROM x"),)

    def query(text):
        return run(
            text, [], people, max_items=-1, continuation=None, computed_properties=computed
        ).items

    assert query("SELECT c.id, c.lower FROM c WHERE c.lower = 'bob'") == [
        {"id": "b", "lower": "bob"}
    ]
    assert query("SELECT VALUE c.lower FROM c ORDER BY c.lower DESC") == ["cyd", "bob", "ada"]
    assert query("SELECT * FROM c WHERE c.lower = 'ada'") == [PEOPLE[0]]
    assert people.query("SELECT VALUE c.lower FROM c") == []


@pytest.mark.parametrize("operator", ["OR", "AND"])
def test_a_thousand_conditions_are_accepted(people, operator):
    conditions = f" {operator} ".join(f"(c.id = @p AND c.age != {n})" for n in range(1000))
    assert people.query(f"SELECT VALUE c.id FROM c WHERE {conditions}", p="b") == (
        ["b"] if operator == "OR" else []
    )
    ids = ", ".join(f"'{n}'" for n in range(6000))
    assert people.query(f"SELECT VALUE c.id FROM c WHERE c.id IN ('a', {ids})") == ["a"]


def test_a_query_nested_beyond_reason_is_refused(people):
    with pytest.raises(QueryError):
        people.query("SELECT VALUE " + "(" * 5000 + "1" + " + 1)" * 5000 + " FROM c")
