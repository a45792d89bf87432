"""Lists for people: titles, newest first, filters, and counts."""

from __future__ import annotations

import base64
import datetime
import itertools
import json

import pytest

from tests.support.adk import event, reload
from tests.support.stores import DURABLE

pytestmark = pytest.mark.claims(DURABLE)

NAMED = {"__session_metadata__": {"displayName": "Trip to Rome"}}


async def titles(service, app, user="ann", **options):
    page = await service.list_sessions_page(app_name=app, user_id=user, **options)
    assert len(page.titles) == len(page.sessions)
    return page.titles


async def start(service, app, said=None, *, user="ann", session_id=None, at=None, state=None):
    session = await service.create_session(
        app_name=app, user_id=user, session_id=session_id, state=state
    )
    if said is not None:
        fields = {} if at is None else {"timestamp": at}
        await service.append_event(session, event(said, **fields))
    return session


@pytest.fixture
async def five(service, app):
    """Sessions of two users, updated at 1.0 to 5.0."""
    for n, (user, said) in enumerate(
        [
            ("ann", "Book a table"),
            ("ann", "100% wool?"),
            ("bob", "A table, please"),
            ("ann", "What is *this*"),
            ("ann", "another TABLE"),
        ],
        1,
    ):
        await start(service, app, said, user=user, session_id=f"s{n}", at=float(n))
    await service.flush()


async def listed(service, app, user="ann", **options):
    """The ids on all pages of one size."""
    found, continuation = [], None
    while True:
        page = await service.list_sessions_page(
            app_name=app, user_id=user, continuation=continuation, **options
        )
        found += [session.id for session in page.sessions]
        continuation = page.continuation
        if continuation is None:
            return found


async def test_the_title_is_the_first_words_of_the_user(service, app):
    session = await start(service, app)
    assert await titles(service, app) == [""]
    await service.append_event(session, event("Welcome!", author="agent"))
    await service.append_event(session, event("  Where is\nmy order? "))
    await service.append_event(session, event("Hello?"))
    assert await titles(service, app) == ["Where is my order?"]


async def test_the_title_is_the_name_that_adk_web_stores(service, app):
    session = await start(service, app, state=NAMED)
    assert await titles(service, app) == ["Trip to Rome"]
    await service.append_event(session, event("I want to go to Rome"))
    assert await titles(service, app) == ["Trip to Rome"]
    renamed = {"__session_metadata__": {"displayName": "Rome in May"}}
    await service.append_event(session, event(delta=renamed))
    assert await titles(service, app) == ["Rome in May"]


async def test_without_its_name_a_session_has_the_first_words_of_the_user_again(
    store, service, app
):
    session = await start(service, app, "I want to go", state=NAMED)
    await service.append_event(session, event("and back"))
    await service.flush()
    other = store.open()
    again = await reload(other, session, recent=0)
    await other.append_event(again, event(delta={"__session_metadata__": None}))
    assert await titles(other, app) == ["I want to go"]


async def test_a_long_title_is_cut(service, app):
    await start(service, app, "word " * 1000)
    (title,) = await titles(service, app)
    assert len(title) <= 120
    assert title.startswith("word word")
    assert title.endswith("word…")


@pytest.mark.parametrize("name", [7, "", "  ", None, {"a": 1}, "half \ud800", b"bytes"])
async def test_a_strange_name_makes_no_list_fail(service, app, name):
    await start(service, app, "hello", state={"__session_metadata__": {"displayName": name}})
    expected = "half ?" if isinstance(name, str) and name.strip() else "hello"
    assert await titles(service, app) == [expected]


async def test_deleted_sessions_have_titles_and_purged_ones_leave_none(store, service, app):
    session = await start(service, app, "my secret")
    who = {"app_name": app, "user_id": "ann", "session_id": session.id}
    await service.delete_session(**who)
    assert await titles(service, app, deleted=True) == ["my secret"]
    await service.restore_session(**who)
    assert await titles(service, app) == ["my secret"]
    await service.purge_session(**who)
    assert await titles(service, app) == await titles(service, app, deleted=True) == []


async def test_newest_first_is_the_list_from_its_other_end(service, app, five):
    for user, limit in itertools.product(("ann", None), (1, 2, 50)):
        oldest = await listed(service, app, user, limit=limit)
        newest = await listed(service, app, user, limit=limit, newest_first=True)
        assert newest == oldest[::-1]
        assert newest[0] == "s5"


