"""get_user_state and flush."""

from __future__ import annotations

import pytest

from tests.support.adk import event, reload, texts
from tests.support.stores import DURABLE, MODERN


@pytest.mark.claims(MODERN)
class TestUserState:
    async def test_a_user_without_any_has_an_empty_dict(self, service, app):
        assert await service.get_user_state(app_name=app, user_id="ann") == {}

    async def test_keys_come_without_their_prefix_and_nothing_else_comes(self, service, app):
        session = await service.create_session(
            app_name=app, user_id="ann", state={"user:a": 1, "s": 1, "app:p": 1}
        )
        delta = {"user:b": {"name": "Ann"}, "user:none": None, "s": 2, "app:p": 2, "temp:t": 2}
        await service.append_event(session, event("hello", delta=delta))
        assert await service.get_user_state(app_name=app, user_id="ann") == {
            "a": 1,
            "b": {"name": "Ann"},
            "none": None,
        }

    async def test_it_belongs_to_one_user_of_one_app(self, service, app):
        await service.create_session(app_name=app, user_id="ann", state={"user:a": 1})
        assert await service.get_user_state(app_name=app, user_id="bob") == {}
        assert await service.get_user_state(app_name=app + "_x", user_id="ann") == {}

    async def test_it_shows_the_latest_write_of_any_session(self, service, app):
        sessions = [await service.create_session(app_name=app, user_id="ann") for _ in range(2)]
        for n, session in enumerate(sessions * 2):
            await service.append_event(session, event("hello", delta={"user:n": n}))
            assert await service.get_user_state(app_name=app, user_id="ann") == {"n": n}

    async def test_it_outlives_the_sessions(self, service, app):
        session = await service.create_session(app_name=app, user_id="ann", state={"user:a": 1})
        await service.delete_session(app_name=app, user_id="ann", session_id=session.id)
        assert await service.get_user_state(app_name=app, user_id="ann") == {"a": 1}

    async def test_a_change_to_it_changes_nothing_stored(self, service, app):
        await service.create_session(app_name=app, user_id="ann", state={"user:list": [1]})
        (await service.get_user_state(app_name=app, user_id="ann"))["list"].append(2)
        assert await service.get_user_state(app_name=app, user_id="ann") == {"list": [1]}


async def test_flush_may_be_called_at_any_time_and_changes_nothing(service, app):
    await service.flush()
    session = await service.create_session(app_name=app, user_id="ann")
    await service.append_event(session, event("hello", delta={"k": 1}))
    before = await reload(service, session)
    await service.flush()
    await service.flush()
    assert await reload(service, session) == before


@pytest.mark.claims(DURABLE)
async def test_after_flush_another_process_lists_what_was_appended(store, service, app):
    session = await service.create_session(app_name=app, user_id="ann", state={"k": 0})
    for n in range(3):
        await service.append_event(session, event(str(n), delta={"k": n, "user:n": n}))
    await service.flush()
    listed = (await store.open().list_sessions(app_name=app)).sessions
    assert [(s.id, s.state, s.last_update_time) for s in listed] == [
        (session.id, {"k": 2, "user:n": 2}, session.last_update_time)
    ]


@pytest.mark.claims(DURABLE)
async def test_what_was_acknowledged_is_there_without_flush_or_close(store, service, app):
    session = await service.create_session(app_name=app, user_id="ann")
    await service.append_event(session, event("hello", delta={"k": 1, "user:u": 1, "app:a": 1}))
    stored = await reload(store.open(), session)
    assert texts(stored) == ["hello"]
    assert stored.state == {"k": 1, "user:u": 1, "app:a": 1}
