"""What a get returns while others write."""

from __future__ import annotations

import pytest

from cosmosservice.errors import StaleSessionError
from tests.support.adk import event, reload, texts

WHO = {"app_name": "app", "user_id": "user"}


async def test_a_session_read_before_an_append_of_the_same_process_is_stale(open_service, emulator):
    session = await open_service().create_session(**WHO)
    service = open_service()  # has not seen the session yet

    async def append(_):
        await service.append_event(session, event("first", delta={"k": 1}))

    emulator.faults.call(append, when="after", operation="query", container="events")
    read = await reload(service, session)
    assert (texts(read), read.state) == ([], {})
    with pytest.raises(StaleSessionError):
        await service.append_event(read, event("second"))
