"""Delete, restore, purge and repair."""

from __future__ import annotations

import datetime
import gc
import inspect

import pytest
from google.genai import types

from cosmosservice.account.container import Container
from cosmosservice.errors import (
    AlreadyExistsError,
    AuthenticationError,
    SessionNotFoundError,
    StaleSessionError,
    UnavailableError,
)
from tests.support.adk import event, reload, texts
from tests.support.raw import raw_client, raw_store
from tests.support.stores import opened_store

WHO = {"app_name": "app", "user_id": "user"}
THIS = WHO | {"session_id": "s"}
NOW = datetime.timedelta(0)


def stored(store, container="events"):
    with raw_store(store) as raw:
        return getattr(raw, container).all()


async def test_a_restored_session_is_as_it_was(open_service):
    one, other = open_service(), open_service()
    session = await one.create_session(**THIS, state={"a": 1, "user:b": 2})
    await one.append_event(session, event("hello", delta={"c": 3}))
    await other.delete_session(**THIS)
    assert await one.get_session(**THIS) is None
    await other.restore_session(**THIS)
    found = await one.get_session(**THIS)
    assert texts(found) == ["hello"]
    assert found.state == {"a": 1, "user:b": 2, "c": 3}
    await one.append_event(found, event("again"))
    assert texts(await other.get_session(**THIS)) == ["hello", "again"]


async def test_a_session_object_from_before_delete_and_restore_must_be_reloaded(open_service):
    one, other = open_service(on_conflict="rebase"), open_service()
    session = await one.create_session(**THIS)
    await other.delete_session(**THIS)
    with pytest.raises(SessionNotFoundError):
        await one.append_event(session, event("x"))
    await other.restore_session(**THIS)
    with pytest.raises(StaleSessionError):
        await one.append_event(session, event("x"))


async def test_restore_says_what_it_cannot_do(service):
    with pytest.raises(SessionNotFoundError):
        await service.restore_session(**THIS)
    await service.create_session(**THIS)
    await service.restore_session(**THIS)
    await service.delete_session(**THIS)
    await service.create_session(**THIS)
    await service.restore_session(**THIS)
    assert await service.get_session(**THIS) is not None
    with pytest.raises(AlreadyExistsError):
        await service.create_session(**THIS)


async def test_a_purged_session_leaves_no_content(open_service, cosmos):
    service = open_service()
    session = await service.create_session(**THIS, state={"secret": "s3cret"})
    blob = types.Blob(data=b"s3cret" * 600_000, mime_type="image/png")
    part = types.Part(inline_data=blob)
    await service.append_event(session, event("s3cret", delta={"k": "s3cret"}))
    await service.append_event(session, event(content=types.Content(role="user", parts=[part])))
    report = await service.purge_session(**THIS)
    assert report.documents >= 2
    kinds = sorted(each["document_type"] for each in stored(cosmos))
    assert kinds == ["stub", "stub", "tombstone"]
    assert "s3cret" not in str(stored(cosmos)) + str(stored(cosmos, "sessions"))
    assert await open_service().get_session(**THIS) is None
    with pytest.raises(SessionNotFoundError):
        await service.append_event(session, event("x"))
    with pytest.raises(SessionNotFoundError):
        await service.restore_session(**THIS)
    again = await service.create_session(**THIS)
    await service.append_event(again, event("new"))
    assert texts(await open_service().get_session(**THIS)) == ["new"]
    assert (await service.purge_session(**THIS)).sessions == 1


async def test_a_user_is_erased_with_all_sessions_and_on_request_the_state(open_service, cosmos):
    service = open_service()
    seen = []
    for name in "abc":
        session = await service.create_session(**WHO, session_id=name, state={"user:x": "u"})
        await service.append_event(session, event("secret"))
    await service.delete_session(**WHO, session_id="a")
    await service.create_session(app_name="app", user_id="other", session_id="a")
    report = await service.purge_user(**WHO, progress=lambda done, of: seen.append((done, of)))
    assert report.sessions == 3
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert await service.get_user_state(**WHO) == {"x": "u"}
    assert "secret" not in str(stored(cosmos))
    await service.purge_user(**WHO, include_state=True)
    assert await open_service().get_user_state(**WHO) == {}
    assert len((await service.list_sessions(app_name="app")).sessions) == 1


