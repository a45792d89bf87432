"""What sessions offer beyond ADK's interface: the past, forks, rebuilds, state of any
size, the feed.

Runs on every store, and on one with several partitions whose replicas lag.
"""

from __future__ import annotations

from functools import partial

import pytest

from cosmos_emulator import Emulator, Replicas
from cosmosservice import AlreadyExistsError, CosmosSessionService
from cosmosservice.hosting.operation import Unbounded
from cosmosservice.sessions.store.keys import SessionKey
from tests.support.adk import event, texts
from tests.support.stores import DURABLE, CosmosStore


async def the_past(store, who, session):
    past = await store.open().get_session_at(**who, session_id=session.id, at="e2")
    assert (texts(past), past.state) == (["1", "2"], {"a": 2, "kept": 1})
    with pytest.raises(ValueError, match="there is no such point"):
        await store.open().get_session_at(**who, session_id=session.id, at=4)


async def a_fork(store, who, session):
    fork = await store.open().fork_session(**who, session_id=session.id, at=2, new_user_id="bob")
    assert (texts(fork), fork.state) == (["1", "2"], {"a": 2, "kept": 1})
    bob = who | {"user_id": "bob", "session_id": fork.id}
    reader = store.open()
    await reader.catch_up()  # otherwise it may see the sessions as they were a moment ago
    assert texts(await reader.get_session(**bob)) == ["1", "2"]
    await store.open().purge_session(**who, session_id=session.id)
    assert texts(await store.open().get_session_at(**bob, at=1)) == ["1"]
    with pytest.raises(AlreadyExistsError):
        await store.open().fork_session(**bob, new_session_id=fork.id)


async def large_state(store, who, session):
    large = {key: key[-1] * 700_000 for key in ("one", "two", "user:three", "app:four")}
    writer = store.open()
    await writer.catch_up()  # otherwise it may begin with the session as it was a moment ago
    held = await writer.get_session(**who, session_id=session.id)
    await writer.append_event(held, event("large", delta=large))
    await writer.append_event(held, event("small", delta={"one": 1}))
    await writer.flush()
    reader = store.open()
    await reader.catch_up()  # otherwise it may see the session as it was a moment ago
    found = await reader.get_session(**who, session_id=session.id)
    assert {key: found.state[key] for key in large} == large | {"one": 1}


async def the_feed(store, who, session):
    async def changes(since, service):
        scope = who | {"session_id": session.id}
        return [each async for each in service.watch(**scope, since=since, follow=False)]

    await store.open().catch_up()
    service = store.open()
    await service.catch_up()
    all_of_them = await changes("beginning", service)
    assert [each.event.id for each in all_of_them] == ["e1", "e2", "e3"]
    rest = await changes(all_of_them[0].continuation, service)
    assert [each.event.id for each in rest] == ["e2", "e3"]


async def how_many(store, who, session):
    await store.open().create_session(**who)
    service = store.open()
    await service.catch_up()
    assert await service.count_sessions(**who) == 2
    assert await service.count_sessions(app_name=who["app_name"]) == 2


async def a_rebuild(store, who, session):
    """Something else removed the session document."""
    writer = store.open()
    await writer.catch_up()
    await writer.get_session(**who, session_id=session.id)
    await writer.flush()
    await writer.in_store(
        Unbounded("test"), remove_document(SessionKey.of(**who, session_id=session.id))
    )
    assert (await store.open().repair_session(**who, session_id=session.id)).rebuilt
    reader = store.open()
    await reader.catch_up()
    found = await reader.get_session(**who, session_id=session.id)
    assert (texts(found), found.state) == (["1", "2", "3"], {"a": 3, "kept": 1})


def remove_document(key):
    return lambda store: store.sessions.delete(key.document_id, key.user_id)


PARTS = [the_past, a_fork, large_state, the_feed, how_many, a_rebuild]


async def begin(store, app):
    """A session that was created with state, and has three events."""
    who = {"app_name": app, "user_id": "ann"}
    service = store.open()
    session = await service.create_session(**who, state={"a": 0, "kept": 1})
    for number in range(1, 4):
        await service.append_event(
            session, event(str(number), delta={"a": number}, id=f"e{number}")
        )
    return who, session


@pytest.mark.claims(DURABLE)
@pytest.mark.parametrize("part", PARTS, ids=lambda each: each.__name__)
async def test_every_store_can_do_it(store, app, part):
    await part(store, *await begin(store, app))


@pytest.mark.parametrize("part", PARTS, ids=lambda each: each.__name__)
async def test_it_holds_where_replicas_lag(app, part):
    with Emulator(partitions=2, replicas=Replicas(lag=(0, 0.03), seed=5)) as emulator:
        store = CosmosStore(partial(CosmosSessionService.embedded, emulator))
        await part(store, *await begin(store, app))
        await store.close()
