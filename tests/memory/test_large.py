"""Memories of any size and content are read back unchanged."""

from __future__ import annotations

import itertools
import random

import pytest
from google.genai import types
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosmosservice import CosmosMemoryService
from tests.memory.raw import documents_of
from tests.memory.support import USER, found, session
from tests.support.adk import event

_WORDS = [f"word{number}" for number in range(3_000)]


async def test_a_text_of_a_megabyte_is_found_by_any_of_its_words(memory, cosmos):
    chance = random.Random(0)
    text = " ".join(chance.choices(_WORDS, k=110_000)) + " needle"
    assert len(text) > 900_000
    said = event(text)
    await memory.add_session_to_memory(session(said, "Something else"))
    for query in ("needle", "word7", "word2999"):
        hits = await found(memory, query)
        assert hits[0].id == said.id
        assert hits[0].content == said.content
    assert all(len(str(each)) < 1_100_000 for each in documents_of(cosmos))


async def test_a_search_reads_large_contents_of_hits_only(open_memory, emulator):
    memory = open_memory(results=1)
    blob = types.Blob(data=random.Random(0).randbytes(500_000), mime_type="image/png")
    for number in range(5):
        parts = [types.Part(text=f"tea picture {number}"), types.Part(inline_data=blob)]
        said = event(content=types.Content(role="user", parts=parts))
        await memory.add_events_to_memory(app_name="app", user_id=USER, events=[said])
    emulator.clear_requests()
    (hit,) = await found(memory, "tea")
    assert hit.content.parts[1].inline_data.data == blob.data
    charges = [each.charge for each in emulator.requests if each.resource == "docs"]
    assert len(charges) == 3
    assert sum(charges[:2]) < 10  # the third request reads the picture


async def test_a_large_memory_is_deleted_whole(memory, cosmos):
    said = event(" ".join(_WORDS))
    await memory.add_session_to_memory(session(said))
    assert len(documents_of(cosmos)) > 3
    await memory.delete_memory(app_name="app", user_id=USER, memory_id=said.id)
    (left,) = documents_of(cosmos)
    assert left["kind"] == "forgotten"
    assert "word7" not in str(left)


async def test_thoughts_and_tools_are_kept_but_not_searched(memory):
    parts = [
        types.Part(text="secret reasoning", thought=True),
        types.Part(text="The answer is tea"),
        types.Part(function_call=types.FunctionCall(name="brew", args={"kind": "oolong"})),
    ]
    said = event(content=types.Content(role="model", parts=parts), author="agent")
    await memory.add_session_to_memory(session(said))
    (hit,) = await found(memory, "tea")
    assert hit.content == said.content
    assert await found(memory, "reasoning oolong") == []


_users = itertools.count()
texts = st.text(alphabet=st.characters(), min_size=1, max_size=40)


@settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(text=texts, author=st.text(max_size=10))
async def test_any_text_comes_back_as_it_was(memory, text, author):
    said = event(f"tea {text}", author=author, id=f"/{text}?#")
    user = f"user {next(_users)}"
    await memory.add_session_to_memory(session(said, user=user))
    (hit,) = await found(memory, "tea", user=user)
    assert hit.content == said.content
    assert (hit.id, hit.author or "") == (said.id, author)
    await memory.delete_memory(app_name="app", user_id=user, memory_id=said.id)
    assert await found(memory, "tea", user=user) == []


@pytest.mark.parametrize("timestamp", [0.0, -1e9, 1e18, float("nan")])
async def test_any_time_is_kept(memory, timestamp):
    await memory.add_session_to_memory(session(event("tea", timestamp=timestamp)))
    (hit,) = await found(memory, "tea")
    assert hit.timestamp


async def test_ids_that_are_not_text_are_refused(memory):
    from cosmosservice.errors import InvalidIdError

    for wrong in ({"app": "\ud800"}, {"user": "\ud800"}, {"id": "\ud800"}, {"app": ""}):
        with pytest.raises(InvalidIdError, match="Nothing was stored"):
            await memory.add_session_to_memory(session("tea", **wrong))
    assert isinstance(memory, CosmosMemoryService)
