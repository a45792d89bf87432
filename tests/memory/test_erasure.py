"""Erasure is complete and ttls end memories. The documents prove it."""

from __future__ import annotations

import pytest
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from cosmosservice import MemoryPurgeReport
from cosmosservice.errors import ConfigurationError
from tests.memory.raw import documents_of
from tests.memory.support import USER, found, found_texts, session
from tests.support.adk import event

WHO = {"app_name": "app", "user_id": USER}


async def test_purging_a_user_leaves_no_document(memory, cosmos):
    await memory.add_session_to_memory(session("tea " * 5_000, "coffee", id="one"))
    talk = session("cake", id="two")
    await memory.add_session_to_memory(talk)
    await memory.delete_memory(**WHO, memory_id=talk.events[0].id)
    await memory.add_session_to_memory(session("the tea of another", user="bob"))
    report = await memory.purge_memories(**WHO)
    assert (report.memories, report.forgotten, report.parts) == (2, 1, 1)
    assert {each["user_id"] for each in documents_of(cosmos)} == {"bob"}
    assert await memory.purge_memories(**WHO) == MemoryPurgeReport()


async def test_purging_a_session_leaves_the_others(memory, cosmos):
    await memory.add_session_to_memory(session("tea of one", id="one"))
    await memory.add_session_to_memory(session("tea of two", id="two"))
    report = await memory.purge_memories(**WHO, session_id="one")
    assert report.memories == report.documents == 1
    assert await found_texts(memory, "tea") == ["tea of two"]
    assert "tea of one" not in str(documents_of(cosmos))


async def test_a_deleted_memory_leaves_nothing_that_was_said(memory, cosmos):
    talk = session(event("my secret is blue", author="informer"))
    await memory.add_session_to_memory(talk)
    await memory.delete_memory(**WHO, memory_id=talk.events[0].id)
    (left,) = documents_of(cosmos)
    for word in ("secret", "blue", "informer"):
        assert word not in str(left)


async def test_a_memory_disappears_when_its_time_is_over(memory, emulator):
    await memory.add_events_to_memory(
        **WHO, events=[event("tea today")], custom_metadata={"ttl": 60, "mood": "calm"}
    )
    await memory.add_session_to_memory(session("tea always"))
    (brief,) = [hit for hit in await found(memory, "tea") if "mood" in hit.custom_metadata]
    brief.custom_metadata.pop("match")  # why it was found
    assert brief.custom_metadata == {"mood": "calm"}
    emulator.clock.advance(61)
    assert await found_texts(memory, "tea now") == ["tea always"]


async def test_a_service_may_have_a_time_to_live_for_all(open_memory, emulator):
    memory = open_memory(ttl=60, repeat_seconds=0)
    content = types.Content(role="user", parts=[types.Part(text="tea " * 3_000)])
    await memory.add_memory(
        **WHO,
        memories=[
            MemoryEntry(content=content),
            MemoryEntry(content=content, custom_metadata={"ttl": 600}),
        ],
    )
    assert len(await found(memory, "tea")) == 2
    emulator.clock.advance(61)
    assert len(await found(memory, "tea")) == 1
    emulator.clock.advance(600)
    assert await found(memory, "tea") == []
    assert documents_of(emulator) == []


@pytest.mark.parametrize("ttl", [0, -1, True, 1.5, "60", 2**31])
async def test_an_invalid_ttl_is_refused(memory, open_memory, ttl):
    with pytest.raises(ConfigurationError, match="ttl must be a number of seconds"):
        open_memory(ttl=ttl)
    with pytest.raises(ConfigurationError, match="Nothing was stored"):
        await memory.add_events_to_memory(
            **WHO, events=[event("tea")], custom_metadata={"ttl": ttl}
        )
    assert await found(memory, "tea") == []