async def test_old_deleted_sessions_are_purged_and_young_ones_kept(service):
    await service.create_session(**THIS)
    await service.create_session(**WHO, session_id="kept")
    await service.delete_session(**THIS)
    assert (await service.purge_deleted(older_than=datetime.timedelta(hours=1))).sessions == 0
    await service.restore_session(**THIS)
    await service.delete_session(**THIS)
    assert (await service.purge_deleted(older_than=NOW, app_name="other")).sessions == 0
    assert (await service.purge_deleted(older_than=NOW)).sessions == 1
    with pytest.raises(SessionNotFoundError):
        await service.restore_session(**THIS)
    assert await service.get_session(**WHO, session_id="kept") is not None


@pytest.mark.parametrize("age", [30, None, datetime.timedelta(days=-1)])
async def test_an_age_that_is_none_is_refused(service, age):
    await service.create_session(**THIS)
    await service.delete_session(**THIS)
    for call in (service.purge_deleted, service.count_deleted):
        with pytest.raises(ValueError, match=r"older_than must be a datetime\.timedelta"):
            await call(older_than=age)
    assert await service.count_deleted(older_than=datetime.timedelta.max) == 0
    assert await service.count_deleted(older_than=NOW) == 1


async def recreated(service, *, ttl=None):
    """A session that was deleted and created again, and a session object of the old incarnation."""
    old = await service.create_session(**THIS)
    await service.append_event(old, event("s3cret"))
    await service.delete_session(**THIS)
    session = await service.create_session(**THIS, ttl=ttl)
    await service.append_event(session, event("new"))
    return old, session


async def test_what_was_deleted_is_purged_though_the_session_was_created_anew(open_service, cosmos):
    service = open_service()
    old, session = await recreated(service)
    assert (await service.purge_deleted(older_than=datetime.timedelta(hours=1))).sessions == 0
    assert (await service.purge_deleted(older_than=NOW, app_name="other")).sessions == 0
    assert "s3cret" in str(stored(cosmos))
    report = await service.purge_deleted(older_than=NOW)
    assert (report.sessions, report.documents) == (1, 2)
    assert "s3cret" not in str(stored(cosmos))
    with pytest.raises(SessionNotFoundError):
        await service.append_event(old, event("x"))
    await service.append_event(session, event("more"))
    assert texts(await open_service().get_session(**THIS)) == ["new", "more"]
    assert (await service.purge_deleted(older_than=NOW)).sessions == 0


async def test_what_was_replaced_long_ago_goes_though_its_successor_was_just_deleted(
    open_service, emulator
):
    service = open_service()
    await recreated(service)
    await service.delete_session(**THIS)
    with raw_client(emulator) as client:
        sessions = client.get_database_client("adk").get_container_client("sessions")
        body = sessions.read_item("session.app.s", "user")
        body["replaced"]["deleted_at"] = "2020-01-01T00:00:00Z"
        sessions.upsert_item(body)
    hour = datetime.timedelta(hours=1)
    assert (await open_service().purge_deleted(older_than=hour)).sessions == 1
    assert "s3cret" not in str(stored(emulator))
    await service.restore_session(**THIS)
    assert texts(await service.get_session(**THIS)) == ["new"]


async def test_deleted_sessions_can_be_listed(service):
    await service.create_session(**THIS)
    await service.create_session(**WHO, session_id="kept")
    await service.delete_session(**THIS)
    page = await service.list_sessions_page(**WHO, deleted=True)
    assert [each.id for each in page.sessions] == ["s"]


async def test_a_missing_session_document_is_rebuilt_from_the_log(open_service, emulator):
    service = open_service()
    session = await service.create_session(**THIS)
    for number in range(3):
        delta = {"n": number, "user:n": number, "app:n": number}
        await service.append_event(session, event(str(number), delta=delta))
    await service.flush()
    with raw_client(emulator) as client:
        proxy = client.get_database_client("adk").get_container_client("sessions")
        for body in list(proxy.query_items("SELECT * FROM c", enable_cross_partition_query=True)):
            proxy.delete_item(body["id"], body["user_id"])
    fresh = open_service()
    assert await fresh.get_session(**THIS) is None
    report = await fresh.repair_session(**THIS)
    assert (report.rebuilt, report.events, report.healthy) == (True, 3, True)
    found = await fresh.get_session(**THIS)
    assert texts(found) == ["0", "1", "2"]
    assert found.state == {"n": 2, "user:n": 2, "app:n": 2}


