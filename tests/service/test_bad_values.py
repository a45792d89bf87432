"""Invalid values are refused, or do not cost anybody a session."""

from __future__ import annotations

import math

import pytest

from cosmosservice import InvalidStateError
from tests.support.adk import event, reload
from tests.support.raw import raw_store

WHO = {"app_name": "app", "user_id": "ann"}
KEYS = [5, None, True, 1.5, (1, 2), b"key"]


@pytest.fixture
def raw(cosmos):
    with raw_store(cosmos) as store:
        yield store


def assigned(**fields):
    """An event whose state was assigned as tools do it: nothing is checked."""
    delta = fields.pop("delta")
    made = event("hi", **fields)
    made.actions.state_delta.update(delta)
    return made


async def everywhere(service, session):
    """What each way of reading a session shows: its state and the time of its last use."""
    who = {"app_name": session.app_name, "user_id": session.user_id}
    listed = await service.list_sessions(**who)
    of_all = await service.list_sessions(app_name=session.app_name)
    pages = await service.list_sessions_page(app_name=session.app_name, limit=1)
    found = list(pages.sessions)
    while pages.continuation:
        pages = await service.list_sessions_page(
            app_name=session.app_name, limit=1, continuation=pages.continuation
        )
        found += pages.sessions
    return [
        await reload(service, session),
        *(each for each in listed.sessions if each.id == session.id),
        *(each for each in of_all.sessions if each.id == session.id),
        *(each for each in found if each.id == session.id),
    ]


# State keys that are not strings


@pytest.mark.parametrize("key", KEYS, ids=repr)
async def test_a_key_that_is_not_a_string_is_refused_before_anything_happens(
    service, emulator, key
):
    session = await service.create_session(**WHO, state={"a": 1})
    before = session.model_copy(deep=True)
    wrong = assigned(delta={"temp:draft": 1, "a": 2, "user:a": 2, key: 3})
    delta = dict(wrong.actions.state_delta)
    sent = len(emulator.requests)
    with pytest.raises(InvalidStateError) as refused:
        await service.append_event(session, wrong)
    assert str(refused.value) == (
        f"append_event: keys of a state are strings; {key!r} is not. Nothing was stored."
    )
    assert session == before
    assert wrong.actions.state_delta == delta
    assert len(emulator.requests) == sent
    assert await reload(service, session) == before
    await service.append_event(session, event("hi", delta={"a": 2}))
    assert (await reload(service, session)).state == {"a": 2}


async def test_create_and_append_refuse_it_with_the_same_words(service):
    session = await service.create_session(**WHO)
    with pytest.raises(InvalidStateError) as by_create:
        await service.create_session(**WHO, state={5: 1})
    with pytest.raises(InvalidStateError) as by_append:
        await service.append_event(session, assigned(delta={5: 1}))
    create, append = str(by_create.value), str(by_append.value)
    assert append == create.replace("create_session", "append_event")


async def test_a_partial_event_is_passed_on_whatever_it_holds(service):
    session = await service.create_session(**WHO)
    partial = assigned(delta={5: 1}, partial=True)
    assert await service.append_event(session, partial) is partial


# Timestamps


GIVEN = [0.0, -0.0, -5.5, 1e300, -1e300, 5e-324, 253402300800.0, math.nan, math.inf, -math.inf]


def text(value):
    return f"{type(value).__name__} {value!r}"


@pytest.mark.parametrize("given", [*GIVEN, 5, "5.5", "nan"], ids=repr)
async def test_a_timestamp_reads_back_as_it_was_given_and_hides_no_session(
    open_service, raw, given
):
    writer = open_service()
    session = await writer.create_session(**WHO)
    other = await writer.create_session(**WHO)
    sent = event("hi", timestamp=given, delta={"a": 1})
    await writer.append_event(session, sent)
    for _ in ("at once", "after a flush"):
        for service in (writer, open_service()):
            found = await reload(service, session)
            first = found.events[0].timestamp
            assert found.events[0].author == "user"
            later = found.events[0].timestamp
            assert text(first) == text(later) == text(sent.timestamp)
        await writer.flush()
    document = raw.sessions.one(session_id=session.id)
    assert math.isfinite(document["last_update_time"])
    for service in (writer, open_service()):
        shown = await everywhere(service, session)
        assert len(shown) == 4
        assert len(await everywhere(service, other)) == 4
        assert {each.last_update_time for each in shown} == {document["last_update_time"]}
        assert shown[0].state == {"a": 1}
    await writer.append_event(session, event("more", delta={"a": 2}))
    assert (await reload(open_service(), session)).state == {"a": 2}


@pytest.mark.parametrize("given", [5, 10**400, True, "5.5", "soon", None, -math.inf, [1]], ids=repr)
async def test_what_was_assigned_to_a_timestamp_reads_back_too(open_service, raw, given):
    writer = open_service()
    session = await writer.create_session(**WHO)
    sent = event("hi", delta={"a": 1})
    sent.timestamp = given
    await writer.append_event(session, sent)
    await writer.flush()
    for service in (writer, open_service()):
        found = await reload(service, session)
        first = found.events[0].timestamp
        assert found.events[0].author == "user"
        assert text(first) == text(found.events[0].timestamp) == text(given)
        assert len(await everywhere(service, session)) == 4
    assert math.isfinite(raw.sessions.one(session_id=session.id)["last_update_time"])


@pytest.mark.parametrize("given", ["5.5", "soon", None, True, {"a": 1}, [1]], ids=repr)
async def test_an_invalid_stored_timestamp_reads_the_same_each_time(open_service, raw, given):
    writer = open_service()
    session = await writer.create_session(**WHO)
    await writer.append_event(session, event("hi", delta={"a": 1}))
    await writer.flush()
    stored = raw.events.one(event_id=session.events[0].id)
    raw.events.put(stored | {"timestamp": given})
    shown = []
    for service in (open_service(), open_service()):
        found = await reload(service, session)
        shown.append(found.events[0].timestamp)
        assert found.events[0].author == "user"
        shown.append(found.events[0].timestamp)
        assert len(await everywhere(service, session)) == 4
    assert len(set(map(text, shown))) == 1
