"""Nothing that a client sends keeps the emulator from answering others."""

import asyncio
import threading
import time
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmos_emulator import Emulator, aside
from cosmos_emulator.messages import Request, Response
from cosmos_emulator.query import regex, run
from cosmos_emulator.query.deadline import Deadline, GivenUp
from cosmos_emulator.query.errors import QueryError
from cosmos_emulator.query.like import like_pattern
from cosmos_emulator.storage import Storage

from .query.conftest import Table
from .raw import create, make_container, send


@pytest.fixture
def filled(emulator):
    make_container(emulator)
    create(emulator, {"id": "1", "pk": "x", "a": "x", "n": list(range(60))})
    create(emulator, {"id": "2", "pk": "x", "a": 5})
    return emulator


def ask(emulator, text, **headers):
    return send(
        emulator,
        "POST",
        "/dbs/db/colls/c/docs",
        {"query": text},
        x_ms_documentdb_isquery="True",
        x_ms_documentdb_query_enablecrosspartition="True",
        **headers,
    )


class Counted(str):
    """A text that counts how often LIKE looks for a part in it."""

    looked = 0

    def find(self, *args):
        Counted.looked += 1
        return super().find(*args)


@pytest.mark.parametrize("length", [400, 800, 5_000, 100_000])
def test_like_looks_for_each_part_of_its_pattern_once(length):
    Counted.looked = 0
    assert not like_pattern("%a%a%a%b%", None).matches(Counted("a" * length))
    assert Counted.looked == 4


@pytest.mark.parametrize(
    ("pattern", "escape", "matching", "other"),
    [
        ("", None, "", "a"),
        ("%", None, "any\ntext", None),
        ("%%", None, "", None),
        ("a%", None, "a", "ba"),
        ("%a", None, "aa", "ab"),
        ("a%a", None, "aa", "a"),
        ("ab%ba", None, "abba", "aba"),
        ("%ab%ab%", None, "xababx", "xabax"),
        ("_%_", None, "ab", "a"),
        ("%_b%c", None, "abbc", "bc"),
        ("a_c", None, "a\nc", "ac"),
        ("%[a-c]_[^a-c]%", None, "xaxx", "xaxa"),
        ("100!%", "!", "100%", "1000"),
        ("%!_%", "!", "a_b", "ab"),
        ("!![%", "!", "![x", "![!"[1:]),
        ("a.*", None, "a.*", "abb"),
        ("[", None, "[", ""),
    ],
)
def test_like_matches_as_documented(pattern, escape, matching, other):
    like = like_pattern(pattern, escape)
    assert like.matches(matching)
    assert other is None or not like.matches(other)


def test_a_like_that_would_compare_for_minutes_is_refused():
    with pytest.raises(QueryError, match="too complex"):
        like_pattern("%_" + "a" * 100_000 + "%", None).matches("a" * 1_000_000)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a+)+$", "a" * 5_000 + "b"),
        ("(a|a)*b", "a" * 5_000),
        (".*a.*a.*a.*b", "a" * 5_000),
        ("(a*)*b", "a" * 5_000),
        ("a?" * 30 + "a" * 31, "a" * 30),
        ("(x+x+)+y", "x" * 5_000),
    ],
)
def test_regex_match_follows_all_ways_at_once_where_there_are_many(monkeypatch, pattern, text):
    monkeypatch.setattr(regex, "MOST_STEPS", 10 * len(pattern) * len(text))
    assert not regex.compiled(pattern, "").found_in(text)


