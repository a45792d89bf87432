"""create_session: ids, the three scopes of state, and what a second creator sees."""

from __future__ import annotations

import asyncio
import time
import uuid

import pytest
from google.adk.errors.already_exists_error import AlreadyExistsError

from tests.support.adk import reload
from tests.support.stores import DURABLE, MODERN


async def test_a_new_session_is_what_was_asked_for(service, app):
    before = time.time()
    session = await service.create_session(app_name=app, user_id="ann", session_id="s")
    assert (session.app_name, session.user_id, session.id) == (app, "ann", "s")
    assert session.state == {}
    assert session.events == []
    assert before <= session.last_update_time <= time.time()


async def test_get_after_create_returns_an_equal_session(service, app):
    session = await service.create_session(app_name=app, user_id="ann", state={"k": "v"})
    assert await reload(service, session) == session


async def test_state_goes_to_the_scope_its_prefix_names(service, app):
    state = {"app:a": 1, "user:u": 2, "temp:t": 3, "s": 4}
    first = await service.create_session(app_name=app, user_id="ann", state=state)
    assert first.state == {"app:a": 1, "user:u": 2, "s": 4}
    same_user = await service.create_session(app_name=app, user_id="ann")
    assert same_user.state == {"app:a": 1, "user:u": 2}
    other_user = await service.create_session(app_name=app, user_id="bob")
    assert other_user.state == {"app:a": 1}
    other_app = await service.create_session(app_name=app + "_x", user_id="ann")
    assert other_app.state == {}


async def test_a_later_creator_updates_shared_state_key_by_key(service, app):
    first = await service.create_session(
        app_name=app, user_id="ann", state={"app:a": 1, "app:b": 1, "user:u": 1}
    )
    await service.create_session(app_name=app, user_id="ann", state={"app:b": 2, "user:v": 2})
    assert (await reload(service, first)).state == {
        "app:a": 1,
        "app:b": 2,
        "user:u": 1,
        "user:v": 2,
    }


async def test_temp_state_of_a_new_session_is_stored_nowhere(service, app):
    session = await service.create_session(app_name=app, user_id="ann", state={"temp:t": 1})
    assert session.state == {}
    assert (await reload(service, session)).state == {}


@pytest.mark.parametrize("blank", [None, "", "   ", "\t\n"])
async def test_without_an_id_or_with_a_blank_one_the_session_gets_a_uuid(service, app, blank):
    session = await service.create_session(app_name=app, user_id="ann", session_id=blank)
    assert str(uuid.UUID(session.id)) == session.id
    assert (await reload(service, session)).id == session.id


async def test_generated_ids_differ(service, app):
    made = [await service.create_session(app_name=app, user_id="ann") for _ in range(3)]
    assert len({session.id for session in made}) == 3


async def test_white_space_around_an_id_is_stripped(service, app):
    session = await service.create_session(app_name=app, user_id="ann", session_id="  s 1\n")
    assert session.id == "s 1"
    assert await service.get_session(app_name=app, user_id="ann", session_id="s 1") == session


async def test_a_taken_id_is_refused_with_adks_words(service, app):
    await service.create_session(app_name=app, user_id="ann", session_id="s")
    with pytest.raises(AlreadyExistsError) as refused:
        await service.create_session(app_name=app, user_id="ann", session_id="s")
    assert str(refused.value) == "Session with id s already exists."


@pytest.mark.claims(MODERN)
async def test_a_taken_id_is_refused_when_padded_too(service, app):
    await service.create_session(app_name=app, user_id="ann", session_id="s")
    with pytest.raises(AlreadyExistsError, match="Session with id s already"):
        await service.create_session(app_name=app, user_id="ann", session_id=" s ")


async def test_a_refused_creator_leaves_no_state_behind(service, app):
    first = await service.create_session(
        app_name=app, user_id="ann", session_id="s", state={"k": 1, "user:u": 1, "app:a": 1}
    )
    with pytest.raises(AlreadyExistsError):
        await service.create_session(
            app_name=app,
            user_id="ann",
            session_id="s",
            state={"k": 2, "user:u": 2, "app:a": 2, "user:new": 2, "app:new": 2},
        )
    assert await reload(service, first) == first


async def test_of_racing_creators_one_wins_and_only_its_state_remains(service, app):
    results = await asyncio.gather(
        *(
            service.create_session(
                app_name=app,
                user_id="ann",
                session_id="s",
                state={"who": n, f"user:{n}": n, f"app:{n}": n},
            )
            for n in range(5)
        ),
        return_exceptions=True,
    )
    won = [result for result in results if not isinstance(result, BaseException)]
    lost = [result for result in results if isinstance(result, BaseException)]
    assert len(won) == 1
    assert all(isinstance(error, AlreadyExistsError) for error in lost)
    who = won[0].state["who"]
    stored = await reload(service, won[0])
    assert stored.state == {"who": who, f"user:{who}": who, f"app:{who}": who}


@pytest.mark.claims(DURABLE)
async def test_of_creators_racing_in_two_processes_one_wins(store, app):
    results = await asyncio.gather(
        *(
            store.open().create_session(
                app_name=app, user_id="ann", session_id="s", state={"who": n, f"user:{n}": n}
            )
            for n in range(2)
        ),
        return_exceptions=True,
    )
    won = [result for result in results if not isinstance(result, BaseException)]
    assert len(won) == 1
    assert sum(isinstance(result, AlreadyExistsError) for result in results) == 1
    who = won[0].state["who"]
    assert (await reload(store.open(), won[0])).state == {"who": who, f"user:{who}": who}


async def test_the_same_id_may_be_used_by_every_user_and_app(service, app):
    made = [
        await service.create_session(
            app_name=name, user_id=user, session_id="s", state={"of": [name, user]}
        )
        for name in (app, app + "_x")
        for user in ("ann", "bob")
    ]
    for session in made:
        assert await reload(service, session) == session


@pytest.mark.claims(DURABLE)
async def test_what_the_caller_does_to_its_state_later_changes_nothing(service, app):
    state = {"list": [1], "user:list": [1], "app:list": [1]}
    session = await service.create_session(app_name=app, user_id="ann", state=state)
    for values in (*state.values(), *session.state.values()):
        values.append(2)
    stored = await reload(service, session)
    assert stored.state == {"list": [1], "user:list": [1], "app:list": [1]}
