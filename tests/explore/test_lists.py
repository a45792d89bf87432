"""The list of the sessions of all apps and users."""

from __future__ import annotations

import re

from cosmosservice.explore import catalogue
from cosmosservice.explore.catalogue import Search
from tests.explore.support import read
from tests.support.adk import event


async def make(service, app, user, session_id, timestamp=None):
    session = await service.create_session(app_name=app, user_id=user, session_id=session_id)
    if timestamp is not None:
        await service.append_event(session, event("hello", timestamp=timestamp))
    return session


def listed(page):
    """The ids of the sessions on a page."""
    return re.findall(r'class="title" href="/session?[^"]*session=([^"&]*)"', page)


async def test_sessions_of_all_apps_and_users_are_listed_newest_first(visit):
    visitor = await visit()
    for number, (app, user) in enumerate([("shop", "ada"), ("bank", "bob"), ("shop", "eve")]):
        await make(visitor.service, app, user, f"s{number}", 1_700_000_000.0 + number)
    await visitor.service.flush()
    page = await visitor.get("/")
    assert listed(page) == ["s2", "s1", "s0"]
    assert [name in read(page) for name in ("shop", "bank", "ada", "bob", "eve")] == [True] * 5


async def test_search_finds_by_title_user_id_app_and_day(visit):
    visitor = await visit()
    day = 24 * 3600
    for number, user in enumerate(["ada", "bob", "bobby"]):
        session = await make(visitor.service, f"app{number}", user, f"s{number}")
        text = "A pot of Tea" if user == "bobby" else "Hello"
        said = event(text, timestamp=1_700_000_000 + number * day)
        await visitor.service.append_event(session, said)
    await visitor.service.flush()
    page = await visitor.get("/", q="tea")
    assert listed(page) == ["s2"]
    assert "A pot of Tea" in read(page)
    assert listed(await visitor.get("/", q="BOB")) == ["s2", "s1"]
    assert listed(await visitor.get("/", q="s0")) == ["s0"]
    assert listed(await visitor.get("/", user="bob")) == ["s1"]
    assert listed(await visitor.get("/", app="app0")) == ["s0"]
    assert listed(await visitor.get("/", **{"from": "2023-11-16"})) == ["s2"]
    assert listed(await visitor.get("/", to="2023-11-14")) == ["s0"]
    assert "No session matches." in read(await visitor.get("/", q="nothing"))


async def test_deleted_sessions_are_listed_apart_and_can_be_read(visit):
    visitor = await visit()
    session = await make(visitor.service, "shop", "ada", "gone", 1_700_000_000.0)
    names = {"app_name": "shop", "user_id": "ada", "session_id": session.id}
    await visitor.service.delete_session(**names)
    assert listed(await visitor.get("/")) == []
    assert listed(await visitor.get("/", deleted="yes")) == ["gone"]
    page = await visitor.get("/session", app="shop", user="ada", session="gone")
    notice = "This session is deleted. cosmosservice sessions restore --app shop --user ada -- gone"
    assert notice in read(page)
    assert "hello" in read(page)


async def test_every_session_is_on_exactly_one_page(visit):
    """Also sessions that differ only in their app, and sessions with the same time."""
    visitor = await visit()
    wanted = set()
    for number in range(30):
        for app in ("one", "two"):
            await make(visitor.service, app, f"u{number % 3}", f"s{number}", 1_700_000_000.0)
            wanted.add((app, f"u{number % 3}", f"s{number}"))
    await visitor.service.flush()
    found_by = visitor.explorer.catalogue
    for limit in (1, 7, 50):
        found, continuation = [], None
        while True:
            page = await found_by.find(Search(), limit, continuation)
            found += [(r.key.app_name, r.key.user_id, r.key.session_id) for r in page.rows]
            continuation = page.continuation
            if continuation is None:
                break
        assert len(found) == len(wanted)
        assert set(found) == wanted


async def test_a_page_is_one_query_however_many_sessions_there_are(visit, emulator):
    visitor = await visit()
    for number in range(120):
        await make(visitor.service, "shop", f"u{number}", f"s{number}")
    await visitor.get("/")
    page = await visitor.get("/")
    assert len(listed(page)) == 50
    assert "1 request," in page
    older = re.search(r'rel="next" href="([^"]*)"', page)[1].replace("&amp;", "&")
    _, second = await visitor.answer(older)
    assert len(listed(second)) == 50
    assert "1 request," in second
    assert not set(listed(page)) & set(listed(second))


async def test_a_search_looks_at_some_sessions_at_a_time_and_says_how_far(visit, monkeypatch):
    monkeypatch.setattr(catalogue, "_LOOKS", (5, 10))
    visitor = await visit()
    for number in range(40):
        await make(visitor.service, "shop", f"u{number}", f"s{number}", 1_700_000_000.0 + number)
    await visitor.service.flush()
    await visitor.get("/")
    page = await visitor.get("/", q="s3")
    assert listed(page) == ["s3", *(f"s{number}" for number in range(39, 34, -1))]
    assert "5 sessions searched, back to 2023-11-14" in read(page)
    assert "2 requests," in page  # one for what has this very id
    page = await visitor.get("/", q="S3")
    assert listed(page) == [f"s{number}" for number in range(39, 29, -1)]
    assert "15 sessions searched, back to 2023-11-14" in read(page)
    assert "3 requests," in page
    older = re.search(r'rel="next" href="([^"]*)"', page)[1].replace("&amp;", "&")
    _, second = await visitor.answer(older)
    assert "Older ones have not been searched yet." in read(second)
    found = await visitor.get("/", q="u2")
    assert "s2" in listed(found)


async def test_an_address_that_was_made_up_is_refused(visit):
    visitor = await visit()
    status, text = await visitor.answer("/", params={"continue": "nonsense"})
    assert (status, "is not one that list_sessions_page returned" in text) == (400, True)
    status, text = await visitor.answer("/", params={"from": "yesterday"})
    assert (status, "A day is written as 2026-01-31." in text) == (400, True)
