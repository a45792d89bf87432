"""Memories in the result of a tool: ADK's load_memory, and search_memory of memory_tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from google.adk.memory.memory_entry import MemoryEntry
from pydantic import BaseModel, ValidationError

from cosmosservice.memory.entries import text_in

TOOLS: Final = ("load_memory", "search_memory")


def recalled(response: Any) -> list[str] | None:
    """Time, author and text of each memory. None if the result is something else."""
    found = _field(_field(response, "result") or response, "memories")
    if not isinstance(found, list):
        return None
    try:
        return [_line(each) for each in found]
    except (ValidationError, TypeError):
        return None


def _field(value: Any, name: str) -> Any:
    """Of a model, or of what remains of it in JSON."""
    if isinstance(value, BaseModel):
        return getattr(value, name, None)
    return value.get(name) if isinstance(value, Mapping) else None


def _line(memory: Any) -> str:
    if _field(memory, "content") is None:
        time, author, text = (_field(memory, name) for name in ("time", "author", "text"))
    else:
        entry = MemoryEntry.model_validate(memory)
        time, author, text = entry.timestamp, entry.author, text_in(entry.content)
    moment = str(time or "")[:16].replace("T", " ")
    said = " ".join(str(text or "").split())
    return f"{moment}  {author or 'unknown'}: {said}".strip()
