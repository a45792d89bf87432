"""Sizes and shapes: at, just over and far over the limits of Cosmos DB."""

from __future__ import annotations

import os

import pytest

from cosmosservice.errors import CosmosServiceError, TooLargeError
from tests.support.adk import event, reload, texts
from tests.support.raw import raw_store

WHO = {"app_name": "app", "user_id": "user"}
LIMIT = 2 * 1024 * 1024  # of one document


@pytest.mark.parametrize("size", [LIMIT - 110_000, LIMIT - 97_152, LIMIT, LIMIT + 1])
async def test_an_event_around_the_limit_comes_back_whole(open_service, cosmos, size):
    service = open_service()
    session = await service.create_session(**WHO)
    said = event("x" * size, delta={"after": size})
    await service.append_event(session, said)
    await service.append_event(session, event("next"))
    found = await reload(open_service(), session)
    assert found.events[0] == said
    assert found.state == {"after": size}
    with raw_store(cosmos) as raw:
        assert all(len(str(body)) < LIMIT for body in raw.everything())


async def test_an_event_far_over_the_limit_comes_back_whole(open_service):
    service = open_service()
    session = await service.create_session(**WHO)
    said = event(os.urandom(6_000_000).hex())  # cannot be compressed below 6 MB
    await service.append_event(session, said)
    assert (await reload(open_service(), session)).events == [said]


@pytest.mark.parametrize("prefix", ["", "user:", "app:"])
async def test_more_keys_than_a_document_can_name_are_refused_and_leave_no_trace(
    open_service, prefix
):
    service = open_service()
    session = await service.create_session(**WHO, state={prefix + "kept": 1})
    many = {f"{prefix}{number:0100d}": number for number in range(20_000)}
    with pytest.raises(TooLargeError, match=r"too many keys.*Nothing was stored"):
        await service.append_event(session, event("x", delta=many))
    with pytest.raises(TooLargeError, match=r"too many keys.*Nothing was stored"):
        await service.create_session(**WHO, session_id="new", state=many)
    assert session.events == []
    assert session.state == {prefix + "kept": 1}
    found = await reload(open_service(), session)
    assert (found.events, found.state) == ([], {prefix + "kept": 1})
    assert await service.get_session(**WHO, session_id="new") is None
    await service.append_event(session, event("goes on", delta={prefix + "kept": 2}))
    assert (await reload(open_service(), session)).state == {prefix + "kept": 2}


@pytest.mark.parametrize("prefix", ["", "user:", "app:"])
async def test_ten_thousand_keys(open_service, prefix):
    service = open_service()
    many = {f"{prefix}key {number}": number for number in range(10_000)}
    session = await service.create_session(**WHO, state=dict(many))
    changed = {key: value + 1 for key, value in many.items()}
    await service.append_event(session, event("all", delta=dict(changed)))
    await service.append_event(session, event("one", delta={f"{prefix}key 0": "new"}))
    await service.flush()
    found = await reload(open_service(), session)
    assert found.state == changed | {f"{prefix}key 0": "new"}


def nested(depth):
    value = "bottom"
    for level in range(depth):
        value = [value] if level % 2 else {"k": value}
    return value


@pytest.mark.parametrize("depth", [50, 100, 120, 128, 200, 900])
@pytest.mark.parametrize("prefix", ["", "user:"])
async def test_deep_values_come_back_or_are_refused_without_a_trace(open_service, depth, prefix):
    service = open_service()
    session = await service.create_session(**WHO)
    said = event("deep", delta={prefix + "deep": nested(depth)})
    try:
        await service.append_event(session, said)
    except CosmosServiceError:
        stored = False
        assert session.events == []
    else:
        stored = True
    await service.flush()
    found = await reload(open_service(), session)
    assert texts(found) == (["deep"] if stored else [])
    assert found.state == ({prefix + "deep": nested(depth)} if stored else {})
    assert stored or depth > 100
    await service.append_event(session, event("goes on", delta={"k": 1}))
    assert texts(await reload(open_service(), session))[-1] == "goes on"
