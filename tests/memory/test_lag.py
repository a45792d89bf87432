"""Lagging replicas show older states. Operations that must see everything still do."""

from __future__ import annotations

import pytest

from cosmos_emulator import Emulator
from cosmos_emulator.replicas import Replicas
from cosmosservice import CosmosMemoryService, CosmosSessionService
from tests.memory.support import USER, found, session, texts
from tests.support.adk import event

pytestmark = pytest.mark.needs("lag")

WHO = {"app_name": "app", "user_id": USER}


@pytest.fixture
def replicas():
    return Replicas()


@pytest.fixture
def emulator(replicas):
    with Emulator(replicas=replicas) as made:
        yield made


@pytest.fixture
async def talk(open_memory, replicas):
    """A session that another process has just added, and that no replica shows yet."""
    writer = open_memory()
    await found(writer, "connect")
    replicas.hold("memories")
    said = session("My cat is called Mogli", "The cat weighs five kilos")
    await writer.add_session_to_memory(said)
    assert len(await found(writer, "cat")) == 2  # a process sees its own writes at once
    return said


async def test_it_is_there_that_a_replica_may_show_less(open_memory, talk):
    assert await found(open_memory(), "cat") == []


async def test_a_purge_erases_what_replicas_do_not_show_yet(open_memory, talk, replicas):
    report = await open_memory().purge_memories(**WHO)
    assert report.memories == 2
    replicas.catch_up("memories")
    assert await found(open_memory(), "cat") == []


async def test_a_delete_deletes_it(open_memory, talk, replicas):
    await open_memory().delete_memory(**WHO, memory_id=talk.events[0].id)
    replicas.catch_up("memories")
    (left,) = await found(open_memory(), "cat")
    assert left.id == talk.events[1].id


async def test_a_list_is_complete(open_memory, talk):
    listed = [each.id async for each in open_memory().iter_memories(**WHO)]
    assert listed == [each.id for each in talk.events]


async def test_adding_stores_once(open_memory, talk, replicas):
    talk.events.append(event("The cat sleeps"))
    await open_memory().add_session_to_memory(talk)
    replicas.catch_up("memories")
    listed = [each.id async for each in open_memory().iter_memories(**WHO)]
    assert listed == [each.id for each in talk.events]


async def test_what_was_deleted_does_not_come_back(open_memory, talk, replicas):
    await open_memory().delete_memory(**WHO, memory_id=talk.events[0].id)
    other = open_memory()
    await other.add_session_to_memory(talk)
    replicas.catch_up("memories")
    assert talk.events[0].id not in [each.id for each in await found(other, "cat")]
    assert isinstance(other, CosmosMemoryService)


async def test_a_session_that_was_just_created_again_finds_only_its_own(
    open_memory, emulator, replicas
):
    """A replica still shows the document of its predecessor."""
    names = {**WHO, "session_id": "s"}
    async with CosmosSessionService.embedded(emulator) as sessions:
        reader, writer = open_memory(), open_memory()
        old = await sessions.create_session(**names)
        await sessions.append_event(old, event("tea of old"))
        await writer.add_session_to_memory(old)
        await sessions.delete_session(**names)
        assert texts(await found(reader, "tea", session_id="s")) == ["tea of old"]
        replicas.hold("sessions")
        new = await sessions.create_session(**names)
        await sessions.append_event(new, event("tea of new"))
        await writer.add_session_to_memory(new)
        assert texts(await found(reader, "new tea", session_id="s")) == ["tea of new"]
        replicas.release()
