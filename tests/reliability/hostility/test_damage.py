"""Documents that something else damaged: readable content is read, and the damage is reported."""

from __future__ import annotations

import asyncio
import contextlib
import datetime

import pytest

from cosmos_emulator import Emulator
from cosmosservice import CosmosSessionService
from cosmosservice.errors import AlreadyExistsError, CosmosServiceError, StorageError
from tests.support.adk import event, reload, texts
from tests.support.raw import raw_store

THIS = {"app_name": "app", "user_id": "user", "session_id": "s"}
OTHER = THIS | {"user_id": "other"}  # the same session id: the same partition of events
EVENTS = 5


@pytest.fixture
def raw(cosmos):
    with raw_store(cosmos) as store:
        yield store


async def fill(service):
    """Two tenants with the same session id, each with events and state. All documents are up to
    date."""
    for who in (OTHER, THIS):
        made = await service.create_session(**who, state={"began": 1, "user:u": 0})
        for number in range(EVENTS):
            delta = {f"k{number}": number, "user:u": number, "app:a": number}
            await service.append_event(made, event(f"event {number}", delta=delta))
    await service.flush()
    return made


@pytest.fixture(scope="module")
def filled():
    """What an emulator holds then, and the session object."""

    async def make():
        with Emulator() as emulator:
            async with CosmosSessionService.embedded(emulator) as service:
                session = await fill(service)
            return emulator.dump(), session

    return asyncio.run(make())


@pytest.fixture
def emulator(filled):
    with Emulator.load(filled[0]) as made:
        yield made


@pytest.fixture
async def session(cosmos, open_service, request):
    if cosmos.emulator is None:
        return await fill(open_service())
    return request.getfixturevalue("filled")[1].model_copy(deep=True)


@pytest.fixture(autouse=True)
def errors_of_the_log(caplog):
    caplog.set_level("ERROR", logger="cosmosservice")
    return caplog


def event_document(raw, number):
    return raw.events.one(user_id="user", seq=number + 1)


async def neighbour_is_whole(service):
    found = await service.get_session(**OTHER)
    assert texts(found) == [f"event {number}" for number in range(EVENTS)]
    assert found.state == {"began": 1, "user:u": 4, "app:a": 4} | {
        f"k{n}": n for n in range(EVENTS)
    }


DELETE = object()


def damaged(body, field, value):
    rest = {name: kept for name, kept in body.items() if name != field}
    return rest if value is DELETE else rest | {field: value}


# Damage to the document of one event, as (field, value).
EVENT_DAMAGE = [
    ("content", "text"),
    ("content", 7),
    ("content", {"parts": 7}),
    ("content", {"parts": [{"text": {"not": "text"}}]}),
    ("content", None),
    ("content", DELETE),
    ("actions", 7),
    ("actions", {"state_delta": 7}),
    ("actions", {"state_delta": ["k2"]}),
    ("actions", DELETE),
    ("timestamp", "yesterday"),
    ("timestamp", None),
    ("timestamp", DELETE),
    ("timestamp", 1e308),
    ("event_id", 7),
    ("event_id", DELETE),
    ("author", DELETE),
    ("author", {"a": 1}),
    ("document_type", "something else"),
    ("document_type", 7),
    ("document_type", ["tombstone"]),
    ("document_type", DELETE),
    ("stamp", "now"),
    ("stamp", -1),
    ("stamp", DELETE),
    ("seq", "three"),
    ("seq", 77),
    ("seq", DELETE),
    ("incarnation", 7),
    ("incarnation", "another"),
    ("schema_version", 99),
    ("schema_version", "x"),
    ("app_name", "another"),
    ("user_id", DELETE),
    ("chunks", 7),
    ("chunks", {}),
    ("chunks", {"upload": "none", "count": 3}),
    ("chunks", {"upload": "none", "count": 10**9}),
    ("chunks", {"upload": 7, "count": "x"}),
    ("unknown_field", {"deep": [1, 2]}),
    ("partial", "perhaps"),
    ("invocation_id", 7),
    ("long_running_tool_ids", 7),
]


