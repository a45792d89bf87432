"""Sessions that expire: a session in use stays whole, an unused one expires with all its
documents."""

from __future__ import annotations

import os

import pytest

from cosmosservice.errors import CosmosServiceError, SessionNotFoundError
from tests.support.adk import event, reload, texts
from tests.support.raw import raw_store

WHO = {"app_name": "app", "user_id": "user"}
THIS = WHO | {"session_id": "s"}
HOUR = 3600


@pytest.fixture
def raw(cosmos):
    with raw_store(cosmos) as store:
        yield store


def large(text):
    return event(text + os.urandom(1_500_000).hex())


async def test_a_large_event_stays_readable_as_long_as_its_session_is_used(open_service, later):
    service = open_service(ttl=HOUR)
    session = await service.create_session(**THIS)
    said = large("picture")
    await service.append_event(session, said)
    for number in range(8):
        later(0.6 * HOUR)
        await service.append_event(session, event(str(number)))
        await service.flush()
    found = await reload(open_service(), session)
    assert found.events[0] == said
    assert texts(found)[1:] == [str(number) for number in range(8)]


async def test_chunks_go_with_the_session(open_service, later, raw):
    service = open_service()
    session = await service.create_session(**THIS, ttl=HOUR)
    await service.append_event(session, large("picture"))
    await service.flush()
    kept = await service.create_session(**WHO, session_id="kept", state={"user:u": 1, "app:a": 1})
    await service.append_event(kept, event("stays"))
    await service.flush()
    assert raw.events.all(document_type="chunk")
    later(4 * HOUR)
    assert raw.events.all(session_id="s") == []
    assert await open_service().get_session(**THIS) is None
    found = await reload(open_service(), kept)
    assert texts(found) == ["stays"]
    assert found.state == {"user:u": 1, "app:a": 1}


async def test_a_long_session_stays_whole_through_many_renewals(open_service, later):
    """Most of its events are older than any ttl, and only its newest ones are used."""
    service = open_service(ttl=HOUR)
    session = await service.create_session(**THIS)
    for number in range(80):
        await service.append_event(session, event(str(number)))
    await service.flush()
    for _ in range(10):
        later(0.45 * HOUR)
        recent = await reload(service, session, recent=1)
        assert texts(recent) == ["79"]
        await service.flush()
    assert texts(await reload(open_service(), session)) == [str(n) for n in range(80)]


async def test_two_processes_take_turns_in_keeping_it(open_service, later, raw):
    """Each knows only what it did itself. Both renew, at the same moments."""
    services = [open_service(ttl=HOUR), open_service()]
    session = await services[0].create_session(**THIS)
    for number in range(12):
        service = services[number % 2]
        held = await reload(service, session)
        await service.append_event(held, event(str(number)))
        later(0.35 * HOUR)
        for each in services:
            await reload(each, session)
            await each.flush()
    found = await reload(open_service(), session)
    assert texts(found) == [str(number) for number in range(12)]
    assert len(raw.events.all(session_id="s")) == 12


@pytest.mark.parametrize("used", [0.3, 0.95])
@pytest.mark.parametrize("back", [0.4, 1, 2, 12])
async def test_a_server_clock_that_is_set_back_loses_nothing(open_service, later, back, used):
    """The times of the last renewals are then in the future."""
    service = open_service(ttl=HOUR)
    session = await service.create_session(**THIS)
    await service.append_event(session, event("before"))
    await service.flush()
    later(-back * HOUR)
    await service.append_event(session, large("after"))
    await service.append_event(session, event("last"))
    for _ in range(int((back + 4) / used)):
        await reload(service, session, recent=1)
        await service.flush()
        later(used * HOUR)
    reader = open_service()
    found = await reload(reader, session)
    assert [text[:5] for text in texts(found)] == ["befor", "after", "last"]
    await reader.close()  # reading is use: what it renews must not be written later
    await service.close()
    later(1.3 * HOUR)
    assert await open_service().get_session(**THIS) is None


async def test_the_session_keeps_the_ttl_it_was_created_with(open_service, later):
    """Whichever process writes to it, with whatever setting of its own."""
    short, none = open_service(ttl=HOUR), open_service()
    await short.create_session(**THIS)
    await none.create_session(**WHO, session_id="for ever")
    await none.append_event(await none.get_session(**THIS), event("x"))
    await short.append_event(await short.get_session(**WHO, session_id="for ever"), event("x"))
    await short.flush()
    await none.flush()
    later(1.2 * HOUR)
    fresh = open_service()
    assert [each.id for each in (await fresh.list_sessions(**WHO)).sessions] == ["for ever"]
    later(1000 * HOUR)
    assert texts(await fresh.get_session(**WHO, session_id="for ever")) == ["x"]


