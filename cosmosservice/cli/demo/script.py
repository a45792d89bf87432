"""The agent of the demo. It follows a script, and knows only what the session says: whichever
process reads the session can continue it, also in the middle of a turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from google.adk.events import Event, EventActions
from google.genai import types

APP: Final = "shop"
USER: Final = "ada"
AGENT: Final = "clerk"
FIRST_ORDER: Final = 7


class Turn(NamedTuple):
    question: str
    tool: str
    arguments: dict[str, Any]
    result: dict[str, Any]
    state: dict[str, Any]
    answer: str


def _turns(order: int) -> list[Turn]:
    return [
        Turn(
            f"Where is my order {order}?",
            "find_order",
            {"number": order},
            {"status": "on its way", "day": "Friday"},
            {"order": order, "day": "Friday", "user:last_order": order},
            f"Order {order} is on its way. It arrives on Friday.",
        ),
        Turn(
            "Please ring twice, the bell is weak.",
            "add_note",
            {"number": order, "note": "ring twice"},
            {"noted": True},
            {"note": "ring twice"},
            "I have told the driver to ring twice.",
        ),
        Turn(
            "Can it come on Monday instead?",
            "move_delivery",
            {"number": order, "day": "Monday"},
            {"day": "Monday"},
            {"day": "Monday"},
            "Done. It comes on Monday.",
        ),
    ]


def next_event(events: Sequence[Event]) -> Event:
    """What comes after these events."""
    asked = sum(event.author == "user" for event in events)
    last = events[-1] if events else None
    if last is None or _is_answer(last):
        turn = _turn(asked)
        return event("user", asked, types.Part(text=turn.question))
    turn = _turn(asked - 1)
    call = types.FunctionCall(name=turn.tool, id=f"call-{asked}", args=turn.arguments)
    if last.author == "user":
        return event(AGENT, asked - 1, types.Part(function_call=call), tokens=(412, 18))
    if last.get_function_calls():
        result = types.FunctionResponse(name=turn.tool, id=call.id, response=turn.result)
        part = types.Part(function_response=result)
        return event(AGENT, asked - 1, part, state=turn.state)
    return event(AGENT, asked - 1, types.Part(text=turn.answer), tokens=(467, 31))


def _turn(number: int) -> Turn:
    turns = _turns(FIRST_ORDER + number // len(_turns(0)))
    return turns[number % len(turns)]


def _is_answer(event: Event) -> bool:
    return event.author == AGENT and bool(event.content and event.content.parts[0].text)  # type: ignore[index]


def event(
    author: str,
    turn: int,
    part: types.Part,
    state: dict[str, Any] | None = None,
    tokens: tuple[int, int] | None = None,
) -> Event:
    usage = None
    if tokens is not None:
        usage = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=tokens[0],
            candidates_token_count=tokens[1],
            total_token_count=sum(tokens),
        )
    return Event(
        author=author,
        invocation_id=f"turn-{turn + 1}",
        content=types.Content(role="user" if author == "user" else "model", parts=[part]),
        actions=EventActions(state_delta=state or {}),
        usage_metadata=usage,
    )