@pytest.mark.parametrize(("field", "value"), EVENT_DAMAGE)
async def test_a_damaged_event_never_hides_the_others(open_service, session, raw, field, value):
    body = event_document(raw, 2)
    raw.events.put(damaged(body, field, value))
    fresh = open_service()
    found = await reload(fresh, session, recent=3)
    assert texts(found)[1:] == ["event 3", "event 4"]
    found = await reload(fresh, session)
    shown = texts(found)
    assert len(shown) == EVENTS
    assert shown[:2] + shown[3:] == ["event 0", "event 1", "event 3", "event 4"]
    # The state was folded before the damage, so it is unchanged.
    assert found.state["k2"] == 2
    assert found.state["k4"] == 4
    for each in found.events:
        each.model_dump_json()
    await fresh.append_event(found, event("goes on"))
    again = await open_service().get_session(**THIS)
    assert texts(again)[-1] == "goes on"
    streamed = [each async for each in fresh.iter_events(**THIS)]
    assert len(streamed) == EVENTS + 1
    await neighbour_is_whole(fresh)


async def test_an_event_that_cannot_be_read_is_a_placeholder_that_says_so(
    open_service, session, raw, caplog
):
    raw.events.put(event_document(raw, 2) | {"content": 7, "author": "agent"})
    found = await reload(open_service(), session)
    assert found.events[2].error_code == "UNREADABLE_EVENT"
    report = await open_service().repair_session(**THIS)
    assert report.unreadable == [3]
    assert not report.healthy


@pytest.mark.parametrize("missing", [[2], [0], [4], [1, 3], [0, 1, 2, 3, 4]])
async def test_a_hole_in_the_log_is_reported_and_the_rest_is_shown(
    open_service, session, raw, caplog, missing
):
    for number in missing:
        raw.events.remove(event_document(raw, number))
    fresh = open_service()
    found = await reload(fresh, session)
    left = [number for number in range(EVENTS) if number not in missing]
    assert texts(found) == [f"event {number}" for number in left]
    assert found.state["k4"] == 4
    assert "its log has lost" in caplog.text
    await fresh.append_event(found, event("goes on"))
    again = await open_service().get_session(**THIS)
    assert texts(again) == [*(f"event {number}" for number in left), "goes on"]
    report = await open_service().repair_session(**THIS)
    assert report.holes == [number + 1 for number in missing]
    await neighbour_is_whole(fresh)


FOREIGN = [
    {"id": "hello"},
    {"id": "0"},
    {"id": "~"},
    {"id": "{hash}.hello"},
    {"id": "{hash}.0000000006"},
    {"id": "{hash}.0000000006.another", "seq": 6, "document_type": "tombstone"},
    {"id": "{hash}.0000000003.another", "seq": 3, "document_type": "adk_event"},
    {"id": "{hash}.99999999999.{incarnation}", "seq": 1},
    {"id": "{hash}-{incarnation}-0000000000000000-0000", "document_type": "chunk"},
    {"id": "{hash}-hello"},
    {"id": "{hash}..{incarnation}"},
]


@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda body: body["id"])
async def test_foreign_documents_in_the_partition_are_not_events(
    open_service, session, raw, foreign
):
    session_hash, _, incarnation = event_document(raw, 0)["id"].split(".")
    body = foreign | {"session_id": "s", "text": "foreign"}
    body["id"] = body["id"].format(hash=session_hash, incarnation=incarnation)
    raw.events.put(body)
    fresh = open_service()
    found = await reload(fresh, session)
    assert texts(found) == [f"event {number}" for number in range(EVENTS)]
    await fresh.append_event(found, event("goes on"))
    assert texts(await reload(open_service(), session, recent=1)) == ["goes on"]
    streamed = [each.id async for each in fresh.iter_events(**THIS, page_size=2)]
    assert streamed == [each.id for each in found.events]
    await fresh.delete_session(**THIS)
    await fresh.purge_session(**THIS)
    assert await open_service().get_session(**THIS) is None
    await neighbour_is_whole(fresh)


