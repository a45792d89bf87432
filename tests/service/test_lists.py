"""Lists: the cost of a page, lag, and what a purge leaves."""

from __future__ import annotations

import pytest

from cosmos_emulator import Emulator, Replicas
from cosmosservice import CosmosSessionService
from tests.support.adk import event
from tests.support.raw import raw_store

WHO = {"app_name": "app", "user_id": "user"}


async def spent(service, emulator, **options):
    """(requests, request units) of a page."""
    emulator.clear_requests()
    page = await service.list_sessions_page(**WHO, limit=10, **options)
    assert len(page.sessions) == 10
    sent = [each for each in emulator.requests if each.resource == "docs"]
    return len(sent), sum(each.charge for each in sent)


@pytest.mark.parametrize(
    "options", [{}, {"newest_first": True}, {"updated_after": 0.0}, {"by_id": True}]
)
async def test_a_page_costs_the_same_however_many_sessions_there_are(service, emulator, options):
    costs = []
    for number in range(100):
        await service.create_session(**WHO, session_id=f"{number:03d}")
        if number in (19, 99):
            costs.append(await spent(service, emulator, **options))
    assert costs[0] == costs[1]


async def test_a_session_that_is_rebuilt_has_its_title_again(service, cosmos):
    session = await service.create_session(**WHO)
    await service.append_event(session, event("first words"))
    await service.flush()
    with raw_store(cosmos) as raw:
        raw.sessions.remove(raw.sessions.one(document_type="session"))
    await service.repair_session(**WHO, session_id=session.id)
    assert (await service.list_sessions_page(**WHO)).titles == ["first words"]


async def test_a_purge_leaves_nothing_of_the_title(service, cosmos):
    session = await service.create_session(
        **WHO, state={"__session_metadata__": {"displayName": "a secret"}}
    )
    await service.append_event(session, event("another secret"))
    await service.flush()
    await service.purge_session(**WHO, session_id=session.id)
    with raw_store(cosmos) as raw:
        assert not raw.contains("secret")


async def test_under_lag_a_process_lists_and_counts_what_it_did_itself():
    with Emulator(replicas=Replicas(lag=5.0)) as emulator:
        async with (
            CosmosSessionService.embedded(emulator) as service,
            CosmosSessionService.embedded(emulator) as other,
        ):
            for number in range(3):
                session = await service.create_session(**WHO)
                await service.append_event(session, event(f"hello {number}", timestamp=number))
            page = await service.list_sessions_page(**WHO, newest_first=True, title="HELLO")
            assert page.titles == ["hello 2", "hello 1", "hello 0"]
            assert await service.count_sessions(**WHO) == 3
            emulator.clock.advance(6)
            assert (await other.list_sessions_page(**WHO)).titles == page.titles[::-1]


async def test_sessions_that_have_expired_are_not_counted(open_service, later):
    service = open_service(ttl=60)
    await service.create_session(**WHO)
    assert await service.count_sessions(**WHO) == 1
    later(120)
    await service.get_user_state(**WHO)  # whose answer tells the time
    assert await service.count_sessions(**WHO) == 0
