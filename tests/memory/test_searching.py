"""Which memories a search returns, in which order, and how it can be narrowed down."""

from __future__ import annotations

import datetime

import pytest

from tests.memory.support import USER, conversation, found, found_texts, session
from tests.support.adk import event

LISBON = ("Have you ever been to Lisbon?", "Yes, last May!")


async def test_a_short_answer_is_found_by_the_question_before_it(memory):
    await memory.add_session_to_memory(conversation(*LISBON))
    assert set(await found_texts(memory, "When was I in Lisbon?")) == set(LISBON)


async def test_an_answer_that_is_added_later_is_found_as_well(memory, open_memory):
    await memory.add_session_to_memory(conversation(LISBON[0]))
    answer = event(LISBON[1])
    await open_memory().add_events_to_memory(
        app_name="app", user_id=USER, events=[answer], session_id="s"
    )
    assert LISBON[1] in await found_texts(open_memory(), "Lisbon")


async def test_memories_of_different_sessions_are_not_neighbours(memory):
    await memory.add_session_to_memory(session(LISBON[0], id="one"))
    await memory.add_session_to_memory(session(LISBON[1], id="two"))
    await memory.add_events_to_memory(
        app_name="app", user_id=USER, events=[event("Aside, without a session")]
    )
    assert await found_texts(memory, "Lisbon") == [LISBON[0]]


async def test_a_rare_word_counts_more_than_a_common_one(memory):
    talk = session(*(f"The red car number {n} is fast" for n in range(40)), "A zebra", id="cars")
    await memory.add_session_to_memory(talk)
    assert (await found_texts(memory, "red car or zebra"))[0] == "A zebra"


async def test_a_common_word_does_not_hide_an_old_memory_with_a_rare_one(memory):
    old = session("The dentist is called Molar", id="old")
    await memory.add_session_to_memory(old)
    many = [event(f"Meeting about budget number {number}") for number in range(300)]
    await memory.add_events_to_memory(app_name="app", user_id=USER, events=many, session_id="s")
    hits = await found_texts(memory, "Was the dentist part of the meeting about the budget?")
    assert hits[0] == "The dentist is called Molar"


async def test_of_equals_the_newest_comes_first(memory):
    for number in (2, 3, 1):
        await memory.add_events_to_memory(
            app_name="app", user_id=USER, events=[event("Tea at noon", timestamp=1000.0 + number)]
        )
    times = [hit.timestamp[-15:] for hit in await found(memory, "tea")]
    assert times == sorted(times, reverse=True)


async def test_the_author_may_be_asked_for_by_name(memory):
    advice = [
        event("Drink more water", author="doctor"),
        event("Water the roses", author="gardener"),
    ]
    for each in advice:
        await memory.add_events_to_memory(app_name="app", user_id=USER, events=[each])
    assert (await found_texts(memory, "What did the doctor say about water?"))[0] == (
        "Drink more water"
    )
    assert (await found_texts(memory, "the gardener"))[0] == "Water the roses"


@pytest.fixture
async def year(memory):
    """A message about tea for every month of 2026, by two people, in two sessions."""
    for month in range(1, 13):
        said = event(
            f"Tea of month {month}",
            author="ann" if month % 2 else "bob",
            timestamp=datetime.datetime(2026, month, 1, tzinfo=datetime.UTC).timestamp(),
        )
        await memory.add_events_to_memory(
            app_name="app", user_id=USER, events=[said], session_id=f"s{month % 3}"
        )
    return memory


def months(hits: list[str]) -> set[int]:
    return {int(hit.rsplit(" ", 1)[1]) for hit in hits}


async def test_a_search_may_be_limited(year):
    assert len(await found_texts(year, "tea", limit=3)) == 3
    assert len(await found_texts(year, "tea", limit=100)) == 12
    with pytest.raises(ValueError, match=r"limit must be at least 1\."):
        await found(year, "tea", limit=0)


async def test_a_search_may_be_of_one_session(year):
    assert months(await found_texts(year, "tea", session_id="s1")) == {1, 4, 7, 10}
    assert await found(year, "tea", session_id="none") == []


async def test_a_search_may_be_for_one_author(year):
    assert months(await found_texts(year, "tea", author="bob")) == {2, 4, 6, 8, 10, 12}
    assert await found(year, "tea", author="carl") == []


async def test_a_search_may_be_for_a_time(year):
    june = datetime.datetime(2026, 6, 1, tzinfo=datetime.UTC)
    assert months(await found_texts(year, "tea", since=june, limit=50)) == set(range(6, 13))
    assert months(await found_texts(year, "tea", until=june.timestamp(), limit=50)) == set(
        range(1, 7)
    )
    assert months(await found_texts(year, "tea", since=june, until=june)) == {6}


async def test_what_somebody_else_asked_leads_to_the_answer_of_the_author(memory):
    await memory.add_session_to_memory(conversation(*LISBON))
    assert await found_texts(memory, "Lisbon", author="user") == [LISBON[1]]


async def test_a_question_of_many_words_is_answered(memory):
    await memory.add_session_to_memory(session("The zebra is in the yard"))
    long = " ".join(f"word{number}" for number in range(2_000))
    assert await found_texts(memory, f"{long} zebra {long}") in (["The zebra is in the yard"], [])
    assert await found(memory, "🦊 ?! \u202e") == []


async def test_all_memories_are_listed_the_oldest_first(memory):
    many = [event(f"Note {number}", timestamp=1000.0 + number // 150) for number in range(320)]
    await memory.add_events_to_memory(app_name="app", user_id=USER, events=many, session_id="s")
    listed = [each.id async for each in memory.iter_memories(app_name="app", user_id=USER)]
    assert len(listed) == 320
    assert set(listed[:150]) == {each.id for each in many[:150]}
    of_none = memory.iter_memories(app_name="app", user_id=USER, session_id="none")
    assert [each async for each in of_none] == []


async def test_the_turns_around_a_hit_come_with_it_and_take_no_place_of_the_list(memory):
    talk = conversation("Hello", "I saw a zebra", "Really?", "Yes", "Goodbye")
    await memory.add_session_to_memory(talk)
    (hit,) = await found(memory, "zebra", context=1)
    turns = hit.custom_metadata["context"]
    assert [(each["text"], each["before"]) for each in turns] == [
        ("Hello", True),
        ("Really?", False),
    ]
    assert turns[0]["author"] == "assistant"
    assert turns[0]["id"] == talk.events[0].id
    (hit,) = await found(memory, "zebra")
    assert "context" not in hit.custom_metadata
    with pytest.raises(ValueError, match="context must be a number of turns"):
        await found(memory, "zebra", context=-1)