SESSION_DAMAGE = [
    ("state", 7),
    ("state", DELETE),
    ("revision", "five"),
    ("revision", DELETE),
    ("revision", -3),
    ("revision", 2.5),
    ("first_seq", DELETE),
    ("first_seq", "one"),
    ("last_update_time", "now"),
    ("last_update_time", DELETE),
    ("created_at", 7),
    ("updated_at", DELETE),
    ("status", DELETE),
    ("document_type", DELETE),
    ("document_type", "thing"),
    ("app_name", DELETE),
    ("session_id", DELETE),
    ("session_id", 7),
    ("schema_version", "x"),
    ("ttl", 100),
    ("renewed_at", "x"),
]


@pytest.mark.parametrize(("field", "value"), SESSION_DAMAGE)
async def test_a_damaged_session_document_is_read_as_far_as_it_goes(
    open_service, session, raw, field, value
):
    body = raw.sessions.one(user_id="user", document_type="session")
    raw.sessions.put(damaged(body, field, value))
    fresh = open_service()
    found = await reload(fresh, session)
    assert texts(found) == [f"event {number}" for number in range(EVENTS)]
    assert found.state["k4"] == 4
    assert found.state["user:u"] == 4
    await fresh.append_event(found, event("goes on", delta={"k4": 5}))
    await fresh.flush()
    again = await open_service().get_session(**THIS)
    assert texts(again)[-1] == "goes on"
    assert again.state["k4"] == 5
    await lists_work(open_service())
    await neighbour_is_whole(fresh)
    await fresh.purge_session(**THIS)
    assert await open_service().get_session(**THIS) is None


UNUSABLE = [
    ("incarnation", DELETE),
    ("incarnation", 7),
    ("incarnation", ""),
    ("incarnation", "unknown"),
    ("status", "confused"),
    ("status", 7),
    ("revision", 10**6),
    ("first_seq", 10**6),
]


@pytest.mark.parametrize(("field", "value"), UNUSABLE)
async def test_a_session_document_that_misleads_is_an_error_of_ours_or_no_session(
    open_service, session, raw, field, value
):
    """Nothing else can be said of such a session. Its neighbours are not affected."""
    body = raw.sessions.one(user_id="user", document_type="session")
    raw.sessions.put(damaged(body, field, value))
    fresh = open_service()
    for call in (fresh.get_session, fresh.delete_session, fresh.create_session):
        with contextlib.suppress(CosmosServiceError, AlreadyExistsError):
            await call(**THIS)
    await lists_work(fresh)
    await neighbour_is_whole(fresh)


@pytest.mark.parametrize("value", [DELETE, 7, ""])
async def test_a_session_without_an_incarnation_says_so_and_is_repaired(
    open_service, session, raw, value
):
    body = raw.sessions.one(user_id="user", document_type="session")
    raw.sessions.put(damaged(body, "incarnation", value))
    with pytest.raises(StorageError, match="damaged"):
        await open_service().get_session(**THIS)
    report = await open_service().repair_session(**THIS)
    assert report.rebuilt
    found = await reload(open_service(), session)
    assert found.events == session.events
    assert found.state == session.state


async def lists_work(service):
    listed = (await service.list_sessions(app_name="app")).sessions
    assert ("other", "s") in {(each.user_id, each.id) for each in listed}
    await service.list_sessions(app_name="app", user_id="user")
    page = await service.list_sessions_page(app_name="app", limit=1)
    while page.continuation:
        page = await service.list_sessions_page(
            app_name="app", limit=1, continuation=page.continuation
        )


STATE_DAMAGE = [
    ("state", 7),
    ("state", DELETE),
    ("state", []),
    ("stamps", 7),
    ("stamps", DELETE),
    ("stamps", {"u": 7, "a": 7}),
    ("stamps", {"u": ["x", 1], "a": ["x", 1]}),
    ("stamps", {"u": [1e300, "x"], "a": [1e300, "x"]}),
    ("document_type", DELETE),
    ("document_type", 7),
    ("app_name", DELETE),
    ("user_id", "user"),
]


