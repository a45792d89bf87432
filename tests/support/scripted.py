"""A model that replays a script, so that real ADK runners work without a network."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.genai import types
from pydantic import PrivateAttr

Reply = str | types.Part | list[types.Part] | Callable[[], Any]


def call(name: str, **args: Any) -> types.Part:
    """A tool call."""
    return types.Part(function_call=types.FunctionCall(name=name, args=args))


def user(*parts: str | types.Part) -> types.Content:
    """A message of the user."""
    return types.Content(
        role="user",
        parts=[types.Part(text=part) if isinstance(part, str) else part for part in parts],
    )


class ScriptedModel(BaseLlm):
    """Gives one reply after the other, and records the requests.

    A reply is text, a part, several parts, or a callable that raises, for a model that fails.
    """

    model: str = "scripted"
    replies: list[Any]
    _given: int = PrivateAttr(default=0)
    _prompts: list[list[types.Content]] = PrivateAttr(default_factory=list)

    @property
    def prompts(self) -> list[list[types.Content]]:
        """The conversation that the model was shown at each call."""
        return self._prompts

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self._prompts.append([content.model_copy(deep=True) for content in llm_request.contents])
        assert self._given < len(self.replies), "the script is over"
        reply = self.replies[self._given]
        self._given += 1
        if callable(reply):
            reply = reply()
        parts = [types.Part(text=reply)] if isinstance(reply, str) else reply
        if isinstance(parts, types.Part):
            parts = [parts]
        if stream and isinstance(reply, str):
            for word in reply.split():
                yield LlmResponse(
                    content=types.Content(role="model", parts=[types.Part(text=word)]), partial=True
                )
        yield LlmResponse(
            content=types.Content(
                role="model", parts=[part.model_copy(deep=True) for part in parts]
            )
        )
