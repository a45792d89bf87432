"""How much of a container a query reads."""

import pytest

from cosmos_emulator.query import run


@pytest.fixture
def log(table):
    """A thousand events of one session, with an index on their number."""
    return table(
        *({"kind": "event" if n % 10 else "mark", "seq": n, "at": n + 0.25} for n in range(1000)),
        indexed=[("seq",), ("at",), ("kind",)],
        composite=[("kind",), ("seq",)],
    )


def page(container, text, max_items=-1, continuation=None):
    return run(text, [], container, max_items=max_items, continuation=continuation)


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("SELECT TOP 50 * FROM c ORDER BY c.seq DESC", 51),
        ("SELECT * FROM c ORDER BY c.seq DESC OFFSET 10 LIMIT 50", 61),
        ("SELECT TOP 50 * FROM c ORDER BY c.at", 51),
        ("SELECT TOP 50 * FROM c WHERE c.seq > 100 ORDER BY c.seq", 52),
        ("SELECT TOP 5 * FROM c WHERE c.kind = 'mark' ORDER BY c.kind", 6),
        ("SELECT TOP 5 * FROM c WHERE c.kind = 'mark' ORDER BY c.kind, c.seq", 6),
        ("SELECT TOP 5 * FROM c WHERE c.id > '0500' ORDER BY c.id", 7),
        ("SELECT * FROM c WHERE c.seq = 77", 1),
        ("SELECT * FROM c WHERE c.seq IN (77, 78)", 2),
        ("SELECT * FROM c WHERE c.seq BETWEEN 77 AND 80", 4),
        ("SELECT * FROM c WHERE STARTSWITH(c.id, '007')", 10),
        ("SELECT * FROM c WHERE c.id LIKE '007%'", 10),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.kind = 'mark'", 100),
        ("SELECT * FROM c WHERE c.kind = 'mark' AND c.seq % 2 = 1", 100),
    ],
)
def test_no_more_than_the_answer_is_read(log, text, most):
    answer = page(log, text)
    assert answer.scanned <= most
    assert "SCAN" not in log.plan()
    assert "TEMP B-TREE" not in log.plan() or "ORDER BY" not in text


def test_a_later_page_starts_where_the_last_one_ended(log):
    text = "SELECT VALUE c.seq FROM c ORDER BY c.at DESC"
    first = page(log, text, 10)
    second = page(log, text, 10, first.continuation)
    assert second.items == list(range(989, 979, -1))
    assert second.scanned <= 13
    assert "USING INDEX" in log.plan()


def test_equal_keys_do_not_make_later_pages_longer(log):
    text = "SELECT VALUE c.seq FROM c ORDER BY c.kind"
    token = None
    for _ in range(5):
        answer = page(log, text, 100, token)
        token = answer.continuation
        assert answer.scanned <= 103


def test_bytes_are_counted(table):
    container = table({"id": "a"}, {"id": "b"})
    answer = page(container, "SELECT * FROM c")
    assert (answer.scanned, answer.scanned_bytes) == (2, 2 * len('{"id": "a"}'))
