"""What was deleted does not come back."""

from __future__ import annotations

import pytest

from tests.memory.support import USER, found, found_texts, session
from tests.support.adk import event
from tests.support.stores import DURABLE, MODERN

pytestmark = pytest.mark.claims(MODERN)


async def test_a_deleted_memory_is_not_found(service, app):
    talk = session("My cat is called Mogli", "The cat weighs five kilos", app=app)
    await service.add_session_to_memory(talk)
    await service.delete_memory(app_name=app, user_id=USER, memory_id=talk.events[0].id)
    assert await found_texts(service, "cat", app=app) == ["The cat weighs five kilos"]


@pytest.mark.parametrize("again", ["session", "events"])
async def test_a_deleted_memory_does_not_come_back(service, app, again):
    talk = session("My cat is called Mogli", app=app)
    await service.add_session_to_memory(talk)
    await service.delete_memory(app_name=app, user_id=USER, memory_id=talk.events[0].id)
    if again == "session":
        await service.add_session_to_memory(talk)
    else:
        await service.add_events_to_memory(
            app_name=app, user_id=USER, events=talk.events, session_id="s"
        )
    assert await found(service, "cat", app=app) == []


@pytest.mark.claims(DURABLE)
async def test_nor_when_another_process_adds_its_session(store, app):
    talk = session("My cat is called Mogli", "The dog is called Pixel", app=app)
    first = store.open()
    await first.add_session_to_memory(talk)
    for said in talk.events:
        await first.delete_memory(app_name=app, user_id=USER, memory_id=said.id)
    other = store.open()
    talk.events.append(event("The parrot is called Rio"))
    await other.add_session_to_memory(talk)
    assert await found_texts(other, "cat dog parrot", app=app) == ["The parrot is called Rio"]


@pytest.mark.parametrize("memory_id", [None, "", "no such memory"])
async def test_deleting_what_is_not_there_changes_nothing(service, app, memory_id):
    await service.add_session_to_memory(session("My cat is called Mogli", app=app))
    await service.delete_memory(app_name=app, user_id=USER, memory_id=memory_id)
    assert len(await found(service, "cat", app=app)) == 1


async def test_deleting_is_for_one_user_alone(service, app):
    said = event("My cat is called Mogli")
    for user in ("ann", "bob"):
        await service.add_session_to_memory(session(said, app=app, user=user))
    await service.delete_memory(app_name=app, user_id="ann", memory_id=said.id)
    assert len(await found(service, "cat", app=app, user="bob")) == 1