async def test_of_several_sessions_of_one_id_the_last_with_events_is_rebuilt(open_service, cosmos):
    service = open_service()
    for name in ("first", "second"):
        session = await service.create_session(**THIS, state={"name": name})
        await service.append_event(session, event(f"of the {name}"))
        await service.delete_session(**THIS)
    await service.restore_session(**THIS)
    await service.flush()
    with raw_store(cosmos) as raw:
        raw.sessions.remove(raw.sessions.one(document_type="session"))
    other = open_service()
    assert (await other.repair_session(**THIS)).rebuilt
    found = await other.get_session(**THIS)
    assert (texts(found), found.state) == (["of the second"], {"name": "second"})
    await other.purge_deleted(older_than=NOW)
    with raw_store(cosmos) as raw:
        assert not raw.contains("of the first")
    assert texts(await open_service().get_session(**THIS)) == ["of the second"]


async def test_a_session_without_events_is_gone_with_its_document(open_service, cosmos):
    service = open_service()
    await service.create_session(**THIS, state={"a": 1})
    await service.close()
    with raw_store(cosmos) as raw:
        assert raw.events.all() == []
        raw.sessions.remove(raw.sessions.one(document_type="session"))
    other = open_service()
    with pytest.raises(SessionNotFoundError, match="nothing to rebuild one from"):
        await other.repair_session(**THIS)
    assert (await other.create_session(**THIS)).state == {}


async def test_a_delete_whose_answer_was_lost_leaves_a_new_session_alone(open_service, emulator):
    one, other = open_service(), open_service()
    await one.create_session(**THIS)

    async def meanwhile(record):
        await other.delete_session(**THIS)
        await other.create_session(**THIS)

    lost = emulator.faults.drop_after(operation="create", container="events")
    emulator.faults.call(
        meanwhile, operation="create", container="events", where=lambda _: lost.hits == 1
    )
    await one.delete_session(**THIS)
    assert await open_service().get_session(**THIS) is not None


async def test_a_log_that_lost_its_end_is_reported_and_goes_on(open_service, emulator):
    service = open_service()
    session = await service.create_session(**THIS)
    for number in range(3):
        await service.append_event(session, event(str(number)))
    await service.flush()
    lost = max(stored(emulator), key=lambda each: each["seq"])
    with raw_client(emulator) as client:
        proxy = client.get_database_client("adk").get_container_client("events")
        proxy.delete_item(lost["id"], "s")
    report = await open_service().repair_session(**THIS)
    assert report.holes == [3]
    assert not report.healthy
    fresh = open_service()
    found = await fresh.get_session(**THIS)
    assert texts(found) == ["0", "1"]
    await fresh.append_event(found, event("again"))
    assert texts(await open_service().get_session(**THIS)) == ["0", "1", "again"]
    assert (await open_service().repair_session(**THIS)).holes == [3]


@pytest.mark.parametrize("back", ["restore_session", "create_session"])
async def test_a_session_that_is_back_when_its_turn_comes_is_not_purged(
    open_service, emulator, back
):
    service, other = open_service(), open_service()
    session = await service.create_session(**WHO, session_id="s")
    await service.append_event(session, event("old"))
    await service.delete_session(**WHO, session_id="s")

    async def bring_back(_):
        await getattr(other, back)(**WHO, session_id="s")
        await other.append_event(await reload(other, session), event("new"))

    emulator.faults.call(bring_back, when="after", operation="query", partition_key=None)
    report = await service.purge_deleted(older_than=datetime.timedelta(0))
    assert report.sessions == (back == "create_session")  # then what it replaced is
    assert texts(await reload(open_service(), session))[-1] == "new"


