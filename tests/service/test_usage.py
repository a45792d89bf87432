"""What sessions have used: kept in their documents, and the same as in the log."""

from __future__ import annotations

import datetime

import pytest
from google.adk.events import Event
from google.genai import types

from cosmos_emulator import charges
from cosmosservice import CosmosSessionService, Usage
from cosmosservice.sessions.store.usage import stored_units
from tests.support.raw import raw_store

SHOP = {"app_name": "shop", "user_id": "ada"}
EVENT = charges.write(1, 3)  # up to 1 KB, with the terms of `id` and `_ts`


def said(text, *, author="user", at=1_700_000_000.0, **tokens):
    used = types.GenerateContentResponseUsageMetadata(**tokens) if tokens else None
    content = types.Content(role=author, parts=[types.Part(text=text)])
    return Event(author=author, timestamp=at, content=content, usage_metadata=used)


def answer(at=1_700_000_001.0):
    return said(
        "Yes.",
        author="waiter",
        at=at,
        prompt_token_count=100,
        cached_content_token_count=40,
        tool_use_prompt_token_count=5,
        candidates_token_count=20,
        thoughts_token_count=7,
    )


async def talk(service, session_id, turns=1, user="ada", at=1_700_000_000.0):
    session = await service.create_session(app_name="shop", user_id=user, session_id=session_id)
    for turn in range(turns):
        await service.append_event(session, said("Tea?", at=at + 10 * turn))
        await service.append_event(session, answer(at + 10 * turn + 1))
    return session


def tokens(usage):
    return (
        *(usage.turns, usage.events, usage.input_tokens, usage.cached_tokens),
        *(usage.output_tokens, usage.thought_tokens),
    )


ONE = (1, 2, 105, 40, 20, 7)


def times(number):
    return tuple(number * each for each in ONE)


@pytest.fixture
async def service(emulator):
    async with CosmosSessionService.embedded(emulator) as made:
        yield made


async def test_sums_are_by_session_by_user_and_of_the_app(service):
    await talk(service, "first", 2)
    await talk(service, "second")
    await talk(service, "third", 3, user="bob")
    report = await service.usage(app_name="shop")
    assert [(each.session_id, tokens(each.usage)) for each in report.sessions] == [
        ("first", times(2)),
        ("second", times(1)),
        ("third", times(3)),
    ]
    assert {user: tokens(each) for user, each in report.by_user.items()} == {
        "ada": times(3),
        "bob": times(3),
    }
    assert tokens(report.total) == times(6)
    assert report.total.tokens == 6 * (105 + 20 + 7)
    assert report.total.request_units == pytest.approx(12 * EVENT, abs=0.01)
    of_bob = await service.usage(app_name="shop", user_id="bob")
    assert tokens(of_bob.total) == times(3)
    assert (await service.usage(app_name="other")).sessions == []


async def test_no_event_is_read_for_the_sums(service, emulator):
    await talk(service, "first", 5)
    await service.flush()
    emulator.clear_requests()
    await service.usage(**SHOP)
    assert len([each for each in emulator.requests if each.operation == "query"]) == 1


async def test_since_counts_events_of_that_time_or_later(service):
    await talk(service, "old", 1, at=1_600_000_000.0)
    await talk(service, "long", 3)
    await talk(service, "new", 1, at=1_700_000_020.0)
    since = datetime.datetime.fromtimestamp(1_700_000_010.0, datetime.UTC)
    report = await service.usage(**SHOP, since=since)
    assert {each.session_id: tokens(each.usage) for each in report.sessions} == {
        "long": times(2),
        "new": times(1),
    }
    with pytest.raises(ValueError, match="time zone"):
        await service.usage(**SHOP, since=datetime.datetime(2026, 1, 1))


async def test_a_fork_counts_what_it_added(service):
    source = await talk(service, "first", 2)
    fork = await service.fork_session(**SHOP, session_id=source.id, at=2)
    await service.append_event(fork, answer())
    report = await service.usage(**SHOP)
    found = {each.session_id: each.usage for each in report.sessions}
    assert tokens(found[fork.id]) == (0, 1, 105, 40, 20, 7)
    assert found[fork.id].request_units == pytest.approx(3 * EVENT, abs=0.01)
    assert tokens(found["first"]) == times(2)


async def test_deleted_and_restored_sessions_keep_their_sums_and_purged_ones_have_none(service):
    await talk(service, "first", 2)
    await service.delete_session(**SHOP, session_id="first")
    report = await service.usage(**SHOP)
    assert [(each.deleted, tokens(each.usage)) for each in report.sessions] == [(True, times(2))]
    await service.restore_session(**SHOP, session_id="first")
    report = await service.usage(**SHOP)
    assert [(each.deleted, tokens(each.usage)) for each in report.sessions] == [(False, times(2))]
    await service.purge_session(**SHOP, session_id="first")
    assert (await service.usage(**SHOP)).total == Usage()


@pytest.mark.parametrize("damage", ["missing", "wrong", "document"])
async def test_a_repair_counts_again(emulator, damage):
    async with CosmosSessionService.embedded(emulator) as service:
        await talk(service, "first", 2)
        await service.flush()
    with raw_store(emulator) as raw:
        body = raw.sessions.one(session_id="first")
        if damage == "missing":
            del body["usage"]
        elif damage == "wrong":
            body["usage"] = {"turns": "many", "input_tokens": -4}
        else:
            del body["incarnation"]
        raw.sessions.put(body)
    async with CosmosSessionService.embedded(emulator) as service:
        await service.repair_session(**SHOP, session_id="first")
        assert tokens((await service.usage(**SHOP)).total) == times(2)


async def test_events_of_a_writer_that_was_killed_count_once_a_reader_has_seen_them(emulator):
    writer = CosmosSessionService.embedded(emulator)
    await talk(writer, "first", 2)
    async with CosmosSessionService.embedded(emulator) as reader:
        await reader.get_session(**SHOP, session_id="first")
        await reader.flush()
        assert tokens((await reader.usage(**SHOP)).total) == times(2)
    await writer.close()


async def test_an_imported_session_counts(service, emulator):
    source = await talk(service, "first", 2)
    whole = await service.get_session(**SHOP, session_id=source.id)
    whole.user_id = "eve"
    await service.import_session(whole)
    assert tokens((await service.usage(app_name="shop", user_id="eve")).total) == times(2)


@pytest.mark.parametrize("size", [100, 1024, 1500, 5_000, 40_000, 700_000, 1_900_000])
def test_request_units_are_those_that_the_emulator_charges(size):
    assert stored_units(size) == pytest.approx(charges.write(size, 3))
