"""since_compaction: the cost of a turn, and the behaviour under lag and damage."""

from __future__ import annotations

import logging
import os

import pytest

from cosmos_emulator import Emulator, Replicas
from cosmosservice import CosmosSessionService
from cosmosservice.errors import ConfigurationError
from tests.support.adk import event, reload
from tests.support.histories import History, prompts
from tests.support.raw import raw_store
from tests.support.stores import opened_store

WHO = {"app_name": "app", "user_id": "user"}
LONG = int(os.environ.get("COMPACTED_EVENTS", "400"))
SAY = ("say", "agent", "")


async def conversation(service, turns, *operations):
    """A session of this many turns. All but the last are summarised. Some more follow."""
    history = History()
    session = await service.create_session(**WHO)
    for operation in (*[SAY] * turns, ("roll", 2, 0), *operations):
        known = len(history.events)
        history.follow(operation)
        for each in history.events[known:]:
            await service.append_event(session, each)
    await service.flush()
    return session


async def turn(service, emulator, session):
    """(requests, request units) of a turn in a process that has not seen the session."""
    await reload(service, session, recent=0)  # connects
    store = opened_store(service)
    store.documents._cache._entries.clear()
    emulator.clear_requests()
    found = await reload(service, session)
    for said in ("a", "b", "c"):
        await service.append_event(found, event(said, timestamp=found.last_update_time + 1))
    await service.flush()
    sent = [each for each in emulator.requests if each.resource == "docs"]
    return len(sent), sum(each.charge for each in sent)


async def test_a_turn_costs_the_same_however_many_events_are_compacted(open_service, emulator):
    writer, service = open_service(), open_service(since_compaction=True)
    short, long = await conversation(writer, 25), await conversation(writer, LONG // 2)
    assert (len(short.events), len(long.events)) == (51, LONG + 1)
    requests, units = await turn(service, emulator, short)
    many, more = await turn(service, emulator, long)
    assert many == requests
    assert more / units < 1.05


async def test_a_session_that_is_known_is_loaded_in_one_round_trip(open_service, emulator):
    session = await conversation(open_service(), 25, *[SAY] * 2)
    service = open_service(since_compaction=True)
    for _ in range(2):  # the SDK learns the containers and their ranges
        await reload(service, session)
    emulator.clear_requests()
    emulator.faults.latency = 0.3
    await reload(service, session)
    sent = [each for each in emulator.requests if each.resource == "docs"]
    assert sorted(each.operation for each in sent) == ["query", "read", "read", "read"]
    assert all(one.overlaps(other) for one in sent for other in sent)


async def test_an_event_that_waits_is_loaded_with_all_that_follow_it(open_service, emulator):
    waiting = ("wait", True, False)
    session = await conversation(open_service(), 2, waiting, *[SAY] * 20, ("roll", 2, 0), SAY)
    service = open_service(since_compaction=True)
    part = await reload(service, session)
    first = next(n for n, each in enumerate(session.events) if each.long_running_tool_ids) - 1
    assert part.events == session.events[first:]
    assert prompts(part.events, []) == prompts(session.events, [])
    emulator.clear_requests()
    assert await reload(service, session) == part
    assert sum(each.operation == "query" for each in emulator.requests) == 1


@pytest.mark.parametrize("lagging", ["events", "sessions"])
async def test_under_lag_the_prompt_is_one_that_the_session_had(lagging):
    """Whichever container lags, the loaded events belong to a revision that the session had."""
    replicas = Replicas()
    with Emulator(replicas=replicas) as emulator:
        async with (
            CosmosSessionService.embedded(emulator) as writer,
            CosmosSessionService.embedded(emulator, since_compaction=True) as reader,
        ):
            history = History()
            session = await writer.create_session(**WHO)
            for operation in [*[SAY] * 8, ("roll", 2, 0)] * 2 + [SAY]:
                replicas.hold(lagging)
                known = len(history.events)
                history.follow(operation)
                for each in history.events[known:]:
                    await writer.append_event(session, each)
                await writer.flush()
                found = await reader.get_session(**WHO, session_id=session.id)
                if found is not None:
                    shown = [each.id for each in history.events]
                    last = shown.index(found.events[-1].id) + 1 if found.events else 0
                    assert prompts(found.events, []) == prompts(history.events[:last], [])
                replicas.catch_up(lagging)
                replicas.release()
            found = await reload(reader, session)
            assert len(found.events) < len(history.events)
            assert prompts(found.events, []) == prompts(history.events, [])


async def test_a_record_of_those_that_was_removed_is_reported_and_the_rest_is_loaded(
    open_service, cosmos, caplog
):
    session = await conversation(
        open_service(), 0, ("wait", True, False), *[SAY] * 9, ("roll", 2, 0)
    )
    with raw_store(cosmos) as raw:
        seq = raw.sessions.one(document_type="session")["load"]["from"]
        raw.events.remove(raw.events.one(seq=seq))
    service = open_service(since_compaction=True)
    with caplog.at_level(logging.ERROR):
        part = await reload(service, session)
    assert session.events[seq - 1] not in part.events
    assert session.events[-1] in part.events
    assert "has lost 1 of its records" in caplog.text


@pytest.mark.parametrize("load", ["x", {}, {"from": "a"}, {"from": 3, "at": 0}])
async def test_a_damaged_number_means_everything(open_service, cosmos, load):
    session = await conversation(open_service(), 9)
    with raw_store(cosmos) as raw:
        raw.sessions.put(raw.sessions.one(document_type="session") | {"load": load})
    assert await reload(open_service(since_compaction=True), session) == await reload(
        open_service(), session
    )


async def test_a_purge_leaves_no_numbers(service, cosmos):
    session = await conversation(service, 9)
    with raw_store(cosmos) as raw:
        assert raw.sessions.one(document_type="session")["load"]["from"] > 1
        await service.purge_session(**WHO, session_id=session.id)
        assert "load" not in raw.sessions.one(document_type="session")


def test_it_can_be_set_by_the_uri_and_by_the_environment(monkeypatch, tmp_path):
    uri = f"cosmosdb://embedded/{tmp_path}/s.db"
    assert not CosmosSessionService(uri=uri)._since_compaction
    assert CosmosSessionService(uri=f"{uri}?since_compaction=true")._since_compaction
    monkeypatch.setenv("COSMOSDB_SINCE_COMPACTION", "1")
    assert CosmosSessionService(uri=uri)._since_compaction
    assert not CosmosSessionService(uri=uri, since_compaction=False)._since_compaction
    with pytest.raises(ConfigurationError, match="since_compaction"):
        CosmosSessionService(uri=f"{uri}?since_compaction=perhaps")


def test_it_excludes_a_number_of_recent_events():
    with pytest.raises(ConfigurationError, match="cannot be combined"):
        CosmosSessionService.embedded(since_compaction=True, recent_events=5)
