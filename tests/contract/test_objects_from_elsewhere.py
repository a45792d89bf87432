"""Session objects that come from elsewhere: as JSON, copied, pickled, from the past, from another
store. Each is accepted while it is current, and refused otherwise, whatever its time says."""

from __future__ import annotations

import copy
import itertools
import pickle

import pytest
from google.adk.sessions import Session

from cosmosservice.errors import SessionNotFoundError, StaleSessionError
from tests.support.adk import event, reload, texts
from tests.support.combinations import some
from tests.support.stores import DURABLE

pytestmark = pytest.mark.claims(DURABLE)

FIRST, SECOND = 1_700_000_000.25, 1_700_000_001.5
OLDER, EQUAL, NEWER = FIRST - 100.0, SECOND, SECOND + 100.0


def as_json(session):
    return Session.model_validate_json(session.model_dump_json(by_alias=True))


SENT = {
    "json": as_json,
    "pickle": lambda session: pickle.loads(pickle.dumps(session)),
    "deepcopy": copy.deepcopy,
    "model_copy": lambda session: session.model_copy(deep=True),
}


async def listed(service, session):
    found = await service.list_sessions(app_name=session.app_name, user_id=session.user_id)
    return found.sessions[0]


LOADED = {
    "all": reload,
    "recent 0": lambda service, session: reload(service, session, recent=0),
    "recent 1": lambda service, session: reload(service, session, recent=1),
    "recent 5": lambda service, session: reload(service, session, recent=5),
    "after": lambda service, session: reload(service, session, after=SECOND),
    "after all": lambda service, session: reload(service, session, after=SECOND + 1),
    "listed": listed,
}


@pytest.fixture
async def session(service, app):
    made = await service.create_session(app_name=app, user_id="ann", state={"k": 0})
    await service.append_event(made, event("one", timestamp=FIRST))
    await service.append_event(made, event("two", timestamp=SECOND))
    return made


@pytest.mark.parametrize(("loaded", "sent"), some(itertools.product(LOADED, SENT), every=3))
async def test_an_object_works_while_it_is_current(store, service, session, loaded, sent):
    other = store.open()
    received = SENT[sent](await LOADED[loaded](service, session))
    for n in range(3):
        await other.append_event(received, event(f"more {n}", delta={"k": n}))
        received = SENT[sent](received)
    stored = await reload(service, session)
    assert texts(stored) == ["one", "two", "more 0", "more 1", "more 2"]
    assert stored.state == {"k": 2}


@pytest.mark.parametrize(
    ("loaded", "time"), some(itertools.product(LOADED, [OLDER, EQUAL, NEWER]), every=2)
)
async def test_an_object_is_refused_once_another_has_appended(
    store, service, session, loaded, time
):
    held = await LOADED[loaded](service, session)
    received = {name: send(held) for name, send in SENT.items()}
    await service.append_event(session, event("first", timestamp=time))
    for writer, sent in itertools.product((store.open(), service), SENT):
        with pytest.raises(StaleSessionError):
            await writer.append_event(received[sent], event("too late", timestamp=NEWER + 1))
    assert texts(await reload(service, session)) == ["one", "two", "first"]


@pytest.mark.parametrize("sent", SENT)
async def test_an_object_without_events_is_current_while_the_session_has_none(service, app, sent):
    made = await service.create_session(app_name=app, user_id="ann", state={"k": 1})
    first, second = SENT[sent](made), SENT[sent](made)
    await service.append_event(first, event("first", timestamp=made.last_update_time))
    with pytest.raises(StaleSessionError):
        await service.append_event(second, event("second"))
    assert texts(await reload(service, made)) == ["first"]
    past = await service.get_session_at(
        app_name=app, user_id="ann", session_id=made.id, at=0
    )  # the first event stored the state from before it
    assert past.state == {"k": 1}


async def test_an_object_built_by_hand_begins_a_session(service, app):
    made = await service.create_session(app_name=app, user_id="ann")
    by_hand = Session(id=made.id, app_name=app, user_id="ann")
    await service.append_event(by_hand, event("first"))
    assert texts(await reload(service, made)) == ["first"]


async def test_an_object_of_a_deleted_session_is_not_one_of_its_successor(service, app):
    old = await service.create_session(app_name=app, user_id="ann", session_id="s")
    await service.delete_session(app_name=app, user_id="ann", session_id="s")
    made = await service.create_session(app_name=app, user_id="ann", session_id="s")
    with pytest.raises(StaleSessionError):
        await service.append_event(as_json(old), event("too late"))
    assert texts(await reload(service, made)) == []


async def test_a_time_that_several_events_have_proves_nothing(service, session):
    """The object saw the first of two events of one time, with another in between."""
    received = as_json(await reload(service, session, recent=0))
    await service.append_event(session, event("between"))
    await service.append_event(session, event("again", timestamp=SECOND))
    with pytest.raises(StaleSessionError):
        await service.append_event(received, event("too late"))


async def test_an_object_sent_as_json_after_a_restore_is_current(service, session):
    names = {"app_name": session.app_name, "user_id": "ann", "session_id": session.id}
    before = as_json(session)
    await service.delete_session(**names)
    with pytest.raises(SessionNotFoundError):
        await service.append_event(as_json(session), event("to nobody"))
    await service.restore_session(**names)
    await service.append_event(before, event("more"))
    assert texts(await reload(service, session)) == ["one", "two", "more"]


@pytest.mark.parametrize("loaded", LOADED)
async def test_the_same_event_sent_twice_as_json_is_stored_once(store, service, session, loaded):
    """The answer to the first call was lost, with the process that waited for it."""
    held = await LOADED[loaded](service, session)
    first, second = as_json(held), as_json(held)
    again = event("again", delta={"k": 5})
    await service.append_event(first, again)
    await store.open().append_event(second, again.model_copy(deep=True))
    stored = await reload(service, session)
    assert texts(stored) == ["one", "two", "again"]
    assert stored.state == {"k": 5}


@pytest.mark.parametrize("at", [0, 1, 2])
async def test_nothing_is_appended_to_the_past(store, service, session, at):
    names = {"app_name": session.app_name, "user_id": "ann", "session_id": session.id}
    for each, other in itertools.product(("pickle", "deepcopy", "model_copy"), (False, True)):
        past = SENT[each](await service.get_session_at(**names, at=at))
        with pytest.raises(StaleSessionError, match="fork_session"):
            await (store.open() if other else service).append_event(past, event("later"))
    past = as_json(await service.get_session_at(**names, at=at))
    if at < 2:
        with pytest.raises(StaleSessionError):
            await service.append_event(past, event("later"))
    assert texts(await reload(service, session)) == ["one", "two"]
    fork = await service.fork_session(**names, at=at)
    await service.append_event(fork, event("later"))
    assert texts(fork) == [*["one", "two"][:at], "later"]
