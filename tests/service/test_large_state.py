"""State of any size: large values are in documents of their own."""

from __future__ import annotations

import os

import pytest

from cosmosservice import RequestCharge
from cosmosservice.errors import StaleSessionError
from tests.support.adk import event, reload
from tests.support.raw import raw_store

WHO = {"app_name": "app", "user_id": "user"}
THIS = WHO | {"session_id": "s"}
SCOPES = ["", "user:", "app:"]


def text(size: int) -> str:
    """Text that does not compress."""
    return os.urandom(size // 2).hex()


def values(cosmos):
    with raw_store(cosmos) as raw:
        return raw.sessions.all(document_type="state_value")


@pytest.mark.parametrize("scope", SCOPES)
async def test_three_megabytes_in_five_values_work(open_service, cosmos, scope):
    service = open_service()
    state = {f"{scope}{name}": text(600_000) for name in "abcde"}
    session = await service.create_session(**THIS)
    await service.append_event(session, event("x", delta=dict(state)))
    await service.flush()
    assert (await reload(open_service(), session)).state == state
    listed = await open_service().list_sessions(**WHO)
    assert listed.sessions[0].state == state
    with raw_store(cosmos) as raw:
        assert all(len(str(body)) < 2_000_000 for body in raw.everything())


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_session_can_be_created_with_it(open_service, scope):
    state = {f"{scope}{name}": text(600_000) for name in "abcde"} | {"small": 1}
    session = await open_service().create_session(**THIS, state=dict(state))
    assert session.state == state
    assert (await open_service().get_session(**THIS)).state == state


async def test_thirty_megabytes_in_one_value_work(open_service):
    service = open_service()
    session = await service.create_session(**THIS)
    value = text(30_000_000)
    await service.append_event(session, event("x", delta={"value": value}))
    await service.flush()
    assert (await reload(open_service(), session)).state == {"value": value}


async def test_many_values_that_are_small_each_work(open_service):
    service = open_service()
    state = {f"key {number}": text(20_000) for number in range(150)}
    session = await service.create_session(**THIS, state=dict(state))
    await service.append_event(session, event("x", delta={"key 7": 7}))
    await service.flush()
    assert (await reload(open_service(), session)).state == state | {"key 7": 7}


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_tiny_change_beside_it_costs_little(open_service, emulator, scope):
    spent: list[RequestCharge] = []
    service = open_service(on_request_charge=spent.append)
    state = {f"{scope}{name}": text(360_000) for name in "abcde"}
    session = await service.create_session(**THIS, state=dict(state))
    await service.append_event(session, event("warm", delta={f"{scope}tiny": 0}))
    await service.flush()
    before = {each["id"] for each in values(emulator)}
    spent.clear()
    await service.append_event(session, event("x", delta={f"{scope}tiny": 1}))
    await service.flush()
    change = sum(each.request_units for each in spent if each.operation == "append_event")
    assert change <= 25
    # The session document follows. `user:` and `app:` state is in a document of its own.
    assert sum(each.request_units for each in spent) <= (30 if scope else 25)
    assert {each["id"] for each in values(emulator)} == before


async def test_unchanged_values_are_not_read_again(open_service, emulator):
    service = open_service()
    session = await service.create_session(**THIS, state={"large": text(500_000)})
    await reload(service, session)
    emulator.clear_requests()
    await reload(service, session)
    assert not [each for each in emulator.requests if (each.id or "").startswith("value-")]


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_value_that_is_replaced_is_removed(open_service, emulator, scope):
    service = open_service()
    session = await service.create_session(**THIS, state={f"{scope}k": text(100_000)})
    for value in (text(200_000), "small", text(100_000)):
        await service.append_event(session, event("x", delta={f"{scope}k": value}))
        await service.flush()
        assert len(values(emulator)) == (0 if value == "small" else 1)
        assert (await reload(open_service(), session)).state == {f"{scope}k": value}


async def test_the_same_value_again_is_stored_once(open_service, emulator):
    service = open_service()
    large = text(300_000)
    session = await service.create_session(**THIS, state={"k": large})
    (before,) = values(emulator)
    await service.append_event(session, event("x", delta={"k": large, "other": large}))
    await service.flush()
    assert [each["id"] for each in values(emulator)] == [before["id"]]
    assert (await reload(open_service(), session)).state == {"k": large, "other": large}


async def test_a_document_from_before_is_read_as_it_is_and_becomes_a_new_one(
    open_service, emulator
):
    service = open_service()
    session = await service.create_session(**THIS)
    await service.append_event(session, event("x", delta={"small": 1}))
    await service.flush()
    large = text(200_000)
    with raw_store(emulator) as raw:
        body = raw.sessions.one(document_type="session")
        raw.sessions.put(body | {"state": {"small": 1, "large": large}})
    fresh = open_service()
    found = await reload(fresh, session)
    assert found.state == {"small": 1, "large": large}
    assert values(emulator) == []
    await fresh.append_event(found, event("y", delta={"small": 2}))
    await fresh.flush()
    assert len(values(emulator)) == 1
    assert (await reload(open_service(), session)).state == {"small": 2, "large": large}


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_purge_leaves_none_of_it(open_service, emulator, scope):
    service = open_service()
    secret = "secret" * 20_000
    session = await service.create_session(**THIS, state={f"{scope}k": secret, "own": secret})
    await service.append_event(session, event("x", delta={f"{scope}k": secret + "!"}))
    await open_service().purge_user(**WHO, include_state=True)
    left = values(emulator)
    assert len(left) == (1 if scope == "app:" else 0)


async def test_two_processes_that_write_large_values_at_once_lose_none(open_service, emulator):
    one, other = open_service(on_conflict="rebase"), open_service(on_conflict="rebase")
    session = await one.create_session(**THIS)
    theirs = await reload(other, session)
    a, b = text(100_000), text(100_000)
    await one.append_event(session, event("a", delta={"a": a, "user:a": a}))
    await other.append_event(theirs, event("b", delta={"b": b, "user:b": b}))
    await one.flush()
    await other.flush()
    wanted = {"a": a, "b": b, "user:a": a, "user:b": b}
    assert (await reload(open_service(), session)).state == wanted
    assert len(values(emulator)) == 4


async def test_a_refused_append_stores_no_large_value(open_service, emulator):
    one, other = open_service(), open_service()
    session = await one.create_session(**THIS)
    stale = await reload(other, session)
    await one.append_event(session, event("x"))
    with pytest.raises(StaleSessionError):
        await other.append_event(stale, event("y", delta={"k": text(100_000)}))
    await other.flush()
    assert values(emulator) == []
