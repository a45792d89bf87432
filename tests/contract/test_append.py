"""append_event: what is stored, what the session object shows, and the result of a failure."""

from __future__ import annotations

import pytest
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.sessions import Session

from tests.support.adk import event, reload, texts
from tests.support.stores import DURABLE, MODERN


@pytest.fixture
async def session(service, app):
    return await service.create_session(app_name=app, user_id="ann", state={"k": 1})


async def test_an_event_is_stored_and_shown_by_the_session_object(service, session):
    said = event("hello", delta={"k": 2, "new": 3})
    returned = await service.append_event(session, said)
    assert returned == said
    assert session.events == [said]
    assert session.state == {"k": 2, "new": 3}
    assert session.last_update_time == said.timestamp


async def test_get_after_append_returns_an_equal_session(service, session):
    for n in range(3):
        await service.append_event(session, event(str(n), delta={"n": n, "user:n": n, "app:n": n}))
        assert await reload(service, session) == session


async def test_an_event_that_changes_no_state_is_stored_too(service, session):
    bare = Event(author="user", invocation_id="i")
    await service.append_event(session, bare)
    stored = await reload(service, session)
    assert [item.id for item in stored.events] == [bare.id]
    assert stored.state == {"k": 1}


async def test_the_time_of_the_session_is_that_of_the_last_appended_event(service, session):
    for at in (2_000_000_000.123456, 1_000_000_000.654321):
        await service.append_event(session, event("hello", timestamp=at))
        assert session.last_update_time == at
        assert (await reload(service, session)).last_update_time == at


async def test_a_partial_event_is_returned_as_it_is_and_touches_nothing(service, session):
    before = session.model_copy(deep=True)
    delta = {"k": 2, "temp:t": 1, "user:u": 1, "app:a": 1}
    partial = event("hel", delta=dict(delta), partial=True)
    assert await service.append_event(session, partial) is partial
    assert partial.actions.state_delta == delta
    assert session == before
    assert await reload(service, session) == before


async def test_temp_state_lives_in_the_session_object_only(service, session):
    said = event("hello", delta={"temp:t": 1, "k": 2})
    await service.append_event(session, said)
    assert session.state == {"k": 2, "temp:t": 1}
    assert said.actions.state_delta == {"k": 2}
    stored = await reload(service, session)
    assert stored.state == {"k": 2}
    assert stored.events[0].actions.state_delta == {"k": 2}


async def test_temp_state_lasts_through_the_turn_but_not_into_the_next(service, session):
    await service.append_event(session, event("one", delta={"temp:t": 1}))
    await service.append_event(session, event("two", delta={"k": 2}))
    assert session.state["temp:t"] == 1
    next_turn = await reload(service, session)
    await service.append_event(next_turn, event("three"))
    assert "temp:t" not in next_turn.state


async def test_each_scope_reaches_who_shares_it(service, app, session):
    delta = {"s": 1, "user:u": 1, "app:a": 1}
    await service.append_event(session, event("hello", delta=delta))
    same_user = await service.create_session(app_name=app, user_id="ann")
    other_user = await service.create_session(app_name=app, user_id="bob")
    other_app = await service.create_session(app_name=app + "_x", user_id="ann")
    assert same_user.state == {"user:u": 1, "app:a": 1}
    assert other_user.state == {"app:a": 1}
    assert other_app.state == {}


async def test_shared_state_of_one_session_shows_in_another_when_it_is_read_again(
    service, app, session
):
    other = await service.create_session(app_name=app, user_id="ann")
    await service.append_event(session, event("one", delta={"user:u": 1, "app:a": 1}))
    await service.append_event(other, event("two", delta={"user:u": 2, "user:v": 2}))
    for held in (session, other):
        stored = await reload(service, held)
        assert {k: v for k, v in stored.state.items() if ":" in k} == {
            "user:u": 2,
            "user:v": 2,
            "app:a": 1,
        }


async def test_a_dict_replaces_the_one_before(service, session):
    scopes = ("d", "user:d", "app:d")
    await service.append_event(session, event("one", delta={key: {"a": 1} for key in scopes}))
    await service.append_event(session, event("two", delta={key: {"b": 2} for key in scopes}))
    stored = await reload(service, session)
    assert stored.state == {"k": 1, **{key: {"b": 2} for key in scopes}}
    assert stored == session


async def test_a_change_of_the_session_object_alone_is_not_stored(service, session):
    session.state["unsaid"] = 1
    session.state["user:unsaid"] = 1
    await service.append_event(session, event("hello", delta={"k": 2}))
    assert (await reload(service, session)).state == {"k": 2}


