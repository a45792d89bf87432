"""Live mode: two tasks append to one session, one for the user's words and one for the model's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from google.adk.agents import LiveRequestQueue, LlmAgent, RunConfig
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.tools import ToolContext
from google.genai import types

from tests.adk.stage import USER, Stage
from tests.support.scripted import user

WORDS = [f"word {n}" for n in range(6)]


class EchoConnection(BaseLlmConnection):
    """Answers each message with a tool call or an echo, at its own pace."""

    def __init__(self) -> None:
        self._answers: asyncio.Queue[LlmResponse | None] = asyncio.Queue()

    async def send_history(self, history: list[types.Content]) -> None:
        pass

    async def send_realtime(self, blob: types.Blob) -> None:
        pass

    async def send_content(self, content: types.Content) -> None:
        part = content.parts[0]
        if part.text == WORDS[0]:
            request = types.FunctionCall(id="call-0", name="hear", args={"text": part.text})
            reply = types.Part(function_call=request)
        elif part.function_response:
            reply = types.Part(text="heard by the tool")
        else:
            reply = types.Part(text=f"echo of {part.text}")
        self._answers.put_nowait(
            LlmResponse(content=types.Content(role="model", parts=[reply]), turn_complete=False)
        )

    async def receive(self) -> AsyncIterator[LlmResponse]:
        while (answer := await self._answers.get()) is not None:
            yield answer

    async def close(self) -> None:
        self._answers.put_nowait(None)


class EchoModel(BaseLlm):
    model: str = "echo"

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False):
        raise AssertionError("live only")
        yield

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest):
        yield EchoConnection()


def hear(text: str, tool_context: ToolContext) -> str:
    """Hears."""
    tool_context.state["heard"] = text
    tool_context.state["user:heard"] = text
    return text


async def test_both_sides_of_a_live_conversation_are_kept(same_as_in_memory):
    """Which side appends first is random. The order within each side is not."""

    async def scene(stage: Stage) -> None:
        stage.enact(LlmAgent(name="echo", model=EchoModel(), tools=[hear]))
        session = await stage.session()
        requests = LiveRequestQueue()
        for word in WORDS:
            requests.send_content(user(word))
        said = 0
        async with stage.turn() as runner:
            async for event in runner.run_live(
                user_id=USER,
                session_id=session.id,
                live_request_queue=requests,
                run_config=RunConfig(response_modalities=["TEXT"]),
            ):
                stage.shown.append(event.model_copy(deep=True))
                said += bool(event.content and event.content.parts[0].text)
                if said == len(WORDS):
                    requests.close()
                    break

    seen = await same_as_in_memory(scene, by=lambda event: event.author)
    user_said = [
        event["content"]["parts"][0]["text"]
        for event in seen["stored"]
        if event["author"] == "user"
    ]
    assert user_said == WORDS
    assert seen["state"] == {"heard": WORDS[0], "user:heard": WORDS[0]}
