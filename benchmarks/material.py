"""What the workloads write: events of a known size."""

from __future__ import annotations

import time
from typing import Any

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.genai import types

APP = "bench"
USER = "user"
KB = 1024


def event(size: int = KB, *, state: dict[str, Any] | None = None, at: float | None = None) -> Event:
    """A model's answer whose JSON has `size` bytes, or slightly more than its fields need."""
    made = Event(
        author="agent",
        invocation_id="e-00000000-0000-0000-0000-000000000000",
        timestamp=time.time() if at is None else at,
        content=types.Content(role="model", parts=[types.Part(text="")]),
        actions=EventActions(state_delta=state or {}),
    )
    assert made.content is not None
    assert made.content.parts is not None
    left = size - len(made.model_dump_json(exclude_none=True))
    made.content.parts[0].text = (
        "the quick brown fox jumps over the lazy dog " * (left // 44 + 1)
    )[: max(left, 0)]
    return made


def history(count: int, size: int = KB) -> list[Event]:
    """A past conversation: one event per second, the last one now."""
    now = time.time()
    return [event(size, at=now - count + index) for index in range(count)]
