"""For any query text, the answer is a page or a QueryError."""

from contextlib import closing, suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from cosmos_emulator.query import QueryError
from cosmos_emulator.query.aggregates import AGGREGATES
from cosmos_emulator.query.functions import CLOCK_FUNCTIONS, FUNCTIONS, LAZY_FUNCTIONS

from .conftest import Table

PIECES = (
    "SELECT * VALUE TOP DISTINCT FROM c IN JOIN WHERE AND OR NOT ORDER BY GROUP ASC DESC OFFSET "
    "LIMIT BETWEEN LIKE ESCAPE EXISTS ARRAY RANK AS ( ) [ ] { } , . : ? ?? || + - / % & | ^ ~ << "
    "= != < <= > >= 1 0 -1 1.5 1e400 0xFF 'a' \"b\" '\\u0041' @p @q id a b c.a c.b[0] null true "
    "undefined COUNT(1) SUM(c.a) LOWER(c.id) -- ; # é \n"
)
WORDS = PIECES.split(" ")
ARGUMENTS = st.sampled_from(
    [
        *("c.a", "c.id", "c.missing", "null", "true", "-1", "0", "1", "2.5", "1e308", "64"),
        *("1e20", "''", "'a'", "'yyyy'", "'dd'", "'2020-02-29T00:00:00'", "'('", "'9999-12-31'"),
        *("[]", "[1, 2]", "['a']", "[1e308, 1e308]", "{}", "{a: 1}", "COUNT(1)", "RAND()"),
    ]
)
CALLS = st.builds(
    lambda name, arguments: f"{name}({', '.join(arguments)})",
    st.sampled_from([*FUNCTIONS, *LAZY_FUNCTIONS, *CLOCK_FUNCTIONS, *AGGREGATES]),
    st.lists(ARGUMENTS, max_size=4),
)


def ask(text):
    container = Table([{"id": "1", "a": [1, "x"]}, {"id": "2", "a": 5, "b": None}])
    with closing(container.connection), suppress(QueryError):
        container.query(text, p=1, q="x")


@settings(deadline=None, max_examples=150)
@given(st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join))
def test_words_in_any_order(text):
    ask(text)
    ask("SELECT " + text)
    ask("SELECT * FROM c WHERE " + text)


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=40))
def test_any_characters(text):
    ask(text)
    ask(f"SELECT VALUE {text}")


@settings(deadline=None, max_examples=300)
@given(CALLS, ARGUMENTS)
def test_functions_of_any_arguments(call, other):
    ask(f"SELECT VALUE {call} FROM c WHERE {other} != {call}")
