"""The tools of cosmosservice.memory_tools, called by an agent with a scripted model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.memory import InMemoryMemoryService
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner, Runner
from google.genai import types

from cosmosservice.errors import ConfigurationError
from cosmosservice.memory_tools import PreloadMemory, forget, preload, remember, search_memory
from tests.memory.support import found, found_texts, session
from tests.support.adk import event

REQUESTS: list[LlmRequest] = []


class Scripted(BaseLlm):
    """Calls one tool, then says what it returned."""

    model: str = "scripted"
    tool: str = ""
    arguments: dict[str, Any] | None = None

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        REQUESTS.append(llm_request)
        last = (llm_request.contents[-1].parts or [types.Part()])[0]
        if last.function_response is not None or not self.tool:
            part = types.Part(text=str(last.function_response and last.function_response.response))
        else:
            part = types.Part(function_call=types.FunctionCall(name=self.tool, args=self.arguments))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def run(memory, tools, tool: str = "", message: str = "Hello", **arguments: Any) -> str:
    REQUESTS.clear()
    agent = LlmAgent(name="guide", model=Scripted(tool=tool, arguments=arguments), tools=tools)
    sessions = InMemoryRunner(agent, app_name="app").session_service
    runner = Runner(app_name="app", agent=agent, session_service=sessions, memory_service=memory)
    await sessions.create_session(app_name="app", user_id="ann", session_id="now")
    said = types.Content(role="user", parts=[types.Part(text=message)])
    texts = [
        part.text or ""
        async for each in runner.run_async(user_id="ann", session_id="now", new_message=said)
        for part in (each.content.parts or [] if each.content else [])
    ]
    return texts[-1]


async def test_an_agent_remembers_a_fact_and_where_it_was_told(memory):
    await run(memory, [remember], "remember", text="Ann is allergic to peanuts.", topic="health")
    (hit,) = await found(memory, "peanuts")
    assert hit.author == "guide"
    assert hit.custom_metadata["topic"] == "health"
    assert hit.custom_metadata["session_id"] == "now"


async def test_an_agent_searches_with_filters(memory):
    talk = [
        event("The hotel is near the river", author="guide", timestamp=1_000_000.0),
        event("I liked the hotel", timestamp=2_000_000.0),
    ]
    await memory.add_session_to_memory(session(*talk, id="trip"))
    said = await run(memory, [search_memory], "search_memory", query="hotel", author="user")
    assert "I liked the hotel" in said
    assert "near the river" not in said
    assert "'session': 'trip'" in said
    said = await run(memory, [search_memory], "search_memory", query="hotel", until="1970-01-13")
    assert "near the river" in said
    assert "I liked" not in said
    said = await run(memory, [search_memory], "search_memory", query="hotel", since="yesterday")
    assert "ISO 8601" in said


async def test_an_agent_forgets(memory):
    talk = session("The garage code is 2011", id="old")
    await memory.add_session_to_memory(talk)
    await run(memory, [forget], "forget", memory_id=talk.events[0].id)
    assert await found_texts(memory, "garage") == []


async def test_memories_are_preloaded_within_a_budget(memory):
    talk = [event(f"Lisbon note {number} " + "x" * 300) for number in range(10)]
    await memory.add_session_to_memory(session(*talk, id="old"))
    await run(memory, [PreloadMemory(token_budget=200)], message="What about Lisbon?")
    shown = str(REQUESTS[0].config.system_instruction)
    assert 1 <= shown.count("Lisbon note") <= 2
    assert "(session old)" in shown
    await run(memory, [preload], message="Nothing that was ever said")
    assert "<MEMORIES>" not in str(REQUESTS[0].config.system_instruction)


async def test_another_memory_service_is_refused():
    with pytest.raises(ConfigurationError, match="CosmosMemoryService"):
        await run(InMemoryMemoryService(), [forget], "forget", memory_id="x")