async def test_pages_go_on_between_sessions_of_the_same_moment(service, app):
    for n in range(5):
        await start(service, app, "x", user=f"u{n % 2}", session_id=f"s{n}", at=7.0)
    oldest = await listed(service, app, None, limit=1)
    assert oldest == ["s0", "s2", "s4", "s1", "s3"]
    assert await listed(service, app, None, limit=2, newest_first=True) == oldest[::-1]


@pytest.mark.parametrize("newest_first", [True, False])
@pytest.mark.parametrize("limit", [1, 50])
async def test_only_what_was_updated_in_a_time(service, app, five, limit, newest_first):
    options = {"limit": limit, "newest_first": newest_first}

    async def found(user, **times):
        return sorted(await listed(service, app, user, **times, **options))

    assert await found(None, updated_after=3.0) == ["s3", "s4", "s5"]
    assert await found(None, updated_before=3) == ["s1", "s2"]
    assert await found("ann", updated_after=2, updated_before=5.0) == ["s2", "s4"]
    moment = datetime.datetime.fromtimestamp(4, datetime.UTC)
    assert await found("ann", updated_after=moment) == ["s4", "s5"]
    assert await found("ann", updated_after=5.0, updated_before=5.0) == []


@pytest.mark.parametrize("newest_first", [True, False])
async def test_a_part_of_the_title_is_found_in_any_case(service, app, five, newest_first):
    options = {"limit": 1, "newest_first": newest_first}
    assert sorted(await listed(service, app, title="Table", **options)) == ["s1", "s5"]
    assert sorted(await listed(service, app, None, title="TABLE", **options)) == ["s1", "s3", "s5"]
    for part in ("0% w", "0%", "% w", "%"):
        assert await listed(service, app, title=part, **options) == ["s2"]
    assert await listed(service, app, title="s *t", **options) == ["s4"]
    assert await listed(service, app, title="nothing", **options) == []
    assert len(await listed(service, app, title="", **options)) == 4


async def test_a_wildcard_is_refused(service, app):
    for title in ("*table", "table*", "%table%", "*"):
        with pytest.raises(ValueError, match="There are no wildcards"):
            await service.list_sessions_page(app_name=app, user_id="ann", title=title)


@pytest.mark.parametrize("name", ["updated_after", "updated_before"])
async def test_an_invalid_time_is_refused(service, app, name):
    for when in (datetime.datetime(2026, 1, 1), "today", float("nan"), True):
        with pytest.raises(ValueError, match=name):
            await service.list_sessions_page(app_name=app, user_id="ann", **{name: when})


@pytest.mark.parametrize(
    "other",
    [
        {"user_id": "bob"},
        {"user_id": None},
        {"app_name": "another"},
        {"newest_first": False},
        {"deleted": True},
        {"title": "x"},
        {"updated_after": 1.0},
        {"updated_before": 9.0},
    ],
)
async def test_a_continuation_of_another_list_is_refused(service, app, five, other):
    this = {"app_name": app, "user_id": "ann", "newest_first": True}
    page = await service.list_sessions_page(**this, limit=1)
    with pytest.raises(ValueError, match="belongs to another list"):
        await service.list_sessions_page(**this | other, continuation=page.continuation)


async def test_a_crafted_continuation_shows_nothing_of_others(service, app, five):
    this = {"app_name": app, "user_id": "ann"}
    page = await service.list_sessions_page(**this, limit=1)
    digest, *sort_key = json.loads(base64.urlsafe_b64decode(page.continuation))

    def made(*values):
        return base64.urlsafe_b64encode(json.dumps(values).encode()).decode()

    for bad in ("", "x", "!", made(), made(*sort_key), made(digest, "1", "ann", "s1"), made(None)):
        with pytest.raises(ValueError, match="is not one that"):
            await service.list_sessions_page(**this, continuation=bad)
    with pytest.raises(ValueError, match="belongs to another list"):
        await service.list_sessions_page(**this, continuation=made(digest, 0.0, "bob", "s0"))
    page = await service.list_sessions_page(**this, continuation=made(digest, 0.0, "ann", ""))
    assert {session.user_id for session in page.sessions} == {"ann"}


async def test_sessions_are_counted(service, app, five):
    assert await service.count_sessions(app_name=app) == 5
    assert await service.count_sessions(app_name=app, user_id="ann") == 4
    assert await service.count_sessions(app_name=app, user_id="carl") == 0
    assert await service.count_sessions(app_name="") == 0
    await service.delete_session(app_name=app, user_id="ann", session_id="s1")
    assert await service.count_sessions(app_name=app, user_id="ann") == 3
    assert await service.count_sessions(app_name=app, deleted=True) == 1
