"""delete_session: what is deleted, what stays, and what a new session of that id sees."""

from __future__ import annotations

import pytest
from google.adk.errors.session_not_found_error import SessionNotFoundError

from tests.support.adk import event, reload, texts
from tests.support.stores import DURABLE, MODERN


async def test_deleting_what_is_not_there_is_silent(service, app):
    await service.delete_session(app_name=app, user_id="ann", session_id="s")
    session = await service.create_session(app_name=app, user_id="ann", session_id="s")
    await service.delete_session(app_name=app, user_id="bob", session_id="s")
    await service.delete_session(app_name=app + "_x", user_id="ann", session_id="s")
    assert await reload(service, session) == session


async def test_a_deleted_session_is_gone_and_can_be_deleted_again(service, app):
    session = await service.create_session(app_name=app, user_id="ann", session_id="s")
    await service.append_event(session, event("hello"))
    for _ in range(2):
        await service.delete_session(app_name=app, user_id="ann", session_id="s")
        assert await service.get_session(app_name=app, user_id="ann", session_id="s") is None


@pytest.mark.claims(MODERN)
async def test_white_space_around_an_id_is_ignored(service, app):
    await service.create_session(app_name=app, user_id="ann", session_id="s")
    await service.delete_session(app_name=app, user_id="ann", session_id=" s ")
    assert await service.get_session(app_name=app, user_id="ann", session_id="s") is None


async def test_user_and_app_state_survive(service, app):
    session = await service.create_session(
        app_name=app, user_id="ann", state={"k": 1, "user:u": 1, "app:a": 1}
    )
    await service.append_event(session, event("hello", delta={"user:v": 2, "app:b": 2}))
    await service.delete_session(app_name=app, user_id="ann", session_id=session.id)
    fresh = await service.create_session(app_name=app, user_id="ann")
    assert fresh.state == {"user:u": 1, "user:v": 2, "app:a": 1, "app:b": 2}


async def test_others_with_the_id_keep_theirs(service, app):
    kept = [
        await service.create_session(app_name=name, user_id=user, session_id="s")
        for name, user in [(app, "bob"), (app + "_x", "ann")]
    ]
    for session in kept:
        await service.append_event(session, event("kept", delta={"k": 1}))
    gone = await service.create_session(app_name=app, user_id="ann", session_id="s")
    await service.append_event(gone, event("gone"))
    await service.delete_session(app_name=app, user_id="ann", session_id="s")
    for session in kept:
        assert await reload(service, session) == session
        await service.append_event(session, event("still here"))


async def test_a_session_created_again_shows_nothing_old(service, app):
    for generation in range(3):
        session = await service.create_session(
            app_name=app, user_id="ann", session_id="s", state={f"k{generation}": 1}
        )
        assert session.state == {f"k{generation}": 1}
        await service.append_event(session, event(f"said {generation}", delta={"d": generation}))
        stored = await reload(service, session)
        assert texts(stored) == [f"said {generation}"]
        assert stored.state == {f"k{generation}": 1, "d": generation}
        assert stored == session
        await service.delete_session(app_name=app, user_id="ann", session_id="s")


@pytest.mark.claims(MODERN)
async def test_a_deleted_session_accepts_no_event(service, app):
    session = await service.create_session(app_name=app, user_id="ann", state={"k": 1})
    await service.append_event(session, event("hello"))
    await service.delete_session(app_name=app, user_id="ann", session_id=session.id)
    with pytest.raises(SessionNotFoundError):
        await service.append_event(session, event("too late", delta={"k": 2, "user:u": 2}))
    assert texts(session) == ["hello"]
    assert session.state == {"k": 1}
    fresh = await service.create_session(app_name=app, user_id="ann")
    assert fresh.state == {}


@pytest.mark.claims(DURABLE)
async def test_a_session_deleted_by_another_process_accepts_no_event(store, service, app):
    session = await service.create_session(app_name=app, user_id="ann", session_id="s")
    await service.append_event(session, event("hello"))
    await store.open().delete_session(app_name=app, user_id="ann", session_id="s")
    with pytest.raises(SessionNotFoundError):
        await service.append_event(session, event("too late"))
    assert await service.get_session(app_name=app, user_id="ann", session_id="s") is None


@pytest.mark.claims(DURABLE)
@pytest.mark.parametrize("events", [0, 1, 3])
async def test_an_object_of_the_old_session_cannot_write_into_the_new_one(service, app, events):
    old = await service.create_session(app_name=app, user_id="ann", session_id="s")
    for n in range(events):
        await service.append_event(old, event(f"old {n}"))
    await service.delete_session(app_name=app, user_id="ann", session_id="s")
    new = await service.create_session(app_name=app, user_id="ann", session_id="s")
    with pytest.raises(SessionNotFoundError):
        await service.append_event(old, event("ghost", delta={"ghost": 1}))
    await service.append_event(new, event("new"))
    stored = await reload(service, new)
    assert texts(stored) == ["new"]
    assert stored.state == {}
