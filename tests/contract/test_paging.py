"""Beyond ADK's interface: sessions page by page, and events one after the other."""

from __future__ import annotations

import pytest

from cosmosservice.errors import SessionNotFoundError
from tests.support.adk import event, texts
from tests.support.stores import DURABLE

pytestmark = pytest.mark.claims(DURABLE)


@pytest.fixture
async def seven(service, app):
    """Sessions of two users, updated one after the other, three of them at the same moment."""
    for n, (user, at) in enumerate(
        [("ann", 1.0), ("bob", 2.0), ("ann", 3.0), ("ann", 3.0), ("bob", 3.0), ("ann", 4.0)]
    ):
        session = await service.create_session(app_name=app, user_id=user, session_id=f"s{n}")
        await service.append_event(session, event("hi", timestamp=at, delta={"n": n, "user:n": n}))
    gone = await service.create_session(app_name=app, user_id="ann", session_id="gone")
    await service.delete_session(app_name=app, user_id="ann", session_id=gone.id)
    await service.flush()


async def pages(service, app, user, limit):
    """All pages, until there is no continuation."""
    found, continuation = [], None
    while True:
        page = await service.list_sessions_page(
            app_name=app, user_id=user, limit=limit, continuation=continuation
        )
        assert len(page.sessions) <= limit
        found.append(page.sessions)
        continuation = page.continuation
        if continuation is None:
            return found


@pytest.mark.parametrize("user", ["ann", None])
@pytest.mark.parametrize("limit", [1, 2, 50])
async def test_pages_together_are_the_list(service, app, seven, user, limit):
    listed = (await service.list_sessions(app_name=app, user_id=user)).sessions
    paged = await pages(service, app, user, limit)
    assert [session for page in paged for session in page] == listed
    assert [len(page) for page in paged[:-1]] == [limit] * (len(paged) - 1)


async def test_a_page_of_nothing_has_no_continuation(service, app):
    page = await service.list_sessions_page(app_name=app, user_id="ann", limit=5)
    assert (page.sessions, page.continuation) == ([], None)


async def test_a_continuation_goes_on_in_another_process(store, service, app, seven):
    first = await service.list_sessions_page(app_name=app, limit=2)
    second = await store.open().list_sessions_page(
        app_name=app, limit=50, continuation=first.continuation
    )
    assert [s.id for s in (*first.sessions, *second.sessions)] == [
        "s0",
        "s1",
        "s2",
        "s3",
        "s4",
        "s5",
    ]


async def test_a_session_made_between_two_pages_displaces_none(service, app, seven):
    first = await service.list_sessions_page(app_name=app, user_id="ann", limit=2)
    await service.create_session(app_name=app, user_id="ann", session_id="new")
    second = await service.list_sessions_page(
        app_name=app, user_id="ann", limit=2, continuation=first.continuation
    )
    assert [session.id for session in (*first.sessions, *second.sessions)] == [
        "s0",
        "s2",
        "s3",
        "s5",
    ]


async def test_a_limit_below_one_is_refused(service, app):
    with pytest.raises(ValueError, match="limit"):
        await service.list_sessions_page(app_name=app, user_id="ann", limit=0)


async def test_events_come_one_after_the_other(service, app):
    session = await service.create_session(app_name=app, user_id="ann", session_id="s")
    for n in range(7):
        await service.append_event(session, event(str(n), timestamp=100.0 - n))
    for page_size in (2, 7, 500):
        found = [
            item
            async for item in service.iter_events(
                app_name=app, user_id="ann", session_id=" s ", page_size=page_size
            )
        ]
        assert found == session.events


@pytest.mark.parametrize("size", [0, -1])
def test_a_page_of_events_below_one_is_refused_at_once(service, app, size):
    with pytest.raises(ValueError, match="page_size"):
        service.iter_events(app_name=app, user_id="ann", session_id="s", page_size=size)


@pytest.mark.parametrize("anew", [True, False])
async def test_a_session_deleted_between_two_pages_of_its_events_is_not_taken_for_complete(
    store, service, app, anew
):
    who = {"app_name": app, "user_id": "ann", "session_id": "s"}
    session = await service.create_session(**who)
    for n in range(3):
        await service.append_event(session, event(str(n)))
    events = service.iter_events(**who, page_size=2)
    found = [await anext(events), await anext(events)]
    other = store.open()
    await other.delete_session(**who)
    if anew:
        await other.append_event(await other.create_session(**who), event("another's"))
    with pytest.raises(SessionNotFoundError, match="while its events were read"):
        found.append(await anext(events))
    assert found == session.events[:2]


@pytest.mark.parametrize("deleted", [True, False])
async def test_a_session_that_is_not_there_has_no_events(service, app, deleted):
    if deleted:
        session = await service.create_session(app_name=app, user_id="ann", session_id="s")
        await service.append_event(session, event("hello"))
        await service.delete_session(app_name=app, user_id="ann", session_id="s")
    found = [
        item async for item in service.iter_events(app_name=app, user_id="ann", session_id="s")
    ]
    assert found == []


async def test_events_of_a_predecessor_are_not_among_them(service, app):
    for said in ("old", "new"):
        session = await service.create_session(app_name=app, user_id="ann", session_id="s")
        await service.append_event(session, event(said))
        if said == "old":
            await service.delete_session(app_name=app, user_id="ann", session_id="s")
    events = service.iter_events(app_name=app, user_id="ann", session_id="s")
    session.events = [item async for item in events]
    assert texts(session) == ["new"]
