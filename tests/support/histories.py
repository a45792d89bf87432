"""Session histories that ADK makes, and some that it does not: turns, tool calls, tasks, rewinds,
and summaries of any part. Also the prompts that ADK builds from them."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from functools import partial
from typing import Any

from google.adk.events import Event, EventActions
from google.adk.events.event_actions import EventCompaction
from google.adk.flows.llm_flows import contents
from google.genai import types

AGENT, OTHER = "agent", "other"
_SCOPES = "isolation_scope" in Event.model_fields  # since ADK 2
_SCOPED_PROMPTS = "isolation_scope" in inspect.signature(contents._get_contents).parameters

Operation = tuple[str, Any, Any]


def operations(seed: int) -> list[Operation]:
    """What happens in a history, by its number."""
    chance = random.Random(seed)
    small = partial(chance.randint, 0, 30)
    some = partial(chance.randint, 0, 3)
    flag = partial(chance.choice, [True, False])
    kinds: list[Callable[[], Operation]] = [
        lambda: ("say", chance.choice([AGENT, OTHER]), chance.choice(["", "b", "b.c"])),
        lambda: ("call", chance.randint(1, 2), chance.choice(["all", "some", "none"])),
        lambda: ("wait", flag(), flag()),
        lambda: ("confirm", flag(), 0),
        lambda: ("answer", small(), flag()),
        lambda: ("task", flag(), 0),
        lambda: ("sub", small(), 0),
        lambda: ("late scope", small(), 0),
        lambda: ("roll", chance.randint(0, 6), 0),
        lambda: ("roll", chance.randint(0, 6), 0),
        lambda: ("slide", some(), 0),
        lambda: ("summary", small(), small()),
        lambda: ("odd summary", small(), some()),
        lambda: ("rewind", small(), 0),
        lambda: ("earlier", small(), 0),
    ]
    # Half of the histories have only some kinds of operations, so that these meet more often.
    # Plain turns follow each other, since the last ones are always loaded.
    kinds = chance.sample(kinds, chance.choice([len(kinds), chance.randint(3, 7)]))
    kinds += [lambda: ("talk", chance.randint(1, 4), 0)] * (len(kinds) // 2)
    return [chance.choice(kinds)() for _ in range(chance.randint(4, 16))]


class History:
    """A list of events that grows by one operation at a time."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._turn = 0
        self._calls: list[str] = []
        self._scopes: list[str] = []

    def follow(self, operation: Operation) -> None:
        name, first, second = operation
        step: Callable[[Any, Any], None] = getattr(self, f"_{name.replace(' ', '_')}")
        step(first, second)

    @property
    def scopes(self) -> list[str]:
        """The scopes of tasks that were not rewound: only those run again."""
        if not self._scopes:
            return []
        from google.adk.events._rewind_events import _apply_rewinds

        live = {event.isolation_scope for event in _apply_rewinds(self.events)}
        return [scope for scope in self._scopes if scope in live]

    def _add(self, parts: list[types.Part], author: str = AGENT, **fields: Any) -> Event:
        role = "user" if author == "user" else "model"
        fields.setdefault("content", types.Content(role=role, parts=parts) if parts else None)
        fields.setdefault("timestamp", float(len(self.events) + 1))
        fields.setdefault("invocation_id", f"turn {self._turn}")
        event = Event(author=author, **fields)
        self.events.append(event)
        return event

    def _ask(self, **fields: Any) -> None:
        self._turn += 1
        self._add([types.Part(text=f"question {len(self.events)}")], "user", **fields)

    def _reply(self, author: str = AGENT, **fields: Any) -> None:
        self._add([types.Part(text=f"reply {len(self.events)}")], author, **fields)

    def _say(self, author: str, branch: str) -> None:
        self._ask()
        self._reply(author, branch=branch or None)

    def _talk(self, turns: int, _: int) -> None:
        for _turn in range(turns):
            self._say(AGENT, "")

    def _new_calls(self, count: int) -> list[str]:
        made = [f"call {len(self._calls) + n}" for n in range(count)]
        self._calls += made
        return made

    def _call_parts(self, ids: list[str]) -> list[types.Part]:
        return [
            types.Part(function_call=types.FunctionCall(id=i, name="tool", args={"of": i}))
            for i in ids
        ]

    def _answer_parts(self, ids: list[str]) -> list[types.Part]:
        said = {"at": len(self.events)}
        return [
            types.Part(function_response=types.FunctionResponse(id=i, name="tool", response=said))
            for i in ids
        ]

    def _call(self, count: int, answered: str) -> None:
        self._ask()
        ids = self._new_calls(count)
        self._add(self._call_parts(ids))
        if answered != "none":
            self._add(self._answer_parts(ids[:1] if answered == "some" else ids))
            self._reply()

    def _wait(self, placeholder: bool, answered: bool) -> None:
        """A long-running tool."""
        self._ask()
        ids = self._new_calls(2)
        self._add(self._call_parts(ids), long_running_tool_ids={ids[0]})
        if placeholder:
            self._add(self._answer_parts(ids))
            self._reply()
        if answered:
            self._say(AGENT, "")
            self._add(self._answer_parts(ids[:1]), "user")
            self._reply()

    def _confirm(self, answered: bool, _: int) -> None:
        """A tool that asks before it does something."""
        self._ask()
        (call,) = self._new_calls(1)
        self._add(self._call_parts([call]))
        asked = EventActions(requested_auth_configs={})
        asked.requested_tool_confirmations = {call: {"hint": "sure?"}}  # type: ignore[dict-item]
        self._add(self._answer_parts([call]), actions=asked)
        if answered:
            self._turn += 1
            self._add(self._answer_parts([call]))
            self._reply()

    def _answer(self, which: int, by_user: bool) -> None:
        """An answer that comes late, or twice."""
        if self._calls:
            self._turn += 1
            call = self._calls[which % len(self._calls)]
            self._add(self._answer_parts([call]), "user" if by_user else AGENT)

    def _task(self, finished: bool, _: int) -> None:
        """Work that another agent does in isolation."""
        self._ask()
        (call,) = self._new_calls(1)
        self._add(self._call_parts([call]))
        if _SCOPES:
            self._scopes.append(call)
            self._reply(OTHER, isolation_scope=call)
            self._reply(OTHER, isolation_scope=call)
        if finished:
            self._add(self._answer_parts([call]))

    def _sub(self, which: int, _: int) -> None:
        """An event of a tool while it works, on a branch below its agent's."""
        if self._calls:
            self._reply(branch=f"tool@{self._calls[which % len(self._calls)]}")

    def _late_scope(self, which: int, _: int) -> None:
        """An isolated task that goes on after its call was answered."""
        if _SCOPES and self._calls:
            call = self._calls[which % len(self._calls)]
            self._scopes.append(call)
            self._reply(OTHER, isolation_scope=call)

    def _earlier(self, which: int, _: int) -> None:
        """An event whose time is out of order."""
        if self.events:
            self._ask(timestamp=self.events[which % len(self.events)].timestamp)
            self._reply()

    # --- summaries

    def _summarise(self, start: float | None, end: float | None, **fields: Any) -> None:
        text = types.Part(text=f"summary {len(self.events)}")
        compaction = EventCompaction.model_construct(
            start_timestamp=start,
            end_timestamp=end,
            compacted_content=types.Content(role="model", parts=[text]),
        )
        actions = EventActions()
        actions.compaction = compaction
        number = len(self.events)
        self._add([], "user", invocation_id=f"summary {number}", actions=actions, **fields)

    def _times(self) -> list[float]:
        return [event.timestamp for event in self.events if not event.actions.compaction]

    def _ends(self) -> list[float]:
        found = (event.actions.compaction for event in self.events)
        return [each.end_timestamp for each in found if each and each.end_timestamp is not None]

    def _roll(self, kept: int, _: int) -> None:
        """Summarises all but the last events, as ADK does when it reaches a number of tokens."""
        times = self._times()[: -kept or None]
        if times:
            self._summarise(min(times), max(times))

    def _slide(self, overlap: int, _: int) -> None:
        """Summarises the events since the last summary, and some that it covers."""
        last = max(self._ends(), default=0.0)
        times = [time for time in self._times() if time > last - overlap]
        if times:
            self._summarise(min(times), max(times))

    def _summary(self, first: int, second: int) -> None:
        """A summary of any period. Summaries may be nested or overlap."""
        times = sorted(self._times())
        if times:
            start, end = sorted((first % len(times), second % len(times)))
            self._summarise(times[start], times[end])

    def _odd_summary(self, which: int, kind: int) -> None:
        times = self._times()
        if not times:
            return
        end = times[which % len(times)]
        if kind == 0:
            self._summarise(0.0, end, branch="b")
        elif kind == 1:
            self._summarise(end, 0.0)
        elif kind == 2 and self._scopes:
            self._summarise(0.0, end, isolation_scope=self._scopes[which % len(self._scopes)])
        elif kind == 3:
            self._summarise(0.0, end, branch="")

    def _rewind(self, which: int, _: int) -> None:
        target = f"turn {which % (self._turn + 2)}"
        self._turn += 1
        self._add([], "user", actions=EventActions(rewind_before_invocation_id=target))


def prompts(events: list[Event], scopes: list[str]) -> list[Any]:
    """What every agent would send to its model, or why it cannot."""
    found = []
    for branch, agent in ((None, AGENT), ("b", AGENT), ("b.c", OTHER)):
        found.append(_contents(contents._get_contents, branch, events, agent))
        found.append(_contents(contents._get_current_turn_contents, branch, events, agent))
    for scope in scopes[-2:] if _SCOPED_PROMPTS else []:
        options = {"isolation_scope": scope}
        found.append(_contents(contents._get_contents, None, events, OTHER, **options))
    return found


def _contents(build: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    try:
        return [each.model_dump(exclude_none=True) for each in build(*arguments, **options)]
    except ValueError as error:
        return type(error), str(error)
