"""Two objects of one session: the second to append is told, and nothing of its event is stored."""

from __future__ import annotations

import asyncio

import pytest
from google.adk.sessions import Session

from cosmosservice.errors import StaleSessionError
from tests.support.adk import event, reload, texts
from tests.support.stores import DURABLE

pytestmark = pytest.mark.claims(DURABLE)

ADKS_TEXT = (
    "The session has been modified in storage since it was loaded. Please reload the session"
    " before appending more events."
)


@pytest.fixture
async def session(service, app):
    made = await service.create_session(app_name=app, user_id="ann", state={"k": 0})
    await service.append_event(made, event("hello"))
    return made


async def test_every_session_object_carries_the_revision_it_was_read_at(service, app):
    session = await service.create_session(app_name=app, user_id="ann")
    seen = [session._storage_update_marker]
    for n in range(2):
        await service.append_event(session, event(str(n)))
        assert (await reload(service, session))._storage_update_marker == (
            session._storage_update_marker
        )
        seen.append(session._storage_update_marker)
    assert all(isinstance(marker, str) for marker in seen)
    assert len(set(seen)) == 3


@pytest.mark.parametrize("recent", [None, 0, 1])
async def test_a_stale_object_is_refused_with_adks_words(service, session, recent):
    stale = await reload(service, session, recent=recent)
    await service.append_event(session, event("first", delta={"k": 1}))
    with pytest.raises(StaleSessionError) as refused:
        await service.append_event(stale, event("second", delta={"k": 2}))
    assert str(refused.value) == ADKS_TEXT
    assert isinstance(refused.value, ValueError)


async def test_a_refused_event_leaves_no_trace(store, service, session):
    stale = await reload(service, session)
    await service.append_event(session, event("first", delta={"k": 1}))
    expected = stale.model_copy(deep=True)
    with pytest.raises(StaleSessionError):
        await service.append_event(
            stale, event("second", delta={"k": 2, "n": 2, "user:u": 2, "app:a": 2, "temp:t": 2})
        )
    stale.state.pop("temp:t", None)
    assert stale == expected
    for reader in (service, store.open()):
        stored = await reload(reader, session)
        assert texts(stored) == ["hello", "first"]
        assert stored.state == {"k": 1}


async def test_an_object_that_reloads_can_go_on(service, session):
    stale = await reload(service, session)
    await service.append_event(session, event("first"))
    second = event("second", delta={"k": 2})
    with pytest.raises(StaleSessionError):
        await service.append_event(stale, second)
    fresh = await reload(service, stale)
    await service.append_event(fresh, second)
    assert texts(await reload(service, session)) == ["hello", "first", "second"]


async def test_staleness_is_a_matter_of_revision_not_of_time(service, session):
    """The newer event has the older time. The stale object is refused all the same."""
    stale = await reload(service, session)
    await service.append_event(session, event("first", timestamp=1.0))
    with pytest.raises(StaleSessionError):
        await service.append_event(stale, event("second", timestamp=3_000_000_000.0))


async def test_a_current_object_whose_time_drifted_is_not_stale(service, session):
    session.last_update_time -= 0.0001
    await service.append_event(session, event("next"))
    assert texts(await reload(service, session)) == ["hello", "next"]


async def test_a_stale_object_in_another_process_is_refused(store, service, session):
    other = store.open()
    theirs = await reload(other, session)
    await service.append_event(session, event("first"))
    with pytest.raises(StaleSessionError):
        await other.append_event(theirs, event("second"))
    assert texts(await reload(other, session)) == ["hello", "first"]


async def test_of_objects_that_append_at_once_one_wins(store, service, session):
    """Round after round, in whichever process they are."""
    other = store.open()
    for n in range(4):
        current = await reload(service, session)
        copies = [(service, current), (service, current.model_copy(deep=True))]
        copies.append((other, await reload(other, session)))
        results = await asyncio.gather(
            *(
                writer.append_event(copy, event(f"{n}-{i}", delta={f"{n}-{i}": n}))
                for i, (writer, copy) in enumerate(copies)
            ),
            return_exceptions=True,
        )
        assert sum(isinstance(result, StaleSessionError) for result in results) == 2
        assert sum(not isinstance(result, BaseException) for result in results) == 1
    stored = await reload(service, session)
    assert len(stored.events) == 5
    won = texts(stored)[1:]
    assert stored.state == {"k": 0, **{name: int(name[0]) for name in won}}


async def test_a_session_built_by_hand_may_append_if_its_time_is_current(service, session):
    by_hand = Session(
        id=session.id,
        app_name=session.app_name,
        user_id=session.user_id,
        last_update_time=session.last_update_time,
    )
    await service.append_event(by_hand, event("by hand", delta={"k": 1}))
    await service.append_event(by_hand, event("again"))
    stored = await reload(service, session)
    assert texts(stored) == ["hello", "by hand", "again"]
    assert stored.state == {"k": 1}


async def test_a_session_built_by_hand_with_an_old_time_is_stale(service, session):
    by_hand = Session(
        id=session.id,
        app_name=session.app_name,
        user_id=session.user_id,
        last_update_time=session.last_update_time - 10,
    )
    with pytest.raises(StaleSessionError) as refused:
        await service.append_event(by_hand, event("by hand"))
    assert str(refused.value) == ADKS_TEXT
    assert by_hand.events == []
    assert texts(await reload(service, session)) == ["hello"]


async def test_a_listed_session_may_be_appended_to_until_another_appends(service, app, session):
    listed = (await service.list_sessions(app_name=app, user_id="ann")).sessions[0]
    old = listed.model_copy(deep=True)
    await service.append_event(listed, event("listed", delta={"k": 1}))
    with pytest.raises(StaleSessionError):
        await service.append_event(old, event("too late"))
    stored = await reload(service, session)
    assert texts(stored) == ["hello", "listed"]
    assert stored.state == {"k": 1}


async def test_sessions_of_one_user_do_not_conflict(service, app):
    sessions = [await service.create_session(app_name=app, user_id="ann") for _ in range(4)]
    await asyncio.gather(
        *(
            service.append_event(s, event("hi", delta={f"user:{n}": n, "app:last": n}))
            for n, s in enumerate(sessions)
        )
    )
    stored = await reload(service, sessions[0])
    assert {k: v for k, v in stored.state.items() if k.startswith("user:")} == {
        f"user:{n}": n for n in range(4)
    }
    assert stored.state["app:last"] in range(4)
