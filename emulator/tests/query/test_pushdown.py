"""The part of a query that SQLite executes changes only the time it takes."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from cosmos_emulator.query.values import UNDEFINED, sort_key

from .conftest import Table

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, -0.0, 0.1 + 0.2, 0.3, 1e300, 5e-324, 2**53, 1e21, 1763258720.123457]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "a", "b", "ab", "é", "\U0001f600", "\uffff", "1", "null"]),
    st.text(max_size=3),
)
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=2), st.just({"x": 1}))
PATHS = ("a", "b", 'n["deep er"]', "n.x", "id")
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "a": VALUES,
        "b": VALUES,
        "n": st.one_of(
            VALUES, st.fixed_dictionaries({}, optional={"deep er": VALUES, "x": VALUES})
        ),
    },
)

path = st.sampled_from([f"c.{path}" for path in PATHS])
parameter = st.sampled_from(["@p", "@q", "@r"])
comparison = st.builds(
    "{} {} {}".format, path, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), parameter
)
mirrored = st.builds(
    "{} {} {}".format, parameter, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), path
)
atom = st.one_of(
    comparison,
    mirrored,
    st.builds("{} {}IN (@p, @q)".format, path, st.sampled_from(["", "NOT "])),
    st.builds("{} {}BETWEEN @p AND @q".format, path, st.sampled_from(["", "NOT "])),
    st.builds(
        "{}({})".format,
        st.sampled_from(
            ["IS_DEFINED", "IS_NULL", "IS_BOOL", "IS_NUMBER", "IS_STRING", "IS_ARRAY", "IS_OBJECT"]
        ),
        path,
    ),
    st.builds("STARTSWITH({}, @p)".format, path),
    st.builds("{} LIKE @p".format, path),
    st.builds("{} + 1 > @p".format, path),
)
predicate = st.recursive(
    atom,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=5,
)


class Plain(Table):
    """The same rows, in the order of creation, whatever the query."""

    def rows(self, where, params, order_by, limit, offset):
        yield from super().rows(None, [], ["rowid"], None, 0)


def reference(documents, text, orders, parameters):
    """WHERE by brute force, one document at a time, and Python's sort."""
    container = Plain(documents)
    try:
        rows = container.query(
            f"SELECT VALUE {{d: c, keys: [{', '.join(f'[{key}]' for key, _ in orders)}]}} "
            f"FROM (SELECT VALUE c FROM c) AS c WHERE {text}",
            **parameters,
        )
    finally:
        container.connection.close()
    if orders and orders[-1][1]:
        rows.reverse()
    for at, (_, descending) in reversed(list(enumerate(orders))):
        keys = [sort_key(row["keys"][at][0] if row["keys"][at] else UNDEFINED) for row in rows]
        order = sorted(range(len(rows)), key=keys.__getitem__)
        if descending:
            order = sorted(range(len(rows)), key=lambda at: _Reversed(keys[at]))
        rows = [rows[at] for at in order]
    return [row["d"]["id"] for row in rows]


class _Reversed:
    def __init__(self, key):
        self.key = key

    def __lt__(self, other):
        return other.key < self.key


@settings(deadline=None, max_examples=200)
@given(
    documents=st.lists(DOCUMENTS, max_size=12),
    text=predicate,
    orders=st.lists(st.tuples(path, st.booleans()), max_size=2, unique_by=lambda item: item[0]),
    parameters=st.fixed_dictionaries({"p": VALUES, "q": SCALARS, "r": SCALARS}),
    size=st.sampled_from([-1, 1, 3]),
    indexed=st.booleans(),
)
def test_pushed_and_evaluated_answers_are_equal(documents, text, orders, parameters, size, indexed):
    documents = [json.loads(json.dumps(document)) for document in documents]
    paths = [("a",), ("n", "x")] if indexed else []
    container = Table(documents, indexed=paths)
    clause = ", ".join(f"{key} {'DESC' if down else 'ASC'}" for key, down in orders)
    try:
        answer = container.query(
            f"SELECT VALUE c.id FROM c WHERE {text}" + (f" ORDER BY {clause}" if clause else ""),
            max_items=size,
            **parameters,
        )
    finally:
        container.connection.close()
    assert answer == reference(documents, text, orders, parameters)
