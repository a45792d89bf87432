"""With several partitions, the SDK has to merge the results of a sorted query."""

from __future__ import annotations

import datetime

import pytest

from cosmos_emulator import Emulator
from cosmosservice.account import container as cosmos_client
from tests.support.adk import event
from tests.support.raw import raw_store

PARTITIONS = 3


@pytest.fixture
def emulator():
    with Emulator(partitions=PARTITIONS) as emulator:
        yield emulator


async def create(service, count):
    """Creates a session for each user and appends to it, in the order of the users."""
    users = [f"user {number}" for number in range(count)]
    for number, user in enumerate(users):
        session = await service.create_session(
            app_name="app", user_id=user, state={"user:number": number}
        )
        await service.append_event(session, event("hello", timestamp=1000.0 + number))
    await service.flush()
    return users


def merged(emulator):
    """How often the SDK had to merge."""
    return sum(each.substatus == 1004 for each in emulator.requests)


async def test_the_sessions_of_all_users_are_listed(service, emulator):
    users = await create(service, 20)
    emulator.clear_requests()
    listed = (await service.list_sessions(app_name="app")).sessions
    assert [(each.user_id, each.state) for each in listed] == [
        (user, {"user:number": number}) for number, user in enumerate(users)
    ]
    assert merged(emulator) == 1


async def test_the_sessions_of_all_users_are_listed_page_by_page(service, emulator):
    users = await create(service, 20)
    emulator.clear_requests()
    found, continuation, pages = [], None, 0
    while pages == 0 or continuation is not None:
        page = await service.list_sessions_page(app_name="app", limit=7, continuation=continuation)
        found += [(each.user_id, each.state["user:number"]) for each in page.sessions]
        continuation = page.continuation
        pages += 1
    assert found == [(user, number) for number, user in enumerate(users)]
    assert merged(emulator) == pages == 3


async def test_what_was_deleted_is_purged_in_all_partitions(service, emulator):
    users = await create(service, 9)
    listed = (await service.list_sessions(app_name="app")).sessions
    for each in listed[:8]:
        await service.delete_session(app_name="app", user_id=each.user_id, session_id=each.id)
    report = await service.purge_deleted(older_than=datetime.timedelta(0))
    assert report.sessions == 8
    listed = (await service.list_sessions(app_name="app")).sessions
    assert [each.user_id for each in listed] == users[8:]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("last_update_time", None),
        ("last_update_time", "now"),
        ("user_id", 7),
        ("session_id", None),
        ("session_id", 7),
        ("session_id", {"an": "object"}),
    ],
)
async def test_a_damaged_document_does_not_end_the_list_of_the_others(
    service, emulator, field, value
):
    users = await create(service, 9)
    damaged = {"app_name": "app", "status": "active", "last_update_time": 1003.5}
    damaged |= {"user_id": "user 3", "session_id": "damaged"}
    with raw_store(emulator) as raw:
        raw.sessions.put(damaged | {"id": "damaged", field: value})
    listed = await service.list_sessions(app_name="app")
    page = await service.list_sessions_page(app_name="app", limit=50)
    for found in (listed.sessions, page.sessions):
        assert [each.user_id for each in found] == users


@pytest.mark.parametrize("request_number", [2, 3, 4, 5, 6])
async def test_a_request_that_fails_in_between_loses_nothing_of_a_list(
    service, emulator, monkeypatch, request_number
):
    monkeypatch.setattr(cosmos_client, "_PAGE", 2)
    users = await create(service, 12)
    failure = emulator.faults.fail(408, operation="query", container="sessions", nth=request_number)
    listed = await service.list_sessions(app_name="app")
    assert failure.hits == 1
    assert [each.user_id for each in listed.sessions] == users


async def test_a_plan_that_cannot_be_had_is_asked_for_again(service, emulator):
    users = await create(service, 5)
    failure = emulator.faults.fail(503, operation="query plan")
    listed = await service.list_sessions(app_name="app")
    assert failure.hits == 1
    assert [each.user_id for each in listed.sessions] == users