async def test_a_session_that_was_deleted_again_when_its_turn_comes_is_not_purged(
    open_service, emulator
):
    service, other = open_service(), open_service()
    session = await service.create_session(**WHO, session_id="s")
    await service.append_event(session, event("old"))
    await service.delete_session(**WHO, session_id="s")

    async def delete_again(_):
        await other.restore_session(**WHO, session_id="s")
        await other.delete_session(**WHO, session_id="s")

    emulator.faults.call(delete_again, when="after", operation="query", partition_key=None)
    report = await service.purge_deleted(older_than=datetime.timedelta(0))
    assert report.sessions == 0
    await service.restore_session(**WHO, session_id="s")
    assert texts(await reload(service, session)) == ["old"]


async def test_a_session_whose_status_is_damaged_can_be_deleted_twice(open_service, emulator):
    service = open_service()
    await service.create_session(**THIS)
    with raw_client(emulator) as client:
        sessions = client.get_database_client("adk").get_container_client("sessions")
        sessions.upsert_item(sessions.read_item("session.app.s", "user") | {"status": "odd"})
    for each in (open_service(), open_service()):
        await each.delete_session(**THIS)
        assert await each.get_session(**THIS) is None


async def test_a_purge_that_fails_leaves_nothing_that_is_never_awaited(service, emulator):
    session = await service.create_session(**THIS)
    for _ in range(12):
        await service.append_event(session, event("x"))
    emulator.faults.fail(403, operation="replace", container="events")
    with pytest.raises(AuthenticationError) as refused:
        await service.purge_session(**THIS)
    waiting = [each for each in gc.get_objects() if inspect.iscoroutine(each)]
    assert refused.tb is not None  # what it refers to is alive until here
    assert not [each for each in waiting if inspect.getcoroutinestate(each) == "CORO_CREATED"]


# --- contention


@pytest.mark.usefixtures("no_pauses")
async def test_a_delete_that_always_loses_to_other_writers_ends_with_an_error(
    open_service, emulator
):
    service, other = open_service(), open_service(on_conflict="rebase")
    session = await service.create_session(**THIS)

    async def append(_):
        await other.append_event(session, event("x"))

    busy = []

    def of_the_tombstone(record):  # the create by `append` must not trigger it again
        if busy:
            return False
        return record.operation == "create" and record.container == "events"

    async def forestall(record):
        busy.append(record)
        try:
            await append(record)
        finally:
            busy.clear()

    emulator.faults.call(forestall, where=of_the_tombstone, times=100)
    with pytest.raises(UnavailableError, match=r"delete_session: session 's'.* again is safe"):
        await service.delete_session(**THIS)
    assert await open_service().get_session(**THIS) is not None
    emulator.faults.clear()
    await service.delete_session(**THIS)
    assert await open_service().get_session(**THIS) is None


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("operation", ["restore_session", "purge_session"])
async def test_an_operation_that_always_loses_to_other_writers_ends_with_an_error(
    service, emulator, operation
):
    await service.create_session(**THIS)
    await service.delete_session(**THIS)
    emulator.faults.fail(
        412, operation="replace", container="sessions", id="session.app.s", times=300
    )
    with pytest.raises(UnavailableError, match=rf"{operation}: session 's'.* again is safe"):
        await getattr(service, operation)(**THIS)
    emulator.faults.clear()
    await getattr(service, operation)(**THIS)


# --- what a purge reads, and what stays in memory


async def test_a_purge_does_not_load_the_content_that_it_erases(service, monkeypatch):
    session = await service.create_session(**THIS)
    for _ in range(3):
        await service.append_event(session, event("s3cret"))
    await service.delete_session(**THIS)
    loaded, query = [], Container.query

    async def listen(*args):
        loaded.append(await query(*args))
        return loaded[-1]

    monkeypatch.setattr(Container, "query", listen)
    assert (await service.purge_session(**THIS)).documents == 4
    assert any(loaded)
    assert "s3cret" not in str(loaded)


async def test_a_purge_leaves_nothing_in_this_process_either(service):
    session = await service.create_session(**THIS, state={"k": "s3cret"})
    await service.append_event(session, event("s3cret"))
    await service.get_session(**THIS)
    await service.purge_session(**THIS)
    cached = opened_store(service).cache._entries.values()
    records = [each.records for each, _ in cached if hasattr(each, "records")]
    assert "s3cret" not in str(records) + str([getattr(each, "body", "") for each, _ in cached])
