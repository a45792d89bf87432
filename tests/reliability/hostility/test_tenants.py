"""Two tenants with the same session id share a partition, and nothing else."""

from __future__ import annotations

import asyncio
import time

import pytest

from cosmosservice.errors import SessionNotFoundError, StaleSessionError
from tests.support.adk import event, reload, texts
from tests.support.raw import raw_store

NAMES = [("app", "ada"), ("app", "bob"), ("shop", "ada"), ("app", "app:app"), ("app:app", "ada")]


def who(name):
    return {"app_name": name[0], "user_id": name[1], "session_id": "same"}


async def test_they_never_see_block_or_count_each_other(open_service, cosmos):
    """All write at once, each from two processes. Every log counts from 1 and holds only its own
    events."""
    services = [open_service(), open_service(on_conflict="rebase")]

    async def live(name):
        session = await services[0].create_session(**who(name), state={"user:who": name[1]})
        for number in range(4):
            delta = {"n": number, "app:who": name[0]}
            said = event(f"{name} {number}", delta=delta)
            await services[number % 2].append_event(session, said)

    await asyncio.gather(*map(live, NAMES))
    reader = open_service()
    for name in NAMES:
        found = await reader.get_session(**who(name))
        assert texts(found) == [f"{name} {number}" for number in range(4)]
        assert found.state == {"n": 3, "app:who": name[0], "user:who": name[1]}
    with raw_store(cosmos) as raw:
        for app, user in NAMES:
            numbers = [body["seq"] for body in raw.events.all(app_name=app, user_id=user)]
            assert numbers == [1, 2, 3, 4]


async def test_a_conflict_of_one_is_not_a_conflict_of_the_other(open_service):
    one, two = open_service(), open_service()
    ours = await one.create_session(**who(NAMES[0]))
    theirs = await two.create_session(**who(NAMES[1]))
    stale = await reload(two, ours)
    await one.append_event(ours, event("first"))
    await two.append_event(theirs, event("first"))
    with pytest.raises(StaleSessionError):
        await two.append_event(stale, event("late"))
    await two.append_event(theirs, event("second"))
    assert texts(await reload(one, theirs)) == ["first", "second"]


@pytest.mark.parametrize("ending", ["delete_session", "purge_session"])
async def test_the_end_of_one_is_not_the_end_of_the_other(open_service, emulator, ending):
    service = open_service()
    sessions = {name: await service.create_session(**who(name)) for name in NAMES}
    for name, session in sessions.items():
        await service.append_event(session, event(str(name), delta={"user:k": 1}))
    gone, *others = NAMES
    await getattr(service, ending)(**who(gone))
    with pytest.raises(SessionNotFoundError):
        await service.append_event(sessions[gone], event("late"))
    again = await service.create_session(**who(gone))
    await service.append_event(again, event("anew"))
    for name in others:
        await service.append_event(sessions[name], event("still"))
        assert texts(await open_service().get_session(**who(name))) == [str(name), "still"]
    await service.purge_user(app_name=gone[0], user_id=gone[1], include_state=True)
    listed = (await open_service().list_sessions(app_name="app")).sessions
    assert {each.user_id for each in listed} == {"bob", "app:app"}
    assert await service.get_user_state(app_name="app", user_id="bob") == {"k": 1}


async def test_a_renamed_session_object_brings_nothing_along(open_service):
    """What an object knows about one session does not apply to another."""
    service = open_service()
    mine = await service.create_session(**who(NAMES[0]))
    theirs = await service.create_session(**who(NAMES[1]))
    await service.append_event(theirs, event("theirs", timestamp=time.time() + 1))
    mine.user_id = "bob"
    with pytest.raises(StaleSessionError):
        await service.append_event(mine, event("x"))
    mine.user_id = "nobody"
    with pytest.raises(SessionNotFoundError):
        await service.append_event(mine, event("x"))
    assert texts(await open_service().get_session(**who(NAMES[1]))) == ["theirs"]
    assert texts(await open_service().get_session(**who(NAMES[0]))) == []
