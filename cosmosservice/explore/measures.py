"""Turns, tokens, latency and errors: by day, by agent, by tool."""

from __future__ import annotations

import datetime
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from cosmosservice.account.container import Document


@dataclass
class Measure:
    """What is counted of a day, an agent or a tool."""

    turns: int = 0  # of a tool: calls
    tokens: tuple[float, float] = (0.0, 0.0)  # in, out
    seconds: list[float] = field(default_factory=list)
    errors: int = 0  # of models
    failures: int = 0  # of tools

    @property
    def p50(self) -> float:
        return percentile(self.seconds, 0.50)

    @property
    def p95(self) -> float:
        return percentile(self.seconds, 0.95)


@dataclass(frozen=True)
class Measures:
    days: dict[str, Measure]  # the oldest first
    agents: dict[str, Measure]  # the busiest first
    tools: dict[str, Measure]


def measures(events: Iterable[Document], today: datetime.date, count: int) -> Measures:
    """Of events as the query for plots returns them. The latency of a day is that of whole turns;
    that of an agent or a tool is the time of one step: from the event before to its own."""
    days = {str(today - datetime.timedelta(days=n)): Measure() for n in reversed(range(count))}
    agents: defaultdict[str, Measure] = defaultdict(Measure)
    tools: defaultdict[str, Measure] = defaultdict(Measure)
    for turn in _turns(events):
        if turn[0][1] not in days:
            continue
        day = days[turn[0][1]]
        times = [time for time, _, _ in turn]
        if len(turn) > 1:
            day.seconds.append(times[-1] - times[0])
        day.turns += sum(event.get("author") == "user" for _, _, event in turn)
        for name in {_author(event) for _, _, event in turn} - {"user"}:
            agents[name].turns += 1
        before = times[0]
        for time, _, event in turn:
            _count(event, time - before, day, agents, tools)
            before = time
    return Measures(days, _busiest(agents), _busiest(tools))


def _count(
    event: Document,
    seconds: float,
    day: Measure,
    agents: defaultdict[str, Measure],
    tools: defaultdict[str, Measure],
) -> None:
    author, answers = _author(event), list(_tools(event))
    of_both = [day] if author == "user" else [day, agents[author]]
    for each in of_both:
        used = tokens(event.get("usage_metadata"))
        each.tokens = each.tokens[0] + used[0], each.tokens[1] + used[1]
        each.errors += bool(event.get("error_code"))
        each.failures += sum(failed for _, failed in answers)
    for name, failed in answers:
        tools[name].turns += 1
        tools[name].failures += failed
        tools[name].seconds.append(seconds)
    if author != "user" and not answers and seconds > 0:
        agents[author].seconds.append(seconds)


def _turns(events: Iterable[Document]) -> Iterator[list[tuple[float, str, Document]]]:
    """Time, day and event. One without an invocation is a turn of its own."""
    timed = [
        (time, day, event) for event in events if (time := _time(event)) and (day := _day(time))
    ]

    def key(each: tuple[float, str, Document]) -> tuple[str, ...]:
        names = ("app_name", "user_id", "session_id", "invocation_id")
        return tuple(str(each[2].get(name) or "") for name in names)

    timed.sort(key=lambda each: (key(each), each[0]))
    for found, group in itertools.groupby(timed, key):
        if found[-1]:
            yield list(group)
        else:
            yield from ([each] for each in group)


def _busiest(found: dict[str, Measure]) -> dict[str, Measure]:
    return dict(sorted(found.items(), key=lambda each: (-each[1].turns, each[0])))


def _author(event: Document) -> str:
    return str(event.get("author") or "unknown")


def _tools(event: Document) -> Iterator[tuple[str, bool]]:
    """The tools whose results an event has, and whether they failed."""
    found = event.get("tools")
    for each in found if isinstance(found, list) else ():
        if isinstance(each, dict):
            yield str(each.get("name") or "unknown"), each.get("failed") is True


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest rank; 0 without values."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)] if ranked else 0.0


def _time(event: Document) -> float:
    time = event.get("timestamp")
    return float(time) if isinstance(time, int | float) and math.isfinite(time) else 0.0


def _day(time: float) -> str:
    try:
        return str(datetime.datetime.fromtimestamp(time, datetime.UTC).astimezone().date())
    except (ValueError, OverflowError, OSError):
        return ""


def tokens(used: Any) -> tuple[float, float]:
    """In, and out with thoughts."""
    found = used if isinstance(used, dict) else {}

    def count(*names: str) -> float:
        each = (found.get(name) for name in names)
        return sum(n for n in each if isinstance(n, int | float) and math.isfinite(n) and n > 0)

    return (
        count("prompt_token_count", "tool_use_prompt_token_count"),
        count("candidates_token_count", "thoughts_token_count"),
    )