@pytest.mark.parametrize("kind", ["user_state", "app_state"])
@pytest.mark.parametrize(("field", "value"), STATE_DAMAGE)
async def test_a_damaged_state_document_blocks_nobody(
    open_service, session, raw, kind, field, value
):
    if kind == "user_state":
        body = raw.sessions.one(user_id="user", document_type=kind)
    else:
        body = raw.sessions.one(document_type=kind)
    raw.sessions.put(damaged(body, field, value))
    fresh = open_service()
    found = await reload(fresh, session)
    assert texts(found) == [f"event {number}" for number in range(EVENTS)]
    assert found.state["k4"] == 4
    delta = {"user:new": 1, "app:new": 2}
    await fresh.append_event(found, event("goes on", delta=delta))
    again = await open_service().get_session(**THIS)
    assert {key: again.state[key] for key in delta} == delta
    await lists_work(open_service())


GARBAGE = [{}, {"state": None}, {"app_name": "app"}, {"app_name": "app", "status": "active"}]


@pytest.mark.parametrize("garbage", GARBAGE, ids=str)
async def test_garbage_among_the_session_documents_breaks_no_list(
    open_service, session, raw, garbage
):
    raw.sessions.put({"id": "garbage", "user_id": "user"} | garbage)
    raw.sessions.put({"id": "garbage"} | garbage)
    fresh = open_service()
    await lists_work(fresh)
    assert len((await fresh.list_sessions(app_name="app", user_id="user")).sessions) == 1
    seen = []
    await fresh.delete_session(**THIS)
    await fresh.purge_deleted(
        older_than=datetime.timedelta(0), progress=lambda done, of: seen.append((done, of))
    )
    assert seen == [(1, 1)]
    await fresh.purge_user(app_name="app", user_id="user", include_state=True)
    await neighbour_is_whole_but_for_app_state(fresh)


@pytest.mark.parametrize("user", ["user", None])
@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_a_page_of_nothing_but_damaged_documents_does_not_end_the_list(
    open_service, session, raw, user, limit
):
    service = open_service()
    await service.create_session(**THIS | {"session_id": "newest"})
    damaged = {"user_id": "user", "app_name": "app", "status": "active"}
    for number, time in enumerate((1, 2, 3, 1.0e12)):  # before all others, and after them
        raw.sessions.put(damaged | {"id": f"damaged{number}", "last_update_time": time})
    found, continuation = [], None
    while True:
        page = await service.list_sessions_page(
            app_name="app", user_id=user, limit=limit, continuation=continuation
        )
        assert len(page.sessions) <= limit
        found += page.sessions
        continuation = page.continuation
        if continuation is None:
            break
    listed = await service.list_sessions(app_name="app", user_id=user)
    assert found == listed.sessions
    assert len(found) == (2 if user else 3)


async def neighbour_is_whole_but_for_app_state(service):
    found = await service.get_session(**OTHER)
    assert texts(found) == [f"event {number}" for number in range(EVENTS)]


# --- large values

LARGE = "x" * 40_000


@pytest.mark.parametrize("way", ["another text", "no text", "gone"])
@pytest.mark.parametrize("scope", ["", "user:", "app:"])
async def test_a_large_value_that_is_lost_hides_nothing_else(
    session, open_service, raw, caplog, scope, way
):
    writer, key = open_service(), f"{scope}large"
    made = await reload(writer, session)
    await writer.append_event(made, event("sixth", delta={key: LARGE, "k0": "kept"}))
    await writer.flush()
    (value,) = raw.sessions.all(document_type="state_value")
    if way == "gone":
        raw.sessions.remove(value)
    else:
        raw.sessions.put(value | {"data": "eJwLSS0uAQAGzQH6" if way == "another text" else 7})
    service = open_service()
    found = await service.get_session(**THIS)
    assert (key in found.state, found.state["k0"], len(found.events)) == (False, "kept", EVENTS + 1)
    listed = (await service.list_sessions(app_name="app")).sessions
    assert sorted(each.user_id for each in listed) == ["other", "user"]
    assert "A large value of a state cannot be read" in caplog.text
    if scope != "app:":
        await neighbour_is_whole(service)
    await service.append_event(found, event("seventh", delta={key: "again"}))
    assert (await open_service().get_session(**THIS)).state[key] == "again"
