"""A fork has the events of its source. Their memories belong to both sessions."""

from __future__ import annotations

import pytest

from cosmosservice import CosmosAccount, CosmosMemoryService, CosmosSessionService
from tests.memory.raw import documents_of
from tests.memory.support import USER, found_texts, session
from tests.support.adk import event

WHO = {"app_name": "app", "user_id": USER}
LONG = "a very long story " * 2_000


@pytest.fixture
def sessions():
    """A session, and a fork of it with one more event."""
    shared = [event("tea with milk", id="one"), event(LONG, id="two")]
    return (
        session(*shared, id="source"),
        session(*shared, event("tea with lemon", id="three"), id="fork"),
    )


async def all_of(memory, **options):
    found = [each.id async for each in memory.iter_memories(**WHO, **options)]
    return sorted(found)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("erased", [0, 1])
async def test_erasing_one_leaves_what_the_other_has(open_memory, cosmos, sessions, first, erased):
    """Whichever was added first, and whichever is erased first."""
    for each in (sessions[first], sessions[1 - first]):
        await open_memory().add_session_to_memory(each)
    assert await all_of(open_memory()) == ["one", "three", "two"]
    assert await all_of(open_memory(), session_id="fork") == ["one", "three", "two"]
    assert await all_of(open_memory(), session_id="source") == ["one", "two"]
    assert "tea with milk" in await found_texts(open_memory(), "tea", session_id="fork")
    names = [each.id for each in sessions]
    await open_memory().purge_memories(**WHO, session_id=names[erased])
    memory = open_memory()
    left = ["one", "two"] if erased == 1 else ["one", "three", "two"]
    assert await all_of(memory) == await all_of(memory, session_id=names[1 - erased]) == left
    assert LONG in await found_texts(memory, "long story")
    assert f"'{names[erased]}'" not in str(documents_of(cosmos))
    await memory.purge_memories(**WHO, session_id=names[1 - erased])
    assert documents_of(cosmos) == []


async def test_what_was_deleted_stays_deleted_when_the_source_is_erased(open_memory, sessions):
    for each in sessions:
        await open_memory().add_session_to_memory(each)
    await open_memory().delete_memory(**WHO, memory_id="one")
    await open_memory().purge_memories(**WHO, session_id="source")
    await open_memory().add_session_to_memory(sessions[1])
    assert await all_of(open_memory()) == ["three", "two"]


async def test_a_memory_that_is_added_while_it_is_erased_is_not_lost(
    open_memory, emulator, sessions
):
    """A text in several parts may be lost: see the limits in docs/memory.md."""
    source, fork = sessions
    del source.events[1], fork.events[1]
    await open_memory().add_session_to_memory(source)
    adder = open_memory()
    await all_of(adder)

    async def add(_):
        emulator.faults.clear()
        await adder.add_session_to_memory(fork)

    emulator.faults.call(add, when="before", operation="delete")
    await open_memory().purge_memories(**WHO, session_id="source")
    assert await all_of(open_memory()) == ["one", "three"]


@pytest.mark.parametrize("nth", range(1, 6))
async def test_an_erasure_that_was_cut_short_is_finished_by_the_next(
    open_memory, emulator, sessions, nth
):
    for each in sessions:
        await open_memory().add_session_to_memory(each)
    writes = ("replace", "delete")
    emulator.faults.fail(403, nth=nth, times=None, where=lambda each: each.operation in writes)
    with pytest.raises(Exception, match="403"):
        await open_memory().purge_memories(**WHO, session_id="source")
    emulator.faults.clear()
    memory = open_memory()
    assert await all_of(memory, session_id="fork") == ["one", "three", "two"]
    await memory.purge_memories(**WHO, session_id="source")
    assert LONG in await found_texts(open_memory(), "long story")
    assert "'source'" not in str(documents_of(emulator))


async def test_a_fork_by_the_session_service_keeps_its_memories(emulator):
    async with CosmosAccount.embedded(emulator) as account:
        service = CosmosSessionService(account=account)
        memory = CosmosMemoryService(account=account)
        made = await service.create_session(**WHO, session_id="source")
        await service.append_event(made, event("the tea is green"))
        fork = await service.fork_session(**WHO, session_id="source")
        for each in (made, fork):
            await memory.add_session_to_memory(each)
        await service.purge_session(**WHO, session_id="source")
        assert await found_texts(memory, "tea") == ["the tea is green"]
        await service.purge_session(**WHO, session_id=fork.id)
        assert await found_texts(memory, "tea") == []
