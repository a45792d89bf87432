"""Events over Cosmos DB's 2 MB are stored and read back whole."""

from __future__ import annotations

import os

import pytest
from google.genai import types

from cosmosservice.errors import StaleSessionError
from tests.support.adk import event, reload

WHO = {"app_name": "app", "user_id": "user"}


def image(size: int):
    part = types.Part(inline_data=types.Blob(data=os.urandom(size), mime_type="image/png"))
    return event(content=types.Content(role="user", parts=[part]))


@pytest.mark.parametrize("size", [1_400_000, 1_500_000, 2_100_000, 9_000_000])
async def test_an_image_comes_back_whole(open_service, size):
    writer = open_service()
    session = await writer.create_session(**WHO)
    sent = image(size)
    await writer.append_event(session, event("before", delta={"a": 1}))
    await writer.append_event(session, sent)
    await writer.append_event(session, event("after", delta={"b": 2}))
    found = await reload(open_service(), session)
    assert found.events[1] == sent
    assert found == session


async def test_text_with_any_characters_may_be_large(open_service):
    writer = open_service()
    session = await writer.create_session(**WHO)
    await writer.append_event(session, event('ä€😀\\"\n' * 400_000, delta={"after": True}))
    found = await reload(open_service(), session)
    assert found == session
    assert found.state["after"] is True


async def test_a_rejected_large_event_leaves_no_chunks(open_service, emulator):
    one, other = open_service(), open_service()
    session = await one.create_session(**WHO)
    stale = await reload(other, session)
    await one.append_event(session, event("first"))
    with pytest.raises(StaleSessionError):
        await other.append_event(stale, image(3_000_000))
    chunks = [each for each in emulator.requests if each.id and "-" in each.id.split(".")[0]]
    created = {each.id for each in chunks if each.status == 201}
    removed = {each.id for each in chunks if each.status == 204}
    assert created
    assert created == removed


@pytest.mark.parametrize("nth", [1, 2, 3])
async def test_a_lost_answer_costs_a_large_event_nothing(open_service, emulator, nth):
    service = open_service()
    session = await service.create_session(**WHO)
    sent = image(2_500_000)  # two chunks, then the event itself
    rule = emulator.faults.drop_after(operation="create", container="events", nth=nth)
    await service.append_event(session, sent)
    assert rule.hits == 1
    assert (await reload(open_service(), session)).events == [sent]
