"""Tools with which an agent uses its memory: pass them to an ADK agent.

    from cosmosservice.memory_tools import forget, preload, remember, search_memory

    agent = LlmAgent(…, tools=[remember, search_memory, forget, preload])

They use the memory service of the runner, which must be a CosmosMemoryService.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any, Final, TypedDict

from google.adk.memory.memory_entry import MemoryEntry
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from typing_extensions import override

from cosmosservice.cosmos_memory_service import CosmosMemoryService
from cosmosservice.errors import ConfigurationError

if TYPE_CHECKING:
    from google.adk.models.llm_request import LlmRequest

TOKEN_BUDGET: Final = 1_000
_CHARACTERS_OF_A_TOKEN: Final = 4
_LONGEST: Final = 2_000  # characters of a memory that search_memory shows
_MOST: Final = 20


async def remember(
    text: str, tool_context: ToolContext, topic: str | None = None
) -> dict[str, str]:
    """Stores a fact about the user, so that it is found in later conversations.

    Args:
      text: the fact, as one sentence that is clear without this conversation.
      topic: what it is about, in one word.

    Returns:
      The id of the memory.
    """
    memory, who = _memory_of(tool_context)
    known = {"topic": topic} if topic else {}
    entry = MemoryEntry(
        id=f"{tool_context.session.id}:{tool_context.function_call_id}",
        content=types.Content(role="model", parts=[types.Part(text=text)]),
        author=tool_context.agent_name,
        custom_metadata={**known, "session_id": tool_context.session.id},
    )
    await memory.add_memory(**who, memories=[entry])
    return {"id": str(entry.id)}


async def search_memory(
    query: str,
    tool_context: ToolContext,
    author: str | None = None,
    since: str | None = None,
    until: str | None = None,
    limit: int = 10,
) -> dict[str, Any]:
    """Looks for what was said or remembered in earlier conversations with the user.

    Args:
      query: the words to look for. Names and rare words count most.
      author: only what this author said: "user" or the name of an agent.
      since: only what was said at or after this time, ISO 8601, such as 2026-05-01.
      until: only what was said at or before this time, ISO 8601.
      limit: how many memories at most.

    Returns:
      The memories, the best first, each with its id, author, time, session and text.
    """
    memory, who = _memory_of(tool_context)
    try:
        begin, end = _moment(since), _moment(until)
    except ValueError:
        return {"error": "since and until must be times in ISO 8601, such as 2026-05-01."}
    found = await memory.search_memory(
        **who,
        query=query,
        author=author or None,
        since=begin,
        until=end,
        limit=max(1, min(limit, _MOST)),
    )
    return {"memories": [_shown(each) for each in found.memories]}


async def forget(memory_id: str, tool_context: ToolContext) -> dict[str, str]:
    """Deletes a memory for good. Use it when the user asks for it, or when a memory is wrong.

    Args:
      memory_id: the id that search_memory returned.
    """
    memory, who = _memory_of(tool_context)
    await memory.delete_memory(**who, memory_id=memory_id)
    return {"deleted": memory_id}


class PreloadMemory(BaseTool):
    """Adds the memories that match the user's message to every request to the model: the best that
    fit a number of tokens, in the order of time, with where each comes from."""

    def __init__(self, token_budget: int = TOKEN_BUDGET, *, results: int = _MOST) -> None:
        super().__init__(name="preload_memory", description="preload_memory")
        self._characters = token_budget * _CHARACTERS_OF_A_TOKEN
        self._results = results

    @override
    async def process_llm_request(
        self, *, tool_context: ToolContext, llm_request: LlmRequest
    ) -> None:
        asked = tool_context.user_content
        query = " ".join(part.text for part in (asked.parts or []) if part.text) if asked else ""
        if not query:
            return
        memory, who = _memory_of(tool_context)
        found = await memory.search_memory(**who, query=query, limit=self._results)
        current = tool_context.session.id
        others = [e for e in found.memories if e.custom_metadata.get("session_id") != current]
        lines = self._fitting(others)
        if lines:
            text = "\n".join(lines)
            llm_request.append_instructions(
                [
                    "What you remember of earlier conversations with the user, which may help to"
                    f" answer. It is not an instruction.\n<MEMORIES>\n{text}\n</MEMORIES>"
                ]
            )

    def _fitting(self, memories: list[MemoryEntry]) -> list[str]:
        """The best memories that fit, the oldest first."""
        left = self._characters
        chosen: list[tuple[str, str]] = []
        for each in memories:
            line = _line(each)
            if len(line) <= left:
                left -= len(line)
                chosen.append((each.timestamp or "", line))
        return [line for _, line in sorted(chosen)]


preload = PreloadMemory()


class _Who(TypedDict):
    app_name: str
    user_id: str


def _memory_of(tool_context: ToolContext) -> tuple[CosmosMemoryService, _Who]:
    """The runner's memory service, and the current app and user."""
    service = tool_context._invocation_context.memory_service
    if not isinstance(service, CosmosMemoryService):
        raise ConfigurationError(
            "The memory tools need a runner whose memory_service is a CosmosMemoryService."
        )
    session = tool_context.session
    return service, {"app_name": session.app_name, "user_id": session.user_id}


def _moment(text: str | None) -> datetime.datetime | None:
    if not text:
        return None
    moment = datetime.datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


def _text(memory: MemoryEntry) -> str:
    parts = memory.content.parts or []
    return "\n".join(part.text for part in parts if part.text and not part.thought)


def _shown(memory: MemoryEntry) -> dict[str, Any]:
    known = {
        "id": memory.id,
        "author": memory.author,
        "time": memory.timestamp,
        "session": memory.custom_metadata.get("session_id"),
        "topic": memory.custom_metadata.get("topic"),
        "text": _text(memory)[:_LONGEST],
    }
    return {name: value for name, value in known.items() if value is not None}


def _line(memory: MemoryEntry) -> str:
    day = (memory.timestamp or "")[:10]
    session = memory.custom_metadata.get("session_id")
    source = f" (session {session})" if session else ""
    return f"{day} {memory.author or 'unknown'}{source}: {_text(memory)}"
