"""User or app state that others have filled: what does not fit waits, and blocks nothing."""

from __future__ import annotations

import asyncio

import pytest

from cosmosservice.errors import StateUpdatePendingError
from tests.support.adk import event, reload
from tests.support.raw import raw_store

WHO = {"app_name": "app", "user_id": "user"}
THIS = WHO | {"session_id": "s"}
LARGE = 1_200_000


def document(emulator, session_id="s"):
    with raw_store(emulator) as raw:
        found = raw.sessions.all(document_type="session")
    return next(each for each in found if each["session_id"] == session_id)


async def fill(service, scope="user:"):
    session = await service.create_session(**WHO)
    await service.append_event(session, event("x", delta={scope + "a": "a" * LARGE}))
    return session


@pytest.fixture(params=["user:", "app:"])
async def full(request, open_service):
    """(who filled the state, its session, a process that has not noticed, its session)"""
    scope = request.param
    one, other = open_service(), open_service()
    session = await other.create_session(**THIS)
    filled = await fill(one, scope)
    delta = {"own": 1, scope + "b": "b" * LARGE, scope + "small": 1}
    with pytest.raises(StateUpdatePendingError, match=f"IS stored.*no room for {scope}b: "):
        await other.append_event(session, event("y", delta=delta))
    return scope, one, filled, other, session


async def make_room(full):
    scope, one, filled, *_ = full
    await one.append_event(await reload(one, filled), event("z", delta={scope + "a": ""}))


async def test_the_session_follows_its_log_and_shows_what_others_do_not(
    full, open_service, emulator, caplog
):
    scope, one, filled, other, _ = full
    await other.flush()
    body = document(emulator)
    assert (body["revision"], body["state"], body["unmerged"]) == (1, {"own": 1}, 1)
    assert [each for each in caplog.records if "no room" in each.message]
    shown = (await open_service().get_session(**THIS)).state
    assert shown["own"] == 1
    assert shown[scope + "b"][0] == "b"
    theirs = (await reload(one, filled)).state
    assert theirs[scope + "small"] == 1  # what fits is merged
    assert scope + "b" not in theirs


async def test_appends_that_change_nothing_of_it_go_on(full, emulator):
    _, _, _, other, session = full
    await other.append_event(session, event("more", delta={"own": 2}))
    await other.flush()
    body = document(emulator)
    assert (body["revision"], body["state"], body["unmerged"]) == (2, {"own": 2}, 1)


@pytest.mark.parametrize("restart", [False, True])
async def test_once_there_is_room_whoever_uses_the_session_brings_it_to_the_others(
    full, open_service, emulator, restart
):
    scope, one, filled, other, _ = full
    await other.flush()
    await make_room(full)
    service = open_service() if restart else other
    await service.get_session(**THIS)
    await service.flush()
    assert "unmerged" not in document(emulator)
    assert (await reload(one, filled)).state[scope + "b"][0] == "b"


async def test_as_long_as_there_is_no_room_a_get_writes_nothing(full, open_service, emulator):
    _, _, _, other, _ = full
    await other.flush()
    service = open_service()
    await service.get_session(**THIS)
    emulator.clear_requests()
    await service.get_session(**THIS)
    await service.flush()
    sent = [each for each in emulator.requests if each.resource == "docs"]
    assert {each.operation for each in sent} == {"read", "query"}


async def test_repair_tells_of_it_and_merges_it_once_there_is_room(full, open_service):
    scope, _, _, other, _ = full
    await other.flush()
    report = await open_service().repair_session(**THIS)
    assert (report.unmerged, report.healthy) == ([scope + "b"], False)
    await make_room(full)
    report = await open_service().repair_session(**THIS)
    assert (report.unmerged, report.healthy) == ([], True)


async def test_the_others_that_write_at_the_same_time_are_not_held_up(open_service):
    one, other = open_service(), open_service()
    sessions = [await other.create_session(**WHO) for _ in range(4)]
    await fill(one)
    deltas = [{"user:b": "b" * LARGE}, *({f"user:{n}": n} for n in range(3))]
    outcomes = await asyncio.gather(
        *(
            other.append_event(session, event("x", delta=delta))
            for session, delta in zip(sessions, deltas, strict=True)
        ),
        return_exceptions=True,
    )
    failed = [each for each in outcomes if isinstance(each, Exception)]
    assert [type(each) for each in failed] == [StateUpdatePendingError]
    state = await open_service().get_user_state(**WHO)
    assert {key: state[key] for key in "012"} == {"0": 0, "1": 1, "2": 2}


async def test_initial_state_that_does_not_fit_waits_in_the_session(open_service, emulator):
    one, other = open_service(), open_service()
    filled = await one.create_session(**WHO)
    await other.get_user_state(**WHO)
    await one.append_event(filled, event("x", delta={"user:a": "a" * LARGE}))
    with pytest.raises(StateUpdatePendingError, match=r"IS created.*no room for user:b"):
        await other.create_session(**THIS, state={"own": 1, "user:b": "b" * LARGE})
    session = await other.get_session(**THIS)
    assert session.state["own"] == 1
    assert session.state["user:b"][0] == "b"
    await other.append_event(session, event("y"))
    await other.flush()
    assert document(emulator)["revision"] == 1
    await make_room(("user:", one, filled))
    await open_service().get_session(**THIS)
    await other.append_event(session, event("z"))
    await other.flush()
    assert "pending" not in document(emulator)
    assert (await one.get_user_state(**WHO))["b"][0] == "b"