async def test_one_event_may_be_appended_to_two_sessions(service, app, session):
    other = await service.create_session(app_name=app, user_id="ann")
    said = event("to both", delta={"k": 2})
    await service.append_event(session, said)
    await service.append_event(other, said.model_copy(deep=True))
    assert texts(await reload(service, session)) == texts(await reload(service, other))


async def test_none_is_stored_and_does_not_delete(service, session):
    delta = {"k": None, "user:u": None, "app:a": None}
    await service.append_event(session, event("one", delta=delta))
    stored = await reload(service, session)
    assert stored.state == delta
    assert stored.events[0].actions.state_delta == delta
    fresh = await service.create_session(app_name=session.app_name, user_id="ann")
    assert fresh.state == {"user:u": None, "app:a": None}


async def test_a_key_may_be_called_like_a_prefix_or_look_like_a_path(service, session):
    delta = {"": 0, "app": 1, "user": 2, "app:": 3, "user:": 4, "a.b": 5, "a/b": 6, "$id": 7}
    delta |= {"~1": 8, "_etag": 9, "user:a.b/c": 10, "app:$x": 11, "a:b": 12, "ключ": 13}
    await service.append_event(session, event("one", delta=delta))
    assert (await reload(service, session)).state == {"k": 1, **delta}


@pytest.mark.claims(MODERN)
@pytest.mark.parametrize("wrong", [{"id": "none"}, {"user_id": "bob"}, {"app_name": "none"}])
async def test_an_unknown_session_is_refused_and_keeps_what_it_had(service, session, wrong):
    await service.append_event(session, event("hello", delta={"k": 2}))
    unknown = session.model_copy(update=wrong, deep=True)
    with pytest.raises(SessionNotFoundError):
        await service.append_event(unknown, event("lost", delta={"k": 3, "new": 3}))
    assert texts(unknown) == ["hello"]
    assert unknown.state == {"k": 2}
    assert unknown.last_update_time == session.last_update_time
    assert texts(await reload(service, session)) == ["hello"]


@pytest.mark.claims(MODERN)
async def test_a_session_that_was_never_created_is_refused(service, app):
    made_up = Session(id="made-up", app_name=app, user_id="ann")
    with pytest.raises(SessionNotFoundError):
        await service.append_event(made_up, event("lost", delta={"user:u": 1, "app:a": 1}))
    assert made_up.events == []
    fresh = await service.create_session(app_name=app, user_id="ann")
    assert fresh.state == {}


@pytest.mark.claims(MODERN)
async def test_an_event_delivered_twice_is_stored_once(service, session):
    said = event("hello", delta={"count": 1})
    await service.append_event(session, said)
    assert await service.append_event(session, said) == said
    await service.append_event(session, said.model_copy(deep=True))
    assert texts(session) == ["hello"]
    assert texts(await reload(service, session)) == ["hello"]
    await service.append_event(session, event("next"))
    assert texts(await reload(service, session)) == ["hello", "next"]


@pytest.mark.claims(DURABLE)
async def test_another_event_under_a_stored_id_is_refused(service, session):
    await service.append_event(session, event("first", id="same"))
    with pytest.raises(ValueError, match="same"):
        await service.append_event(session, event("second", id="same"))
    assert texts(session) == ["first"]
    await service.append_event(session, event("third"))
    assert texts(await reload(service, session)) == ["first", "third"]


async def test_events_come_back_in_the_order_of_appending(service, session):
    """Timestamps may run backwards: clocks of two hosts, ADK's auth and confirmation flows."""
    for n in range(4):
        await service.append_event(session, event(str(n), timestamp=1_000.0 - n, delta={"n": n}))
    stored = await reload(service, session)
    assert texts(stored) == ["0", "1", "2", "3"]
    assert stored.state["n"] == 3
    assert texts(await reload(service, session, recent=2)) == ["2", "3"]


async def test_events_of_one_moment_keep_their_order(service, session):
    for n in range(6):
        await service.append_event(session, event(str(n), timestamp=1_000.0))
    assert texts(await reload(service, session)) == ["0", "1", "2", "3", "4", "5"]


@pytest.mark.claims(DURABLE)
async def test_what_one_process_appends_another_reads_and_continues(store, service, session):
    await service.append_event(session, event("one", delta={"n": 1, "user:n": 1, "app:n": 1}))
    other = store.open()
    theirs = await reload(other, session)
    assert theirs == session
    await other.append_event(theirs, event("two", delta={"n": 2, "user:n": 2}))
    ours = await reload(service, session)
    assert ours == theirs
    assert ours.state == {"k": 1, "n": 2, "user:n": 2, "app:n": 1}