PIECES = [
    *("a", "b", ".", "^", "$", "\\b", "\\B", "(a|b)", "(a|ab)*", "a*", "b+", "a?", "[ab]", "[^a]"),
    *("\\w", "\\s", "(?:a|)", "{2}", "{1,3}", "\n", "(?i:A)", "a{2,}", "(b*a)+", "|", "\\Z", "\\A"),
]


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join),
    st.text("ab \nA", min_size=1, max_size=8),
    st.sampled_from(["", "i", "m", "s"]),
)
def test_both_ways_to_match_find_the_same(pattern, text, modifiers):
    found = regex.compiled(pattern, modifiers)
    if found is not None:
        usual = found.found_in(text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(regex, "MOST_WAYS", 0)
            assert found.found_in(text) is usual


def test_a_pattern_that_only_trying_can_match_is_refused_where_it_could_explode():
    assert regex.compiled(r"(a)\1", "").found_in("baa")
    with pytest.raises(QueryError, match="too long"):
        regex.compiled(r"(a+)+(?=b)\1", "").found_in("a" * 100)


@pytest.mark.parametrize(
    "expression",
    [
        "NOT " * 5_000 + "true",
        "- " * 5_000 + "c.a",
        "[" * 10_000 + "]" * 10_000,
        "+".join(["1"] * 10_000),
        "c" + ".a" * 10_000,
        "(SELECT VALUE " * 5_000 + "1" + ")" * 5_000,
        "??".join(["1"] * 10_000),
        "true ? 1 : " * 5_000 + "1",
        "(" * 30_000 + "1" + ")" * 30_000,
        "true AND " + " OR ".join(f"c.a = {n}" for n in range(20_000)),
        "c.a IN (" + ",".join(str(n % 10) for n in range(100_000)) + ")",
        "\\'" * 100_000,
        "REPLACE(" * 14 + "'aaaaaaaaaa'" + ", 'a', 'aaaaaaaaaa')" * 14,
    ],
    ids=lambda text: text[:14],
)
@pytest.mark.parametrize("clause", ["SELECT VALUE {} FROM c", "SELECT * FROM c WHERE {}"])
def test_a_query_that_is_nested_deeply_or_has_too_many_words_gets_400(filled, clause, expression):
    status, answer = ask(filled, clause.format(expression))
    assert status == 400, answer
    assert ask(filled, "SELECT VALUE c.a FROM c WHERE c.a = 5")[1]["Documents"] == [5]


def test_long_lists_and_chains_are_answered(filled):
    many = ",".join(str(n) for n in range(10_000))
    assert ask(filled, f"SELECT VALUE c.a FROM c WHERE c.a IN ({many})")[1]["Documents"] == [5]
    either = " OR ".join(f"c.a = {n}" for n in range(3_000))
    assert ask(filled, f"SELECT VALUE c.a FROM c WHERE {either}")[1]["Documents"] == [5]


def test_documents_that_are_nested_deeply_get_400(filled):
    for depth in (200, 900, 50_000):
        body = b'{"id":"deep","pk":"x","a":' + b"[" * depth + b"]" * depth + b"}"
        status, answer = send(
            filled, "POST", "/dbs/db/colls/c/docs", body, x_ms_documentdb_partitionkey='["x"]'
        )
        assert status == 400, answer


class Clock:
    """Moves by a second whenever it is read."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        self.seconds += 1
        return self.seconds


def pages(text, *documents, clock=time.monotonic, max_items=-1):
    """The pages of a query, each with a deadline of its own."""
    found, token = [], None
    table = Table(documents)
    with closing(table.connection):
        while True:
            page = run(
                text,
                [],
                table,
                max_items=max_items,
                continuation=token,
                deadline=Deadline(clock),
            )
            found.append(page.items)
            token = page.continuation
            if token is None:
                return found


NUMBERS = {"n": list(range(8))}
JOIN = "FROM c JOIN a IN c.n JOIN b IN c.n"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT VALUE [a, b] {JOIN}",
        f"SELECT VALUE [c.id, a] {JOIN} WHERE a = b",
        f"SELECT VALUE [a, b] {JOIN} WHERE a + b = 14",
        f"SELECT VALUE a {JOIN} WHERE a < 0",
        f"SELECT VALUE [a, b] {JOIN} OFFSET 20 LIMIT 70",
        f"SELECT VALUE [a, b] {JOIN} ORDER BY c.id DESC",
        "SELECT VALUE x FROM c JOIN x IN c.missing",
        "SELECT * FROM c WHERE c.id != '3'",
        "SELECT * FROM c ORDER BY c.id",
    ],
)
def test_a_page_that_takes_long_ends_with_a_continuation_and_nothing_is_lost(text):
    documents = [{"id": str(n), **NUMBERS} for n in range(12)]
    slow = pages(text, *documents, clock=Clock())
    (fast,) = pages(text, *documents)
    assert len(slow) > 1
    assert [item for page in slow for item in page] == fast


def test_a_join_without_results_ends_its_pages_too():
    slow = pages(f"SELECT VALUE 1 {JOIN} WHERE a < 0", NUMBERS, clock=Clock())
    assert len(slow) > 5
    assert not any(slow)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT VALUE COUNT(1) FROM c JOIN a IN c.n JOIN b IN c.n JOIN d IN c.n JOIN e IN c.n",
        "SELECT VALUE 1 FROM c WHERE EXISTS (SELECT VALUE 1 FROM a IN c.n JOIN b IN c.n "
        "JOIN d IN c.n JOIN e IN c.n WHERE a < 0)",
        "SELECT DISTINCT VALUE a FROM c JOIN a IN c.n JOIN b IN c.n JOIN d IN c.n JOIN e IN c.n",
    ],
)
def test_what_cannot_be_continued_is_refused_in_the_end(text):
    with pytest.raises(QueryError, match="was ended after 60 seconds"):
        pages(text, {"n": list(range(60))}, clock=Clock())


def test_a_query_that_nobody_waits_for_is_given_up():
    table = Table([{"n": list(range(60))}])
    text = f"SELECT VALUE COUNT(1) {JOIN} JOIN d IN c.n JOIN e IN c.n"
    left = Deadline(rest=lambda: False)
    with closing(table.connection), pytest.raises(GivenUp):
        run(text, [], table, max_items=1, continuation=None, deadline=left)


# A minute of work, if nobody stops it.
ENDLESS = f"SELECT VALUE COUNT(1) {JOIN} JOIN d IN c.n JOIN e IN c.n JOIN f IN c.n"


async def until(condition):
    while not condition():  # noqa: ASYNC110  a thread does not set an event of the loop
        await asyncio.sleep(0.01)


def long_queries():
    return [each for each in threading.enumerate() if each.name == "emulator-query"]


async def test_others_are_answered_while_a_query_takes_long(container):
    await container.create_item({"id": "1", "pk": "x", "n": list(range(60))})
    endless = asyncio.ensure_future(_all(container.query_items(ENDLESS, partition_key="x")))
    await until(long_queries)
    (thread,) = long_queries()
    await container.create_item({"id": "2", "pk": "x", "n": []})
    assert (await container.read_item("2", "x"))["n"] == []
    brief = container.query_items("SELECT VALUE c.id FROM c WHERE c.id = '2'", partition_key="x")
    assert await _all(brief) == ["2"]
    assert not endless.done()
    endless.cancel()  # over HTTP this closes the connection
    await asyncio.gather(endless, return_exceptions=True)
    await asyncio.to_thread(thread.join, 60)
    assert not thread.is_alive()


def test_what_took_long_begins_aside_the_next_time():
    queries = aside.Aside()
    slow, other = (Request("POST", "/dbs/db/colls/c/docs", {}, body) for body in (b"1", b"2"))
    queries.took(slow, 0.03)
    assert (queries.expects(slow), queries.expects(other)) == (True, False)
    queries.took(slow, 0.001)
    assert not queries.expects(slow)
    for number in range(1000):
        queries.took(Request("POST", "/", {}, b"%d" % number), 0.03)
    remembered = [queries.expects(Request("POST", "/", {}, b"%d" % n)) for n in range(1000)]
    assert 0 < sum(remembered) < 100
    assert remembered[-1]


@pytest.mark.parametrize("spends", ["before its rows", "on its rows", "after its rows"])
def test_only_the_work_on_rows_makes_a_query_long(spends):
    """In memory it waits for a copy of everything, whatever it reads."""
    queries = aside.Aside()
    request = Request("POST", "/", {}, b"any")

    def work():
        until = time.thread_time() + aside.BRIEF
        while time.thread_time() < until:
            pass

    def handle():
        if spends == "before its rows":
            work()
        request.deadline.look()
        if spends == "on its rows":
            work()
        request.deadline.look()
        if spends == "after its rows":
            work()
        return Response(200)

    queries.run(request, handle)
    assert queries.expects(request) is (spends == "on its rows")


async def _all(items):
    return [item async for item in items]


def count_connections(monkeypatch):
    """A list that grows with each connection for a single query."""
    opened, separate = [], Storage.separate_connection
    monkeypatch.setattr(
        Storage, "separate_connection", lambda self: opened.append(self) or separate(self)
    )
    return opened


@pytest.mark.parametrize("path", [":memory:", "data.db"])
def test_a_query_that_takes_long_sees_one_moment(path, tmp_path, monkeypatch):
    monkeypatch.setattr(aside, "BRIEF", -1)
    with Emulator(path if path == ":memory:" else tmp_path / path) as emulator:
        make_container(emulator)
        for n in range(40):
            create(emulator, {"id": f"{n}", "pk": "x", "n": n})
        opened = count_connections(monkeypatch)
        look = Deadline.look

        def delete_meanwhile(deadline):
            if opened:
                monkeypatch.setattr(Deadline, "look", look)
                send(emulator, "DELETE", "/dbs/db/colls/c")
            look(deadline)

        monkeypatch.setattr(Deadline, "look", delete_meanwhile)
        status, answer = ask(emulator, "SELECT VALUE c.n FROM c WHERE c.n + 0 >= 0")
        assert (status, answer["Documents"]) == (200, list(range(40)))
        assert opened
        assert ask(emulator, "SELECT VALUE c.n FROM c")[0] == 404


def test_a_long_text_is_read_aside(filled, monkeypatch):
    monkeypatch.setattr(aside, "BRIEF", 1e9)
    opened = count_connections(monkeypatch)
    ask(filled, "SELECT * FROM c WHERE c.a = 5")
    assert not opened
    ask(filled, f"SELECT * FROM c WHERE c.a = '{'x' * aside.LONG_TEXT}'")
    assert opened


def test_the_condition_of_a_patch_must_be_brief(filled):
    condition = (
        "from c where exists (select value 1 from a in c.n join b in c.n join d in c.n "
        "join e in c.n where a < 0)"
    )
    body = {"operations": [{"op": "set", "path": "/a", "value": 1}], "condition": condition}
    path = "/dbs/db/colls/c/docs/1"
    status, answer = send(filled, "PATCH", path, body, x_ms_documentdb_partitionkey='["x"]')
    assert (status, "takes too long" in answer["message"]) == (400, True)
