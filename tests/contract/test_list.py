"""list_sessions: of which user, in which order, with which content."""

from __future__ import annotations

import pytest

from tests.support.adk import event
from tests.support.stores import MODERN


async def names(service, app, user=None):
    """(user, id) of the listed sessions, in order."""
    listed = await service.list_sessions(app_name=app, user_id=user)
    return [(session.user_id, session.id) for session in listed.sessions]


async def touched(service, app, user, session_id, at):
    """A session whose last event was at the given time."""
    session = await service.create_session(app_name=app, user_id=user, session_id=session_id)
    await service.append_event(session, event("hello", timestamp=at))
    return session


async def test_nothing_is_listed_for_an_unknown_app_or_user(service, app):
    await service.create_session(app_name=app, user_id="ann")
    assert await names(service, app + "_x") == []
    assert await names(service, app + "_x", "ann") == []
    assert await names(service, app, "bob") == []


async def test_a_user_sees_only_own_sessions_of_this_app(service, app):
    for name, user in [(app, "ann"), (app, "bob"), (app + "_x", "ann")]:
        await service.create_session(app_name=name, user_id=user, session_id=f"{user}1")
    assert await names(service, app, "ann") == [("ann", "ann1")]
    assert await names(service, app, "bob") == [("bob", "bob1")]


async def test_none_lists_every_user_and_the_empty_string_does_not(service, app):
    await service.create_session(app_name=app, user_id="ann", session_id="s")
    await service.create_session(app_name=app, user_id="bob", session_id="s")
    assert sorted(await names(service, app, None)) == [("ann", "s"), ("bob", "s")]
    assert await names(service, app, "") == []
    await service.create_session(app_name=app, user_id="", session_id="s")
    assert await names(service, app, "") == [("", "s")]


async def test_listed_sessions_have_merged_state_and_no_events(service, app):
    ann = await service.create_session(
        app_name=app, user_id="ann", session_id="a", state={"k": 1, "user:u": 1, "app:a": 1}
    )
    await service.create_session(app_name=app, user_id="bob", session_id="b", state={"user:u": 2})
    await service.append_event(ann, event("hello", delta={"k": 2, "user:v": 2, "app:b": 2}))
    for user in ("ann", None):
        listed = {
            session.id: session
            for session in (await service.list_sessions(app_name=app, user_id=user)).sessions
        }
        assert listed["a"].events == []
        assert listed["a"].state == {"k": 2, "user:u": 1, "user:v": 2, "app:a": 1, "app:b": 2}
        assert listed["a"].last_update_time == ann.last_update_time
    assert listed["b"].state == {"user:u": 2, "app:a": 1, "app:b": 2}


@pytest.mark.claims(MODERN)
async def test_the_most_recently_updated_session_comes_last(service, app):
    await touched(service, app, "ann", "old", 100.0)
    await touched(service, app, "ann", "new", 300.0)
    middle = await touched(service, app, "bob", "middle", 200.0)
    assert await names(service, app, "ann") == [("ann", "old"), ("ann", "new")]
    assert await names(service, app) == [("ann", "old"), ("bob", "middle"), ("ann", "new")]
    await service.append_event(middle, event("again", timestamp=400.0))
    assert await names(service, app) == [("ann", "old"), ("ann", "new"), ("bob", "middle")]


@pytest.mark.claims(MODERN)
async def test_ties_are_ordered_by_user_and_id(service, app):
    for user, session_id in [("bob", "a"), ("ann", "c"), ("ann", "b"), ("bob", "B")]:
        await touched(service, app, user, session_id, 100.0)
    assert await names(service, app) == [("ann", "b"), ("ann", "c"), ("bob", "B"), ("bob", "a")]
    assert await names(service, app, "ann") == [("ann", "b"), ("ann", "c")]


async def test_a_deleted_session_is_not_listed(service, app):
    await service.create_session(app_name=app, user_id="ann", session_id="gone")
    await service.create_session(app_name=app, user_id="ann", session_id="kept")
    await service.delete_session(app_name=app, user_id="ann", session_id="gone")
    assert await names(service, app, "ann") == [("ann", "kept")]
    assert await names(service, app) == [("ann", "kept")]


@pytest.mark.claims(MODERN)
async def test_a_change_to_a_listed_session_changes_nothing_stored(service, app):
    await service.create_session(
        app_name=app, user_id="ann", state={"list": [1], "user:list": [1], "app:list": [1]}
    )
    for session in (await service.list_sessions(app_name=app, user_id="ann")).sessions:
        for values in session.state.values():
            values.append(2)
    listed = (await service.list_sessions(app_name=app, user_id="ann")).sessions
    assert listed[0].state == {"list": [1], "user:list": [1], "app:list": [1]}
