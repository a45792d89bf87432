"""Models that follow a script, so that the demo needs no API key.

They keep nothing between calls. All they know comes from the conversation that ADK shows them, as
for any model: without the history, they could not continue.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import AsyncGenerator

from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.genai import types

JOKES = (
    "I told my database a dark joke. It will never forget it.",
    "Why did the in-memory store break up? After the restart it asked: who are you?",
    "An event log walks into a bar. An event log walks into a bar: 409, it is already there.",
)


class LocalModel(BaseLlm):
    """One answer to one conversation."""

    model: str = "local"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        part = self.answer([part for c in llm_request.contents for part in c.parts or []])
        yield LlmResponse(content=types.Content(role="model", parts=[part]))

    @abstractmethod
    def answer(self, conversation: list[types.Part]) -> types.Part:
        """What comes next."""


class PostModel(LocalModel):
    """Picks numbers, writes a post, and transfers requests for jokes to the other agent."""

    def answer(self, conversation: list[types.Part]) -> types.Part:
        last, wish = conversation[-1], _wish(conversation)
        if last.function_response and last.function_response.name == "update_num_tool":
            num = (last.function_response.response or {})["random_num"]
            return types.Part(text=f"Done. How about: “{num} reasons to keep what you said.”")
        if number := re.search(r"\d+", wish):
            return _call("update_num_tool", num=number[0])
        if re.search(r"joke|funny|laugh", wish):
            return _call("transfer_to_agent", agent_name="funny_sub_agent")
        if "number" in wish:
            picked = [
                part.function_call.args["num"]
                for part in conversation
                if part.function_call and part.function_call.name == "update_num_tool"
            ]
            return types.Part(text=f"Of course. You picked {picked[-1]}.")
        return types.Part(text="Splendid, thank you. Which number shall we post about?")


class JokeModel(LocalModel):
    """Tells the first joke that it has not told yet."""

    def answer(self, conversation: list[types.Part]) -> types.Part:
        if not re.search(r"joke|funny|laugh", _wish(conversation)):
            return _call("transfer_to_agent", agent_name="postAgent")
        told = {part.text for part in conversation}
        return types.Part(text=next((joke for joke in JOKES if joke not in told), JOKES[0]))


def _wish(conversation: list[types.Part]) -> str:
    """What the user said last. What other agents said is shown as 'For context: …'."""
    said = [part.text for part in conversation if part.text and part.text not in JOKES]
    mine = [text for text in said if not text.startswith(("For context:", "["))]
    return mine[-1].lower()


def _call(name: str, **args: str) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name=name, args=args))
