"""on_conflict="rebase": a stale session object takes in what is new, and appends after it."""

from __future__ import annotations

import asyncio

import pytest
from google.adk.errors.session_not_found_error import SessionNotFoundError

from tests.support.adk import event, reload, texts
from tests.support.stores import DURABLE

pytestmark = pytest.mark.claims(DURABLE)


@pytest.fixture
def service(store):
    return store.open(on_conflict="rebase")


@pytest.fixture
async def session(service, app):
    made = await service.create_session(app_name=app, user_id="ann", state={"k": 0})
    await service.append_event(made, event("hello"))
    return made


async def test_a_stale_object_catches_up_and_appends(store, service, session):
    stale = await reload(service, session)
    other = store.open()
    theirs = await reload(other, session)
    await other.append_event(theirs, event("first", delta={"k": 1, "a": 1, "user:u": 1}))
    await other.append_event(theirs, event("second", delta={"k": 2}))
    await service.append_event(stale, event("third", delta={"k": 3}))
    assert texts(stale) == ["hello", "first", "second", "third"]
    assert stale.state == {"k": 3, "a": 1, "user:u": 1}
    assert await reload(service, session) == stale
    await service.append_event(stale, event("fourth"))
    assert texts(await reload(other, session))[-1] == "fourth"


async def test_all_that_append_at_once_land_in_one_order(store, service, session):
    services = [service, service, store.open(on_conflict="rebase")]
    copies = [await reload(writer, session) for writer in services]
    await asyncio.gather(
        *(
            writer.append_event(copy, event(str(n), delta={f"k{n}": n}))
            for n, (writer, copy) in enumerate(zip(services, copies, strict=True))
        )
    )
    stored = await reload(service, session)
    assert sorted(texts(stored)) == ["0", "1", "2", "hello"]
    assert stored.state == {"k": 0, "k0": 0, "k1": 1, "k2": 2}
    for copy in copies:
        assert texts(copy) == texts(stored)[: len(copy.events)]


async def test_a_deleted_session_still_accepts_nothing(store, service, app, session):
    await store.open().delete_session(app_name=app, user_id="ann", session_id=session.id)
    with pytest.raises(SessionNotFoundError):
        await service.append_event(session, event("too late"))
    assert texts(session) == ["hello"]
