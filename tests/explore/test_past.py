"""The state at any point of a session is what the service itself returns, and takes few events to
compute."""

from __future__ import annotations

import random

import pytest

from cosmosservice.explore import past
from cosmosservice.explore.past import Past
from cosmosservice.explore.session_log import SessionLog
from cosmosservice.sessions.store.keys import SessionKey
from tests.support.adk import event

WHO = {"app_name": "shop", "user_id": "ada", "session_id": "long"}
KEY = SessionKey.named("shop", "ada", "long")


async def long_session(service, count, seed=0):
    """Some keys change all the time, some once, some never."""
    dice = random.Random(seed)
    session = await service.create_session(
        **WHO, state={"never": 1, "once": 0, "$odd": 2, "user:x": 1}
    )
    for number in range(1, count + 1):
        delta = {"often": number} if dice.random() < 0.7 else {}
        if dice.random() < 0.1:
            delta |= {f"key {dice.randrange(6)}": {"at": number}, "user:x": number}
        if number == count // 3:
            delta |= {"once": number, "$odd": [number], "void": None}
        await service.append_event(session, event(str(number), delta=delta))
    await service.flush()
    return session


@pytest.mark.parametrize("again", [False, True])
async def test_it_is_what_the_service_says(visit, monkeypatch, again):
    monkeypatch.setattr(past, "STRETCH", 5)
    visitor = await visit()
    if again:  # its log does not begin at 1
        await long_session(visitor.service, 5)
        await visitor.service.delete_session(**WHO)
    await long_session(visitor.service, 24, seed=1)
    head = await SessionLog(visitor.service, KEY).head()
    assert (head.first > 0) == again
    past_states = Past(visitor.service)
    before = None
    for at in range(head.first, head.last + 1):
        session = await visitor.service.get_session_at(**WHO, at=at)
        wanted = {key: value for key, value in session.state.items() if ":" not in key}
        for found_by in (past_states, Past(visitor.service)):
            values = await found_by.state_at(head, at)
            assert {each.key: each.value for each in values} == wanted
        for each in values:
            was = None if before is None else before.get(each.key, past.MISSING)
            marked = before is not None and was != each.value
            assert bool(each.mark) == marked, (at, each.key)
        before = wanted


async def test_near_the_end_and_near_the_beginning_little_is_read(visit, emulator, monkeypatch):
    monkeypatch.setattr(past, "STRETCH", 20)
    writer = await visit()
    session = await writer.service.create_session(**WHO, state={"n": 0})
    for number in range(1, 201):
        await writer.service.append_event(session, event("…", delta={"n": number}))
    await writer.service.flush()
    reader = await visit()
    head = await SessionLog(reader.service, KEY).head()
    found_by = Past(reader.service)

    async def queries(at):
        emulator.clear_requests()
        values = await found_by.state_at(head, at)
        assert [each.value for each in values] == [at]
        return sum(each.operation == "query" for each in emulator.requests)

    assert await queries(197) == 1
    assert await queries(185) == 0  # the same stretch
    assert await queries(3) == 1
    assert await queries(175) == 1
    with pytest.raises(ValueError, match="The session has the revisions 0 to 200"):
        await found_by.state_at(head, 201)
