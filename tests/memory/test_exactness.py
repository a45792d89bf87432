"""A search returns what a ranking of all the user's memories would, however many match."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosmosservice import CosmosMemoryService
from cosmosservice.memory.ranking import Candidate, Ranking, matches_of
from cosmosservice.memory.words import terms_of
from tests.memory.raw import documents_of
from tests.memory.support import USER, found, found_texts, session
from tests.support.adk import event

RESULTS = 10


def exhaustive(stored: list[dict[str, Any]], query: str) -> list[tuple[float, str]]:
    """Score and id of the best of all the stored memories, by the same formula."""
    terms = terms_of(query)
    matches = [each for each in matches_of(stored, terms) if each.having]
    having = {term: sum(term in match.having for match in matches) for term in terms}
    ranking = Ranking(matches, having)
    scores = {}
    for candidate in ranking.candidates:
        for document in stored:
            if document["id"] == candidate.document_id:
                scores[document["memory_id"]] = candidate.score
            elif _answers(document, candidate):
                scores[document["memory_id"]] = ranking.score_of(candidate, document["length"])
    return sorted(((score, each) for each, score in scores.items()), reverse=True)


def _answers(document: dict[str, Any], candidate: Candidate) -> bool:
    asked = candidate.answer_to
    follows = candidate.document_id is None and document["at"] == candidate.at
    return asked is not None and follows and document["author"] != asked.author


async def differing(service, stored: list[dict[str, Any]], query: str) -> int:
    """How many of the ten best are missing, counting equal scores as equal."""
    best = exhaustive(stored, query)
    hits = [hit.id for hit in await found(service, query, limit=RESULTS)]
    scores = {each: score for score, each in best}
    assert set(hits) <= set(scores), "a hit that does not match"
    assert len(hits) == min(RESULTS, len(best))
    wanted = [score for score, _ in best[:RESULTS]]
    got = sorted((scores[each] for each in hits), reverse=True)
    least = wanted[-1] if wanted else 0.0
    return sum(score < least - 1e-9 for score in got)


@settings(deadline=None, max_examples=8, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 10_000),
    count=st.sampled_from([5, 40, 300, 600]),
    vocabulary=st.sampled_from([6, 40, 400]),
    longest=st.sampled_from([3, 12, 40]),
    asked=st.integers(1, 6),
)
def test_a_search_equals_the_exhaustive_ranking(seed, count, vocabulary, longest, asked):
    from cosmos_emulator import Emulator

    chance = random.Random(seed)
    words = [f"w{chance.randrange(10**6)}x" for _ in range(vocabulary)]

    def word() -> str:
        return words[int(vocabulary * chance.random() ** 2)]

    def said() -> str:
        text = " ".join(word() for _ in range(chance.randint(1, longest)))
        return text + ("?" if chance.random() < 0.3 else "")

    async def run() -> list[int]:
        with Emulator() as emulator:
            async with CosmosMemoryService.embedded(emulator, repeat_seconds=0) as service:
                for number in range(0, count, 50):
                    turns = [
                        event(said(), author=chance.choice(["user", "ann", "bob"]))
                        for _ in range(min(50, count - number))
                    ]
                    await service.add_session_to_memory(session(*turns, id=f"s{number}"))
                queries = [" ".join(word() for _ in range(asked)) for _ in range(4)]
                queries.append("What did ann say about " + word())
                stored = documents_of(emulator)
                return [await differing(service, stored, query) for query in queries]

    missing = asyncio.run(run())
    assert sum(missing) / len(missing) <= 1, missing


NEEDLES = [(words, behind) for words in (2, 3, 4, 6) for behind in (30, 200, 1_000)]


@pytest.mark.parametrize(("words", "behind"), NEEDLES)
async def test_an_old_memory_with_all_the_words_comes_first(memory, words, behind):
    names = ["garden", "violin", "harbour", "lantern", "walnut", "meadow"][:words]
    await memory.add_events_to_memory(
        app_name="app",
        user_id=USER,
        session_id="old",
        events=[event("We talked about the " + " and the ".join(names), timestamp=1.0)],
    )
    newer = [
        event(f"Number {number} is about a {names[number % words]}", timestamp=1000.0 + number)
        for number in range(behind)
    ]
    await memory.add_events_to_memory(app_name="app", user_id=USER, events=newer, session_id="new")
    hits = await found_texts(memory, " ".join(names), limit=RESULTS)
    assert hits[0].startswith("We talked about the")
    assert len(hits) == RESULTS


async def test_every_hit_has_a_word_of_the_query_or_answers_a_question(memory):
    talk = [
        event("Do you like peanuts?", author="assistant"),
        event("No, never."),
        event("Peanuts are not for me"),
        event("I see.", author="assistant"),
        event("Are you still there?", author="assistant"),
    ]
    await memory.add_session_to_memory(session(*talk))
    hits = await found(memory, "peanuts")
    why = {hit.content.parts[0].text: hit.custom_metadata["match"] for hit in hits}
    assert set(why) == {"Do you like peanuts?", "No, never.", "Peanuts are not for me"}
    assert why["Peanuts are not for me"]["words"] == ["peanuts"]
    assert why["No, never."]["words"] == []
    assert why["No, never."]["answer_to"] == talk[0].id
    assert all(match["score"] > 0 for match in why.values())


async def test_a_turn_by_the_same_author_is_no_answer(memory):
    talk = [event("Do you like peanuts?"), event("Are you still there?")]
    await memory.add_session_to_memory(session(*talk))
    assert await found_texts(memory, "peanuts") == ["Do you like peanuts?"]


async def test_one_conversation_of_long_turns_does_not_fill_the_list(memory):
    """Ten long turns of one conversation, and a shorter match in each of two others."""
    padding = " ".join(f"filler{number}" for number in range(60))
    talk = [event(f"The violin repair, part {number}: {padding}") for number in range(12)]
    await memory.add_session_to_memory(session(*talk, id="long"))
    for other in ("first", "second"):
        said = f"{padding} {padding} my violin went to repair, {other}"
        await memory.add_session_to_memory(session(said, id=other))
    hits = await found_texts(memory, "violin repair", limit=10)
    assert sum("my violin" in text for text in hits) == 2
