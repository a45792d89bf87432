"""Sessions without events: their origin tells how they began, should their document be lost."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta

import pytest

from cosmosservice.errors import SessionNotFoundError
from tests.support.adk import event, reload, texts
from tests.support.raw import raw_store

WHO = {"app_name": "app", "user_id": "user"}
THIS = WHO | {"session_id": "s"}
STATES = {
    "nothing": {},
    "values": {
        "topic": "tea",
        "user:name": "Ada",
        "app:mode": "dark",
        "steps": [1, 2.5, {"a": None}],
    },
    "a large value": {"topic": "tea", "text": "x" * 100_000},
    "more than one document takes": {f"k{n}": os.urandom(500_000).hex() for n in range(3)},
}


@pytest.fixture
def raw(emulator):
    with raw_store(emulator) as store:
        yield store


def remove_document(raw):
    """Something else removes the session document, and the large values beside it."""
    for body in raw.sessions.all(document_type="session") + raw.sessions.all(
        document_type="state_value"
    ):
        raw.sessions.remove(body)


def origins(raw):
    return raw.events.all(document_type="origin")


@pytest.mark.parametrize("ttl", [None, 3600])
@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
async def test_a_session_without_events_is_rebuilt_as_it_was(open_service, raw, state, ttl):
    service = open_service(ttl=ttl)
    session = await service.create_session(**THIS, state=state)
    await service.flush()
    remove_document(raw)
    other = open_service()
    assert await other.get_session(**THIS) is None
    report = await other.repair_session(**THIS)
    assert report.rebuilt
    found = await other.get_session(**THIS)
    assert found.state == state
    assert found.events == []
    assert found.last_update_time == session.last_update_time
    await service.append_event(session, event("first", delta={"topic": "milk"}))
    found = await reload(open_service(), session)
    assert texts(found) == ["first"]
    assert found.state == state | {"topic": "milk"}


async def test_a_session_whose_first_event_comes_soon_has_no_origin(open_service, emulator, raw):
    service = open_service()
    session = await service.create_session(**THIS, state={"a": 1})
    await service.append_event(session, event("first"))
    await service.flush()
    assert origins(raw) == []
    remove_document(raw)
    await open_service().repair_session(**THIS)
    assert (await reload(open_service(), session)).state == {"a": 1}


async def test_neither_a_list_nor_a_get_waits_for_the_origin(open_service, emulator, raw):
    service = open_service()
    await service.create_session(**THIS)
    before = len(emulator.requests)
    assert await service.get_session(**THIS) is not None
    assert len((await service.list_sessions(**WHO)).sessions) == 1
    sent = {each.operation for each in list(emulator.requests)[before:]}
    assert sent <= {"read", "query", "list"}
    assert origins(raw) == []
    await service.flush()
    assert len(origins(raw)) == 1


async def test_it_is_stored_in_the_background(open_service, raw, monkeypatch):
    monkeypatch.setattr("cosmosservice.sessions.store.projector._LATEST", 0.01)
    await open_service().create_session(**THIS)
    for _ in range(500):
        if origins(raw):
            return
        await asyncio.sleep(0.01)
    pytest.fail("There is no origin.")


async def test_the_next_reader_stores_it_if_the_creator_died(open_service, emulator, raw):
    creator = open_service()
    await creator.create_session(**THIS, state={"a": 1})
    reader = open_service()
    await reader.get_session(**THIS)
    await reader.flush()
    assert [each["initial_state"] for each in origins(raw)] == [{"a": 1}]
    before = len(emulator.requests)
    await reader.get_session(**THIS)
    await reader.flush()
    assert all(each.operation in ("read", "query") for each in list(emulator.requests)[before:])


async def test_a_repair_stores_it_if_nobody_has(open_service, raw):
    """As for a session that an older version created."""
    creator = open_service()
    await creator.create_session(**THIS, state={"a": 1})
    await open_service().repair_session(**THIS)
    assert [each["initial_state"] for each in origins(raw)] == [{"a": 1}]


async def test_a_session_that_is_rebuilt_is_found_by_its_name(open_service, raw):
    service = open_service()
    await service.create_session(**THIS, state={"__session_metadata__": {"displayName": "Tea"}})
    await service.flush()
    remove_document(raw)
    other = open_service()
    await other.repair_session(**THIS)
    assert (await other.list_sessions_page(**WHO, title="tea")).titles == ["Tea"]


async def test_a_deleted_session_without_events_is_rebuilt_as_deleted(open_service, raw):
    service = open_service()
    await service.create_session(**THIS, state={"a": 1})
    await service.flush()
    await service.delete_session(**THIS)
    remove_document(raw)
    other = open_service()
    await other.repair_session(**THIS)
    assert await other.get_session(**THIS) is None
    await other.restore_session(**THIS)
    assert (await other.get_session(**THIS)).state == {"a": 1}


async def test_a_session_that_was_restored_without_events_has_its_origin(open_service, raw):
    service = open_service()
    await service.create_session(**THIS, state={"a": 1})
    await service.delete_session(**THIS)
    await service.restore_session(**THIS)
    await service.get_session(**THIS)
    await service.flush()
    remove_document(raw)
    await open_service().repair_session(**THIS)
    assert (await open_service().get_session(**THIS)).state == {"a": 1}


async def test_of_several_sessions_of_one_id_the_last_is_rebuilt(open_service, raw):
    service = open_service()
    session = await service.create_session(**THIS, state={"a": "first"})
    await service.append_event(session, event("of the first"))
    await service.delete_session(**THIS)
    await service.create_session(**THIS, state={"a": "second"})
    await service.flush()
    remove_document(raw)
    other = open_service()
    await other.repair_session(**THIS)
    found = await other.get_session(**THIS)
    assert (found.state, found.events) == ({"a": "second"}, [])
    await other.purge_deleted(older_than=timedelta(0))
    assert not raw.contains("of the first")
    assert (await open_service().get_session(**THIS)).state == {"a": "second"}


async def test_a_purge_removes_it(open_service, raw):
    service = open_service()
    await service.create_session(**THIS, state={"secret": "4711"})
    await service.flush()
    assert raw.contains("4711")
    await service.purge_session(**THIS)
    assert not raw.contains("4711")
    assert origins(raw) == []
    remove_document(raw)
    with pytest.raises(SessionNotFoundError, match="nothing to rebuild one from"):
        await open_service().repair_session(**THIS)


async def test_an_origin_that_comes_after_the_purge_is_removed(open_service, raw):
    """The creator has not noticed that another process erased the session."""
    creator = open_service()
    await creator.create_session(**THIS, state={"secret": "4711"})
    await open_service().purge_session(**THIS)
    await creator.flush()
    assert origins(raw) == []
    assert not raw.contains("4711")


@pytest.mark.parametrize("size", ["small", "large"])
async def test_an_origin_is_removed_with_the_predecessors_of_a_session(open_service, raw, size):
    service = open_service()
    state = {"secret": "4711"} if size == "small" else {"secret": ["4711" * 300_000] * 3}
    await service.create_session(**THIS, state=state)
    await service.flush()
    await service.delete_session(**THIS)
    await service.create_session(**THIS, state={"new": True})
    await service.flush()
    assert len(origins(raw)) == 2
    await service.purge_deleted(older_than=timedelta(0))
    assert [each["initial_state"] for each in origins(raw)] == [{"new": True}]
    assert raw.events.all(document_type="chunk") == []
    assert raw.sessions.all(document_type="state_value") == []


async def test_a_repair_removes_no_part_of_an_origin(open_service, raw, monkeypatch):
    service = open_service()
    state = STATES["more than one document takes"]
    await service.create_session(**THIS, state=state)
    await service.flush()
    assert raw.events.all(document_type="chunk")
    monkeypatch.setattr("cosmosservice.sessions.store.repair.DAY", -1.0)
    await open_service().repair_session(**THIS)
    remove_document(raw)
    await open_service().repair_session(**THIS)
    assert (await open_service().get_session(**THIS)).state == state


async def test_a_fork_without_events_has_its_own(open_service, raw):
    service = open_service()
    session = await service.create_session(**THIS, state={"a": 1})
    await service.append_event(session, event("first", delta={"a": 2}))
    await service.fork_session(**THIS, at=0, new_session_id="fork")
    await service.flush()
    await service.purge_session(**THIS)
    remove_document(raw)
    other = open_service()
    await other.repair_session(**WHO, session_id="fork")
    assert (await other.get_session(**WHO, session_id="fork")).state == {"a": 1}


async def test_an_identity_that_may_only_read_gets_the_session_without_a_warning(
    open_service, emulator, raw, caplog
):
    await open_service().create_session(**THIS, state={"a": 1})
    emulator.faults.fail(403, times=None, operation="create")
    emulator.faults.fail(403, times=None, operation="replace")
    reader = open_service()
    assert (await reader.get_session(**THIS)).state == {"a": 1}
    await reader.flush()
    assert origins(raw) == []
    assert [each for each in caplog.records if each.levelname == "WARNING"] == []


async def test_a_damaged_origin_is_reported(open_service, raw, caplog):
    service = open_service()
    await service.create_session(**THIS, state={"a": 1})
    await service.flush()
    (origin,) = origins(raw)
    raw.events.put(origin | {"initial_state": "tea"})
    remove_document(raw)
    with pytest.raises(SessionNotFoundError):
        await open_service().repair_session(**THIS)
    assert "its origin cannot be read" in caplog.text
