"""Sessions with a ttl, and what a purge leaves: both expire."""

from __future__ import annotations

import pytest
from google.adk.sessions.base_session_service import GetSessionConfig

from tests.service.test_lifecycle import recreated, stored
from tests.support.adk import event, reload, texts

WHO = {"app_name": "app", "user_id": "user"}
THIS = WHO | {"session_id": "s"}
HOUR = 3600


async def test_an_unused_session_goes_with_all_its_events(open_service, cosmos, later):
    service = open_service(ttl=HOUR)
    session = await service.create_session(**THIS, state={"user:u": 1, "app:a": 1})
    await service.append_event(session, event("x"))
    await service.flush()
    later(0.99 * HOUR)
    reader = open_service()
    assert await reader.get_session(**THIS) is not None
    await reader.flush()
    later(1.2 * HOUR)
    fresh = open_service()
    assert await fresh.get_session(**THIS) is None
    assert (await fresh.list_sessions(**WHO)).sessions == []
    later(4 * HOUR)
    assert stored(cosmos) == []
    assert await fresh.get_user_state(**WHO) == {"u": 1}


async def test_a_session_in_use_stays_whole(open_service, later):
    service = open_service(ttl=HOUR)
    session = await service.create_session(**THIS)
    for number in range(12):
        await service.append_event(session, event(str(number)))
        await service.flush()
        later(0.6 * HOUR)
    found = await open_service().get_session(**THIS)
    assert texts(found) == [str(number) for number in range(12)]


async def test_reading_is_use_too(open_service, later):
    service = open_service()
    session = await service.create_session(**THIS, ttl=HOUR)
    await service.append_event(session, event("first"))
    for _ in range(10):
        later(0.8 * HOUR)
        found = await service.get_session(**THIS)
        assert texts(found) == ["first"]
        await service.flush()


async def test_sessions_without_ttl_stay(open_service, later):
    service = open_service()
    session = await service.create_session(**THIS)
    await service.append_event(session, event("x"))
    await service.flush()
    later(10_000 * HOUR)
    assert len((await reload(open_service(), session)).events) == 1


async def test_what_is_left_of_an_expired_session_hides_nothing_of_its_successor(
    open_service, emulator, later, caplog
):
    first = open_service(ttl=100)
    session = await first.create_session(**THIS)
    for _ in range(5):
        await first.append_event(session, event("old"))
    later(150)
    second = open_service()
    session = await second.create_session(**THIS)
    await second.append_event(session, event("new", delta={"k": 1}))
    await second.flush()
    config = GetSessionConfig(num_recent_events=0)
    probed = await open_service().get_session(**THIS, config=config)
    assert (probed.events, probed.state) == ([], {"k": 1})
    assert not caplog.records


async def test_a_session_that_expires_leaves_nothing_of_one_that_it_replaced(service, cosmos):
    await recreated(service, ttl=HOUR)
    assert "s3cret" not in str(stored(cosmos))
    assert texts(await service.get_session(**THIS)) == ["new"]


async def test_what_a_purge_leaves_expires(service, emulator):
    session = await service.create_session(**THIS)
    await service.append_event(session, event("x"))
    await service.purge_session(**THIS)
    emulator.clock.advance(31 * 24 * 3600)
    assert stored(emulator) == []
    assert stored(emulator, "sessions") == []


@pytest.mark.parametrize("days", [9, 10, 11, 30, 90])
async def test_a_purge_erases_the_events_of_a_session_of_any_ttl(service, cosmos, days):
    session = await service.create_session(**THIS, ttl=days * 24 * HOUR)
    await service.append_event(session, event("s3cret"))
    await service.append_event(session, event("s3cret " * 400_000))
    await service.delete_session(**THIS)
    assert (await service.purge_session(**THIS)).documents > 0
    assert "s3cret" not in str(stored(cosmos))