async def test_an_expired_session_may_be_created_anew_and_shows_nothing_old(open_service, later):
    service = open_service(ttl=HOUR)
    old = await service.create_session(**THIS, state={"old": 1})
    await service.append_event(old, event("old"))
    await service.flush()
    later(1.3 * HOUR)
    fresh = open_service(ttl=HOUR)
    new = await fresh.create_session(**THIS)
    await fresh.append_event(new, event("new"))
    found = await open_service().get_session(**THIS)
    assert texts(found) == ["new"]
    assert found.state == {}


async def test_a_deleted_session_expires_too(open_service, later, raw):
    service = open_service(ttl=HOUR)
    session = await service.create_session(**THIS)
    await service.append_event(session, event("x"))
    await service.delete_session(**THIS)
    later(6 * HOUR)
    assert [each["document_type"] for each in raw.everything()] == ["expiry"]
    await service.list_sessions(app_name="app", user_id="user")  # its answer tells the time
    await service.purge_deleted()  # looks for artifacts of the session
    assert raw.everything() == []
    with pytest.raises(SessionNotFoundError):
        await open_service().restore_session(**THIS)


FAULTS = {
    "connection lost before": lambda faults, nth: faults.drop_before(nth=nth, resource="docs"),
    "answer lost": lambda faults, nth: faults.drop_after(nth=nth, resource="docs"),
    "throttled for long": lambda faults, nth: faults.throttle(
        retry_after_ms=1, nth=nth, times=40, resource="docs"
    ),
    "the process ends": lambda faults, nth: faults.fail(403, nth=nth, times=None, resource="docs"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_renewal_that_is_disturbed_anywhere_loses_nothing(
    open_service, emulator, later, fault
):
    """Each request of a renewal fails in turn. The session survives all of it."""
    service = open_service(ttl=HOUR)
    session = await service.create_session(**THIS)
    for number in range(4):
        await service.append_event(session, event(str(number), delta={"n": number}))
    await service.flush()
    nth, hit = 1, True
    while hit:
        later(0.55 * HOUR)
        rule = FAULTS[fault](emulator.faults, nth)
        user = open_service()
        try:
            await reload(user, session)
            await user.flush()
        except CosmosServiceError:
            pass  # the user sees that the store does not answer, and tries again later
        hit = bool(rule.hits)
        emulator.faults.clear()
        assert texts(await reload(user, session)) == ["0", "1", "2", "3"]
        await user.flush()
        nth += 1
    assert nth > 8
    found = await reload(open_service(), session)
    assert texts(found) == ["0", "1", "2", "3"]
    assert found.state == {"n": 3}


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("by", ["the process that made it", "another process"])
async def test_a_write_into_an_expired_session_is_logged(open_service, later, caplog, by, anew):
    service = open_service(ttl=HOUR)
    old = await service.create_session(**THIS)
    await service.append_event(old, event("in time"))
    await service.flush()
    if by == "another process":
        service = open_service()
        old = await service.get_session(**THIS)
    later(1.5 * HOUR)
    if anew:
        await open_service().create_session(**THIS)
    await service.append_event(old, event("too late"))
    await service.get_session(**THIS)
    assert "not visible to anybody" not in caplog.text
    await service.flush()
    assert "not visible to anybody" in caplog.text
    assert "user" not in caplog.text


async def test_the_log_is_silent_about_events_that_were_deleted_with_their_session(
    open_service, caplog
):
    service = open_service(ttl=HOUR)
    session = await service.create_session(**THIS)
    await service.append_event(session, event("hello"))
    await open_service().delete_session(**THIS)
    await open_service().create_session(**THIS)
    await service.flush()
    # Microsoft's container does not show composite indexes, which is said at every start.
    said = [each.getMessage() for each in caplog.records]
    assert [each for each in said if "a composite index" not in each] == []


async def test_a_write_into_an_expired_session_is_seen_by_nobody_and_reaches_no_other_session(
    open_service, later, raw
):
    """The log alone decides an append, and it does not know that its session has expired. So the
    append is acknowledged. The event is shown to nobody, reaches no later session of that name, and
    expires."""
    service = open_service(ttl=HOUR)
    old = await service.create_session(**THIS)
    await service.append_event(old, event("in time"))
    await service.flush()
    later(1.5 * HOUR)
    await service.append_event(old, event("too late"))
    assert await open_service().get_session(**THIS) is None
    await open_service().create_session(**THIS)
    await service.append_event(old, event("too late again"))
    assert texts(await open_service().get_session(**THIS)) == []
    later(4 * HOUR)
    assert raw.events.all() == []
