"""Pages, and the tokens between them."""

import base64
import json

import pytest

from cosmos_emulator.query import ContinuationError, run


@pytest.fixture
def numbers(table):
    return table(*({"n": n, "even": n % 2 == 0, "half": n / 2} for n in range(20)))


QUERIES = [
    "SELECT VALUE c.n FROM c",
    "SELECT VALUE c.n FROM c ORDER BY c.n DESC",
    "SELECT VALUE c.n FROM c ORDER BY c.even, c.n DESC",
    "SELECT VALUE c.n FROM c ORDER BY c.even DESC, c.half",
    "SELECT VALUE c.n FROM c ORDER BY c.even DESC",
    "SELECT VALUE c.n FROM c ORDER BY c.missing",
    "SELECT VALUE c.n FROM c ORDER BY c.id DESC",
    "SELECT VALUE c.n FROM c WHERE c.n % 3 = 0 ORDER BY c.half",
    "SELECT TOP 7 VALUE c.n FROM c ORDER BY c.half DESC",
    "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 3 LIMIT 9",
    "SELECT DISTINCT VALUE c.n % 7 FROM c",
    "SELECT VALUE c.n FROM c WHERE c.n > 4 OFFSET 1 LIMIT 100",
]


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("size", [1, 2, 7])
def test_small_pages_give_the_same_answer(numbers, text, size):
    assert numbers.query(text, max_items=size) == numbers.query(text)


def test_rows_of_a_join_may_be_split_over_pages(table):
    container = table(*({"tags": [f"{n}{tag}" for tag in "abc"]} for n in range(3)))
    text = "SELECT VALUE t FROM c JOIN t IN c.tags"
    assert container.query(text, max_items=2) == [f"{n}{tag}" for n in range(3) for tag in "abc"]


def test_no_token_after_the_last_result(numbers):
    page = run("SELECT * FROM c", [], numbers, max_items=20, continuation=None)
    assert (len(page.items), page.continuation) == (20, None)
    page = run("SELECT TOP 5 * FROM c", [], numbers, max_items=5, continuation=None)
    assert (len(page.items), page.continuation) == (5, None)


def test_a_page_ends_before_it_is_too_large(table):
    container = table(*({"text": "x" * 1000} for _ in range(5)))
    page = run("SELECT * FROM c", [], container, max_items=-1, continuation=None, max_bytes=2500)
    assert len(page.items) == 2
    assert page.continuation


def test_one_large_result_still_makes_a_page(table):
    container = table({"text": "x" * 1000}, {"text": "y" * 1000})
    page = run("SELECT * FROM c", [], container, max_items=-1, continuation=None, max_bytes=10)
    assert len(page.items) == 1
    assert page.continuation


def test_later_pages_stay_right_when_documents_come_and_go(numbers):
    text = "SELECT VALUE c.n FROM c ORDER BY c.n"
    first = run(text, [], numbers, max_items=5, continuation=None)
    numbers.add({"id": "early", "n": 1.5})
    numbers.add({"id": "late", "n": 5.5})
    numbers.remove("0004")
    second = run(text, [], numbers, max_items=3, continuation=first.continuation)
    assert second.items == [5, 5.5, 6]


def test_a_long_sort_key_fits_into_no_token_but_pages_all_the_same(table):
    container = table(*({"text": f"{n}" * 3000} for n in range(5)))
    page = run("SELECT c.id FROM c ORDER BY c.text", [], container, max_items=2, continuation=None)
    assert len(page.continuation) < 1000
    text = "SELECT VALUE c.id FROM c ORDER BY c.text"
    assert container.query(text, max_items=2) == container.query(text)


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "!!!!",
        base64.b64encode(b"[]").decode(),
        base64.b64encode(b"{}").decode(),
        base64.b64encode(b"[1,2,3,4,5]").decode(),
        base64.b64encode(b"\xff\xfe").decode(),
        "é",
    ],
)
def test_a_token_of_another_origin_is_refused(numbers, token):
    with pytest.raises(ContinuationError):
        run("SELECT * FROM c", [], numbers, max_items=5, continuation=token)


def test_a_query_is_resumed_with_a_condition_more_as_sdks_do(numbers):
    text = "SELECT VALUE c.n FROM c WHERE {} ORDER BY c.n"
    token = run(text.format("true"), [], numbers, max_items=5, continuation=None).continuation
    rest = run(text.format("c.n >= 4"), [], numbers, max_items=3, continuation=token)
    assert rest.items == [5, 6, 7]


def test_a_token_belongs_to_one_order(numbers):
    token = run(
        "SELECT * FROM c ORDER BY c.n", [], numbers, max_items=1, continuation=None
    ).continuation
    for order in ("", "ORDER BY c.n DESC", "ORDER BY c.m"):
        with pytest.raises(ContinuationError):
            run(f"SELECT * FROM c {order}", [], numbers, max_items=1, continuation=token)


def test_a_token_that_counts_belongs_to_one_query_with_its_parameters(numbers):
    text = "SELECT DISTINCT c.n FROM c WHERE c.n > @n"
    token = run(
        text, [{"name": "@n", "value": 1}], numbers, max_items=1, continuation=None
    ).continuation
    with pytest.raises(ContinuationError):
        run(text, [{"name": "@n", "value": 2}], numbers, max_items=1, continuation=token)


def test_a_tampered_token_is_refused(numbers):
    token = run(
        "SELECT * FROM c ORDER BY c.n", [], numbers, max_items=1, continuation=None
    ).continuation
    fields = json.loads(base64.b64decode(token))
    for tampered in ([*fields[:2], [], 1, 1], [*fields[:2], [[4, "x"]], 1, 1]):
        other = base64.b64encode(json.dumps(tampered).encode()).decode()
        with pytest.raises(ContinuationError):
            run("SELECT * FROM c ORDER BY c.n", [], numbers, max_items=1, continuation=other)
