"""What ADK's own tests of a memory service ask of a search."""

from __future__ import annotations

import pytest

from tests.memory.support import found_texts, session
from tests.support.stores import MODERN

ADK_ROCKS = "I agree. The Agent Development Kit (ADK) rocks!"


async def test_case_does_not_matter_and_what_lacks_the_word_is_no_hit(service, app):
    await service.add_session_to_memory(session("The ADK is a great toolkit.", ADK_ROCKS, app=app))
    assert await found_texts(service, "development", app=app) == [ADK_ROCKS]
    assert len(await found_texts(service, "How about ADK?", app=app)) == 2
    assert await found_texts(service, "nonexistent", app=app) == []


@pytest.mark.claims(MODERN)
async def test_memories_with_the_most_words_of_the_query_come_first(service, app):
    texts = ["The deploy is ready.", "Ready.", "The deploy status is ready."]
    await service.add_session_to_memory(session(*texts, app=app))
    assert await found_texts(service, "deploy status ready", app=app) == [
        "The deploy status is ready.",
        "The deploy is ready.",
        "Ready.",
    ]


@pytest.mark.claims(MODERN)
@pytest.mark.parametrize(
    ("text", "query", "count"),
    [
        ("私の名前は太郎です", "太郎", 1),
        ("私の名前は太郎です", "天気", 0),
        ("私はPythonでADKを使っています", "python", 1),
        ("私はPythonでADKを使っています", "thon", 0),
        ("제 이름은 민수입니다", "민수입니다", 1),
        ("Meet at the Cafe\u0301", "café", 1),
    ],
)
async def test_words_of_other_scripts_are_found(service, app, text, query, count):
    await service.add_session_to_memory(session(text, app=app))
    assert len(await found_texts(service, query, app=app)) == count
