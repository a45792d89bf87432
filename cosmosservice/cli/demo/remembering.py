"""An agent of the demo that uses its memory: the tools of cosmosservice.memory_tools."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final

from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.genai import types

from cosmosservice.cli.demo.script import AGENT, APP, USER
from cosmosservice.cli.demo.stage import Stage
from cosmosservice.memory_tools import forget, preload, remember, search_memory

TALKS: Final = {
    "call-1": "Remember that the bell of my house is weak.",
    "call-2": "How is the bell of my house?",
}
_FACT: Final = "The bell of Ada's house is weak."
_RECALLED: Final = re.compile(rf"{AGENT} \(session call-1\): (.*)")


class _Model(BaseLlm):
    """Knows only what the request says."""

    model: str = "scripted"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(
            content=types.Content(role="model", parts=[_reply(llm_request)]),
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=340, candidates_token_count=12
            ),
        )


def _reply(request: LlmRequest) -> types.Part:
    last: Any = (request.contents[-1].parts or [types.Part()])[-1]
    if last.function_response:
        return types.Part(text="I will keep that in mind.")
    if (last.text or "").startswith("Remember"):
        return types.Part.from_function_call(
            name="remember", args={"text": _FACT, "topic": "delivery"}
        )
    recalled = _RECALLED.search(str(request.config.system_instruction))
    return types.Part(text=f"I remember: {recalled[1]}" if recalled else "I do not know.")


async def talks(stage: Stage) -> AsyncIterator[tuple[str, list[Event]]]:
    """Two sessions of the agent: their ids, and what was said."""
    agent = LlmAgent(name=AGENT, model=_Model(), tools=[remember, search_memory, forget, preload])
    runner = Runner(
        app_name=APP, agent=agent, session_service=stage.sessions, memory_service=stage.memory
    )
    names: dict[str, Any] = {"app_name": APP, "user_id": USER}
    for session_id, text in TALKS.items():
        if await stage.sessions.get_session(**names, session_id=session_id) is None:
            await stage.sessions.create_session(**names, session_id=session_id)
        said = types.Content(role="user", parts=[types.Part(text=text)])
        turn = runner.run_async(user_id=USER, session_id=session_id, new_message=said)
        yield session_id, [Event(author="user", content=said), *[each async for each in turn]]
