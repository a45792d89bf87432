"""A model that follows a script: it needs no network and always answers the same."""

import re
from collections.abc import AsyncGenerator

from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.genai import types

INTRODUCTION = re.compile(r"\bmy name is (\w+)", re.IGNORECASE)
KNOWN_NAME = re.compile(r"Known name: <(\w*)>")


class ScriptedModel(BaseLlm):
    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        last = llm_request.contents[-1].parts[-1]
        introduction = INTRODUCTION.search(last.text or "")
        if last.function_response:
            name = last.function_response.response["remembered"]
            part = types.Part(text=f"Nice to meet you, {name}.")
        elif introduction:
            part = types.Part.from_function_call(
                name="remember_name", args={"name": introduction[1]}
            )
        else:
            known = KNOWN_NAME.search(str(llm_request.config.system_instruction))
            name = known[1] if known else ""
            part = types.Part(text=f"Hello, {name}." if name else "Hello. What is your name?")
        yield LlmResponse(
            content=types.Content(role="model", parts=[part]),
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=len(llm_request.contents), candidates_token_count=1
            ),
        )
