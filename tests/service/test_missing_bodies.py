"""Large events whose body is not visible yet, or was removed by another process."""

from __future__ import annotations

import os

import pytest

from cosmosservice.errors import SessionNotFoundError
from tests.support.adk import event, reload, texts
from tests.support.raw import raw_store

WHO = {"app_name": "app", "user_id": "user"}
THIS = WHO | {"session_id": "s"}


@pytest.fixture(autouse=True)
def circumstances(monkeypatch, caplog):
    """Only flush projects, and events need not be large to count as large."""
    monkeypatch.setattr("cosmosservice.sessions.store.projector._QUIET", 10_000.0)
    monkeypatch.setattr("cosmosservice.sessions.store.projector._LATEST", 10_000.0)
    monkeypatch.setattr("cosmosservice.sessions.store.event_log.ITEM_LIMIT", 20_000)
    monkeypatch.setattr("cosmosservice.account.chunks.CHUNK_BYTES", 14_000)
    caplog.set_level("ERROR", logger="cosmosservice")


@pytest.fixture
def raw(cosmos):
    with raw_store(cosmos) as store:
        yield store


def large(delta=None):
    return event(os.urandom(20_000).hex(), delta=delta)


@pytest.fixture
async def session(open_service):
    """Three events, the second a large one. The session document has not been written since."""
    writer = open_service()
    made = await writer.create_session(**THIS)
    await writer.append_event(made, event("first", delta={"a": 1, "b": 1}))
    await writer.append_event(made, large(delta={"b": 2, "c": 2, "user:large": True}))
    await writer.append_event(made, event("third", delta={"c": 3, "user:third": True}))
    return made


def remove_chunk(raw):
    chunk = raw.events.all(document_type="chunk")[-1]
    raw.events.remove(chunk)
    return chunk


def stored(raw):
    document = raw.sessions.one(document_type="session")
    return document["revision"], document["state"]


async def test_a_body_that_lags_is_read_again(open_service, emulator, session):
    missing = emulator.faults.fail(
        404, operation="read", resource="docs", container="events", times=2
    )
    assert await reload(open_service(), session) == session
    assert missing.hits == 2


async def test_a_body_that_is_put_back_is_in_the_event_and_in_the_state(
    open_service, raw, session, caplog
):
    chunk = remove_chunk(raw)
    service = open_service()
    found = await reload(service, session)
    assert found.events[1].error_code == "UNREADABLE_EVENT"
    assert found.events[::2] == session.events[::2]
    await service.append_event(found, event("fourth", delta={"d": 4}))
    await service.flush()
    assert stored(raw) == (1, {"a": 1, "b": 1})
    assert "stays before event 2" in caplog.text
    raw.events.put(chunk)
    assert (await service.repair_session(**THIS)).healthy
    found = await reload(service, session)
    assert found.events[:3] == session.events
    assert found.state == session.state | {"d": 4}
    assert stored(raw) == (4, {"a": 1, "b": 2, "c": 3, "d": 4})
    assert await open_service().get_user_state(**WHO) == {"large": True, "third": True}


@pytest.mark.parametrize("damage", ["removed", "changed"])
async def test_a_body_that_is_lost_blocks_nothing_and_is_left_out_on_request_alone(
    open_service, raw, session, caplog, damage
):
    chunk = remove_chunk(raw)
    if damage == "changed":
        raw.events.put(chunk | {"data": "AAAA"})
    for number in range(2):
        service = open_service()
        found = await reload(service, session)
        assert len(found.events) == 3 + number
        assert found.state["c"] == 3
        await service.append_event(found, event("more", delta={"number": number}))
        await service.flush()
        assert texts(await reload(service, session, recent=1)) == ["more"]
    report = await open_service().repair_session(**THIS)
    assert (report.unreadable, report.healthy) == ([2], False)
    assert stored(raw) == (1, {"a": 1, "b": 1})
    assert "continues after" not in caplog.text
    await open_service().repair_session(**THIS, accept_loss=True)
    assert stored(raw) == (5, {"a": 1, "b": 1, "c": 3, "number": 1})
    assert "continues after event 2" in caplog.text
    found = await reload(open_service(), session)
    assert [each.error_code is None for each in found.events] == [True, False, True, True, True]


async def test_state_of_a_user_after_a_lost_body_reaches_the_users_other_sessions(
    open_service, raw, session
):
    remove_chunk(raw)
    for body in raw.sessions.all(document_type="user_state"):
        raw.sessions.remove(body)  # as if the writer had died before it merged
    service = open_service()
    await reload(service, session)
    await service.flush()
    assert await open_service().get_user_state(**WHO) == {"third": True}


async def test_a_session_with_a_lost_body_can_be_deleted_restored_and_purged(
    open_service, raw, session
):
    remove_chunk(raw)
    service = open_service()
    await service.delete_session(**THIS)
    assert await service.get_session(**THIS) is None
    await open_service().restore_session(**THIS)
    assert len((await reload(open_service(), session)).events) == 3
    await open_service().delete_session(**THIS)
    anew = await open_service().create_session(**THIS)
    assert await reload(open_service(), anew) == anew
    await open_service().purge_session(**THIS)
    assert await open_service().get_session(**THIS) is None
    with pytest.raises(SessionNotFoundError):
        await open_service().restore_session(**THIS)


@pytest.mark.usefixtures("no_pauses")
async def test_a_lost_answer_is_recognised_though_the_body_lags(open_service, emulator):
    service = open_service()
    session = await service.create_session(**THIS)
    sent = large(delta={"user:k": 1})
    emulator.faults.fail(404, operation="read", resource="docs", container="events", times=None)
    lost = emulator.faults.drop_after(
        operation="create", container="events", where=lambda request: "." in (request.id or "")
    )
    await service.append_event(session, sent)
    assert lost.hits == 1
    assert session.events == [sent]
    emulator.faults.clear()
    found = await reload(service, session)
    assert found.events == [sent]
    assert await reload(open_service(), session) == found
