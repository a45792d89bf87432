"""The requests of each operation: round trips and request units are part of the product."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from cosmosservice import CosmosMemoryService
from tests.memory.raw import documents_of
from tests.memory.support import USER, found, session
from tests.support.adk import event


def sent(emulator) -> list[str]:
    """All requests except the read by which the SDK gets to know a container."""
    requests = [each for each in emulator.requests if each.resource == "docs"]
    return [each.operation for each in requests if each.id != "none"]


def charge(emulator) -> float:
    return sum(each.charge for each in emulator.requests if each.resource == "docs")


async def test_adding_a_turn_writes_that_turn_and_reads_nothing(memory, emulator):
    talk = session(*(f"Note {number}" for number in range(50)))
    await memory.add_session_to_memory(talk)
    emulator.clear_requests()
    talk.events += [event("One more"), event("And another")]
    await memory.add_session_to_memory(talk)
    assert sent(emulator) == ["create", "create"]
    emulator.clear_requests()
    await memory.add_session_to_memory(talk)
    assert sent(emulator) == []


async def test_a_process_that_knows_nothing_asks_once(memory, open_memory, emulator):
    talk = session(*(f"Note {number}" for number in range(50)))
    await memory.add_session_to_memory(talk)
    talk.events.append(event("One more"))
    emulator.clear_requests()
    await open_memory().add_session_to_memory(talk)
    assert sent(emulator) == ["query", "create"]
    assert charge(emulator) < 15


async def test_a_process_is_not_misled_by_an_event_that_was_added_alone(memory, open_memory):
    talk = session(*(f"Note {number}" for number in range(5)))
    await memory.add_events_to_memory(
        app_name="app", user_id=USER, events=talk.events[-1:], session_id="s"
    )
    await open_memory().add_session_to_memory(talk)
    assert len(await found(memory, "note")) == 5


async def test_a_search_asks_for_matches_and_then_for_the_contents_of_hits(memory, emulator):
    await memory.add_session_to_memory(session("The garage code is 2011", "Thank you"))
    emulator.clear_requests()
    await found(memory, "garage")
    assert sent(emulator) == ["query", "query"]
    assert charge(emulator) < 8


async def test_a_search_without_a_match_asks_once(memory, emulator):
    await memory.add_session_to_memory(session("The garage code is 2011"))
    emulator.clear_requests()
    assert await found(memory, "zebra") == []
    assert sent(emulator) == ["query"]
    emulator.clear_requests()
    assert await found(memory, "?") == []
    assert sent(emulator) == []


async def test_the_same_search_again_costs_nothing_until_something_is_added(memory, emulator):
    talk = session("The garage code is 2011")
    await memory.add_session_to_memory(talk)
    first = await found(memory, "garage")
    emulator.clear_requests()
    assert await found(memory, "garage") == first
    assert sent(emulator) == []
    talk.events.append(event("The garage door is green"))
    await memory.add_session_to_memory(talk)
    assert len(await found(memory, "garage")) == 2
    await memory.delete_memory(app_name="app", user_id=USER, memory_id=talk.events[0].id)
    assert len(await found(memory, "garage")) == 1
    await memory.purge_memories(app_name="app", user_id=USER)
    assert await found(memory, "garage") == []


async def test_a_hit_may_be_changed_by_who_got_it(memory):
    await memory.add_session_to_memory(session("The garage code is 2011"))
    (hit,) = await found(memory, "garage")
    hit.content.parts.clear()
    (again,) = await found(memory, "garage")
    assert again.content.parts


async def test_others_are_seen_after_a_while_or_at_once_if_so_wanted(open_memory, monkeypatch):
    writer, reader, eager = open_memory(), open_memory(), open_memory(repeat_seconds=0)
    for each in (reader, eager):
        assert await found(each, "garage") == []
    await writer.add_session_to_memory(session("The garage code is 2011"))
    assert await found(reader, "garage") == []
    assert len(await found(eager, "garage")) == 1
    now = time.monotonic()
    monkeypatch.setattr("cosmosservice.memory.known.time.monotonic", lambda: now + 31)
    assert len(await found(reader, "garage")) == 1


VOCABULARY = [f"word{number}" for number in range(5_000)]


async def fill(service, count: int) -> None:
    chance = random.Random(0)
    for number in range(count // 50):
        said = (
            " ".join(VOCABULARY[int(5_000 * chance.random() ** 2)] for _ in range(15))
            for _ in range(50)
        )
        await service.add_session_to_memory(session(*said, id=f"s{number}"))


def questions() -> list[str]:
    chance = random.Random(1)
    return [
        " ".join(VOCABULARY[int(5_000 * chance.random() ** 2)] for _ in range(5)) for _ in range(20)
    ]


@pytest.mark.parametrize("count", [2_000])
async def test_a_search_in_thousands_of_memories_stays_under_60_request_units(
    open_memory, emulator, count
):
    service = open_memory(repeat_seconds=0)
    async with service:
        await fill(service, count)
        for question in questions():
            emulator.clear_requests()
            assert len(await found(service, question)) == 20
            assert charge(emulator) <= 60
            assert len(sent(emulator)) <= 12


async def test_a_long_question_does_not_count_all_its_words(open_memory, emulator):
    chance = random.Random(2)
    words = [f"word{number}" for number in range(200)]
    service = open_memory(repeat_seconds=0)
    async with service:
        for number in range(12):
            said = (" ".join(chance.sample(words, 12)) for _ in range(50))
            await service.add_session_to_memory(session(*said, id=f"s{number}"))
        for _ in range(5):
            emulator.clear_requests()
            assert len(await found(service, " ".join(chance.sample(words, 24)))) == 20
            assert len(sent(emulator)) <= 12
            assert charge(emulator) <= 60


async def test_a_session_that_was_loaded_without_its_beginning_gets_it_later(open_memory, emulator):
    talk = session(*(f"Note {number}" for number in range(12)))
    whole = list(talk.events)
    talk.events = whole[8:]
    await open_memory().add_session_to_memory(talk)
    talk.events = whole
    await open_memory().add_session_to_memory(talk)
    listed = open_memory().iter_memories(app_name="app", user_id=USER)
    assert sorted([each.id async for each in listed]) == sorted(each.id for each in whole)
    turns = {each["memory_id"]: each["at"] for each in documents_of(emulator)}
    assert [turns[each.id] for each in whole] == sorted(turns.values())
    talk.events = [*whole, event("One more")]
    emulator.clear_requests()
    await open_memory().add_session_to_memory(talk)
    assert sent(emulator)[0] == "query"
    assert sent(emulator).count("create") <= 9  # those of the first add, and the new one


async def test_the_end_of_a_session_is_enough_to_go_on(open_memory, emulator):
    talk = session(*(f"Note {number}" for number in range(12)))
    whole = list(talk.events)
    await open_memory().add_session_to_memory(talk)
    talk.events = [*whole[10:], event("One more")]
    emulator.clear_requests()
    await open_memory().add_session_to_memory(talk)
    assert sent(emulator) == ["query", "create"]


async def test_every_request_is_reported_with_its_charge(open_memory, emulator):
    charges = []
    service = open_memory(on_request_charge=charges.append)
    talk = session("The garage code is 2011")
    await service.add_session_to_memory(talk)
    await found(service, "garage")
    await service.delete_memory(app_name="app", user_id=USER, memory_id=talk.events[0].id)
    assert {each.operation for each in charges} - {"connect"} == {
        "add_session_to_memory",
        "search_memory",
        "delete_memory",
    }
    assert {each.container for each in charges} == {"memories"}
    assert sum(each.request_units for each in charges) == pytest.approx(charge(emulator), abs=0.01)


def test_a_service_is_used_from_one_event_loop_after_another(emulator):
    service = CosmosMemoryService.embedded(emulator)
    asyncio.run(service.add_session_to_memory(session("The garage code is 2011")))
    assert len(asyncio.run(found(service, "garage"))) == 1
    asyncio.run(service.close())
    assert len(asyncio.run(found(service, "garage"))) == 1
    asyncio.run(service.close())


def test_what_a_process_knows_of_others_is_bounded(monkeypatch):
    from cosmosservice.memory import known

    for name in ("MOST_OWNERS", "MOST_ANSWERS", "MOST_SESSIONS"):
        monkeypatch.setattr(known, name, 3)
    kept = known.Known(30.0)
    for number in range(10):
        owner = f"o{number}"
        before = kept.version(owner)
        kept.changed(owner)
        kept.answered(owner, "q", "too late", before)
        assert kept.answer(owner, "q") is None
        kept.answered(owner, "q", "in time", kept.version(owner))
        assert kept.answer(owner, "q") == "in time"
        kept.learn(owner, "s", known.Conversation())
    assert kept.answer("o0", "q") is None
    assert kept.conversation("o0", "s") is None
    assert kept.conversation("o9", "s") is not None
