"""The requests of each operation: round trips and request units are part of the product."""

from __future__ import annotations

from tests.support.adk import event, reload
from tests.support.stores import opened_store

WHO = {"app_name": "app", "user_id": "user"}


def documents(emulator):
    return [each for each in emulator.requests if each.resource == "docs"]


async def quiet(service, emulator):
    await service.flush()
    emulator.clear_requests()


async def test_an_append_is_one_create(service, emulator):
    session = await service.create_session(**WHO)
    await service.append_event(session, event("first"))
    await quiet(service, emulator)
    await service.append_event(session, event("second", delta={"key": 1}))
    assert [(each.operation, each.container) for each in documents(emulator)] == [
        ("create", "events")
    ]


async def test_a_turn_of_four_events_writes_the_session_document_once(service, emulator):
    session = await service.create_session(**WHO)
    await quiet(service, emulator)
    for number in range(4):
        await service.append_event(session, event(str(number), delta={"key": number}))
    await service.flush()
    sent = [(each.operation, each.container) for each in documents(emulator)]
    assert sent == [("create", "events")] * 4 + [("replace", "sessions")]


async def test_shared_state_costs_one_more_round_trip(service, emulator):
    session = await service.create_session(**WHO, state={"user:a": 0, "app:a": 0})
    await quiet(service, emulator)
    emulator.faults.latency = 0.2
    await service.append_event(session, event("x", delta={"k": 1, "user:a": 1, "app:a": 1}))
    first, *others = documents(emulator)
    assert (first.operation, first.container) == ("create", "events")
    assert sorted(each.id for each in others) == ["app_state.app", "user_state.app"]
    assert {each.operation for each in others} == {"replace"}
    assert others[0].overlaps(others[1])


async def test_a_get_is_one_round_trip_deep(open_service, emulator):
    writer = open_service()
    session = await writer.create_session(**WHO, state={"user:a": 0, "app:a": 0})
    for number in range(5):
        await writer.append_event(session, event(str(number)))
    await writer.flush()
    reader = open_service()
    for _ in range(2):  # the SDK connects, and learns the containers and their ranges
        await reload(reader, session)
    emulator.clear_requests()
    emulator.faults.latency = 0.3
    await reload(open_service_cold(reader), session)
    sent = documents(emulator)
    assert sorted(each.operation for each in sent) == ["query", "read", "read", "read"]
    assert all(one.overlaps(other) for one in sent for other in sent)


def open_service_cold(service):
    """The same connection with nothing in its cache."""
    store = opened_store(service)
    store.documents._cache._entries.clear()
    store.documents._cache.bytes = 0
    return service


async def test_what_this_process_has_seen_is_not_sent_again(service, emulator):
    session = await service.create_session(**WHO)
    for _ in range(20):
        await service.append_event(session, event("x" * 1000))
    await service.flush()
    await reload(service, session)
    emulator.clear_requests()
    found = await reload(service, session)
    assert len(found.events) == 20
    assert sorted(each.status for each in documents(emulator)) == [200, 304, 404, 404]
    query = next(each for each in documents(emulator) if each.operation == "query")
    assert query.charge < 3  # it found nothing new


async def test_a_warm_turn_of_four_one_kilobyte_events_stays_under_45_request_units(
    service, emulator
):
    session = await service.create_session(**WHO, state={"user:name": "n", "app:version": 1})
    for _ in range(8):
        await service.append_event(session, event("x" * 1000))
    await quiet(service, emulator)
    session = await reload(service, session)
    for number in range(4):
        await service.append_event(session, event("x" * 1000, delta={"step": number}))
    await service.flush()
    assert sum(each.charge for each in documents(emulator)) <= 45


async def test_an_append_costs_the_same_at_any_length(service, emulator):
    session = await service.create_session(**WHO)
    charges = []
    for number in range(300):
        emulator.clear_requests()
        await service.append_event(session, event("x" * 500, timestamp=1_700_000_000.5 + number))
        created = [each for each in documents(emulator) if each.container == "events"]
        charges.append(created[0].charge)
    assert len(set(charges)) == 1


async def test_the_probe_without_events_reads_one_record_at_most(open_service, emulator):
    writer = open_service()
    session = await writer.create_session(**WHO)
    for _ in range(30):
        await writer.append_event(session, event("x" * 1000))
    await writer.flush()
    reader = open_service()
    found = await reload(reader, session, recent=0)
    assert found.events == []
    query = next(each for each in documents(emulator) if each.operation == "query")
    assert query.charge < 4
    await reader.append_event(found, event("goes on"))
    assert len((await reload(writer, session)).events) == 31


async def test_every_request_is_reported_with_its_charge(open_service, emulator):
    charges = []
    service = open_service(on_request_charge=charges.append)
    session = await service.create_session(**WHO)
    await service.append_event(session, event("x"))
    await service.flush()
    assert {each.operation for each in charges} >= {"create_session", "append_event"}
    sent = sum(each.charge for each in documents(emulator))
    assert abs(sum(each.request_units for each in charges) - sent) < 0.01


async def test_a_page_of_all_users_reads_the_state_of_those_on_it(service, emulator):
    for number in range(5):
        user = f"user {number}"
        await service.create_session(app_name="app", user_id=user, state={"user:n": number})
    await quiet(service, emulator)
    page = await service.list_sessions_page(app_name="app", limit=2)
    assert [each.state for each in page.sessions] == [{"user:n": 0}, {"user:n": 1}]
    sent = sorted(each.operation for each in documents(emulator))
    # A sorted query of several partitions is refused, with a plan, and then sent to each range.
    assert sent == ["query", "query", "query plan", "read", "read", "read"]
