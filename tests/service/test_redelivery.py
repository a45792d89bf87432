"""The same event appended twice is stored once, whatever the process remembers."""

from __future__ import annotations

import pytest

from cosmosservice.errors import EventIdReusedError
from tests.support.adk import event, reload

WHO = {"app_name": "app", "user_id": "user"}


@pytest.mark.parametrize("cache_bytes", [0, 1_000_000])
async def test_an_event_that_is_delivered_again_is_stored_once(open_service, cache_bytes):
    service = open_service(cache_bytes=cache_bytes)
    session = await service.create_session(**WHO)
    sent = event("once", delta={"k": 1})
    for each in (sent, event("between"), sent, sent.model_copy(deep=True)):
        await service.append_event(session, each)
    assert len(session.events) == 2
    assert await reload(open_service(), session) == session


async def test_another_process_recognises_what_the_session_object_holds(open_service):
    one, other = open_service(), open_service()
    session = await one.create_session(**WHO)
    sent = event("once")
    await one.append_event(session, sent)
    loaded = await reload(one, session)
    await other.append_event(loaded, sent)
    assert len((await reload(open_service(), session)).events) == 1
    await other.append_event(loaded, event("next"))
    await other.append_event(loaded, sent)
    assert len((await reload(open_service(), session)).events) == 2


@pytest.mark.parametrize("cache_bytes", [0, 1_000_000])
async def test_another_event_under_the_same_id_is_refused(open_service, cache_bytes):
    service = open_service(cache_bytes=cache_bytes)
    session = await service.create_session(**WHO)
    sent = event("one")
    await service.append_event(session, sent)
    with pytest.raises(EventIdReusedError, match="Nothing was stored"):
        await service.append_event(session, event("another", id=sent.id))
    assert await reload(open_service(), session) == session
