"""What was added is found exactly once, whoever added it and however often."""

from __future__ import annotations

import asyncio

import pytest
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from tests.memory.support import USER, found, found_texts, session
from tests.support.adk import event
from tests.support.scripted import call
from tests.support.stores import DURABLE, MODERN


async def test_a_session_that_was_added_is_found(service, app):
    await service.add_session_to_memory(session("The garage code is 2011", app=app))
    assert await found_texts(service, "garage code", app=app) == ["The garage code is 2011"]


@pytest.mark.claims(MODERN)
async def test_a_hit_says_who_said_it_when_and_by_which_event(service, app):
    said = event("The garage code is 2011", author="porter", timestamp=1_700_000_000.5)
    await service.add_session_to_memory(session(said, app=app))
    (hit,) = await found(service, "garage", app=app)
    assert (hit.id, hit.author) == (said.id, "porter")
    assert hit.timestamp.startswith("2023-11-14T")
    assert hit.content == said.content


async def test_a_session_that_is_added_again_is_stored_once(service, app):
    talk = session("My cat is called Mogli", app=app)
    for _ in range(3):
        await service.add_session_to_memory(talk)
    assert len(await found(service, "cat", app=app)) == 1


async def test_a_session_that_went_on_is_found_whole(service, app):
    talk = session("My cat is called Mogli", app=app)
    await service.add_session_to_memory(talk)
    talk.events.append(event("The dog is called Pixel"))
    await service.add_session_to_memory(talk)
    assert "My cat is called Mogli" in await found_texts(service, "cat", app=app)
    assert "The dog is called Pixel" in await found_texts(service, "dog", app=app)


async def test_events_are_added_to_what_is_there(service, app):
    await service.add_session_to_memory(session("My cat is called Mogli", app=app))
    more = event("The cat weighs five kilos")
    for _ in range(2):
        await service.add_events_to_memory(
            app_name=app, user_id=USER, events=[more], session_id="s"
        )
    assert sorted(await found_texts(service, "cat", app=app)) == [
        "My cat is called Mogli",
        "The cat weighs five kilos",
    ]


async def test_an_event_without_a_session_is_found(service, app):
    await service.add_events_to_memory(
        app_name=app, user_id=USER, events=[event("Umbrellas are in the hall")]
    )
    assert await found_texts(service, "umbrellas", app=app) == ["Umbrellas are in the hall"]


@pytest.mark.claims(DURABLE)
async def test_adding_a_session_does_not_remove_what_was_added_by_event(service, app):
    aside = event("The cat weighs five kilos")
    await service.add_events_to_memory(app_name=app, user_id=USER, events=[aside], session_id="s")
    await service.add_session_to_memory(session("My cat is called Mogli", app=app))
    assert len(await found(service, "cat", app=app)) == 2


async def test_events_without_text_are_not_hits(service, app):
    picture = types.Part(inline_data=types.Blob(data=b"cat", mime_type="image/png"))
    silent = [
        event(),
        event(content=types.Content(role="model", parts=[])),
        event(content=types.Content(role="model", parts=[call("find_cat", wanted="cat")])),
        event(content=types.Content(role="user", parts=[picture])),
    ]
    await service.add_session_to_memory(session(*silent, app=app))
    assert await found(service, "cat", app=app) == []


async def test_a_session_without_events_adds_nothing(service, app):
    await service.add_session_to_memory(session(app=app))
    assert await found(service, "anything", app=app) == []


@pytest.mark.claims(DURABLE)
async def test_memories_are_added_as_they_are(service, app):
    content = types.Content(role="user", parts=[types.Part(text="Allergic to peanuts")])
    given = [
        MemoryEntry(
            id="allergy",
            content=content,
            author="doctor",
            timestamp="2026-05-01",
            custom_metadata={"source": ["form", 3], "exact": 0.1 + 0.2},
        )
    ]
    await service.add_memory(app_name=app, user_id=USER, memories=given)
    (hit,) = await found(service, "peanuts", app=app)
    hit.custom_metadata.pop("match", None)  # says why it was found
    assert [hit] == given


@pytest.mark.claims(DURABLE)
async def test_a_memory_without_an_id_gets_one(service, app):
    content = types.Content(role="user", parts=[types.Part(text="Allergic to peanuts")])
    for _ in range(2):
        await service.add_memory(
            app_name=app, user_id=USER, memories=[MemoryEntry(content=content)]
        )
    one, other = await found(service, "peanuts", app=app)
    assert one.id
    assert one.id != other.id


@pytest.mark.claims(DURABLE)
async def test_another_process_finds_it_and_does_not_store_it_again(store, app):
    talk = session("The garage code is 2011", "It is the year we married", app=app)
    await store.open().add_session_to_memory(talk)
    other = store.open()
    await other.add_session_to_memory(talk)
    assert [hit.id for hit in await found(other, "garage code", app=app)][:1] == [talk.events[0].id]
    listed = [each.id async for each in other.iter_memories(app_name=app, user_id=USER)]
    assert listed == [each.id for each in talk.events]


@pytest.mark.claims(MODERN)
async def test_of_many_matches_only_the_best_are_found(service, app):
    many = session(*(f"Cat number {number}" for number in range(30)), app=app)
    await service.add_session_to_memory(many)
    assert 10 <= len(await found(service, "cat", app=app)) <= 20


@pytest.mark.claims(DURABLE)
async def test_many_processes_that_add_one_session_at_once_store_it_once(store, app):
    talk = session(*(f"Note {number}" for number in range(20)), app=app)
    await asyncio.gather(*(store.open().add_session_to_memory(talk) for _ in range(4)))
    listed = [each.id async for each in store.open().iter_memories(app_name=app, user_id=USER)]
    assert sorted(listed) == sorted(each.id for each in talk.events)
