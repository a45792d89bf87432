"""Which events to load of a session whose old events ADK has summarised.

ADK appends a summary as an event (`actions.compaction`) that covers a span of time, and leaves the
events of that time out of the prompt. They need not be loaded, unless the prompt depends on them
in another way. These are loaded although a summary covers them:

* summaries that no later one contains: ADK shows them all,
* calls that wait for an answer, with their whole invocation, and the events that belong to a call
  whose answer is shown: ADK restores them,
* events of isolated tasks, and what started them,
* the last turns, complete: ADK includes some of them in its next summary again.

A rewind also undoes summaries. After one, everything is loaded until the next summary.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from cosmosservice.account.container import Document
from cosmosservice.data_converters import from_json
from cosmosservice.sessions.store.records import Record

MOST_APART: Final = 256  # events that are loaded one by one
TURNS: Final = 3  # last turns that are loaded although a summary covers them

_COMPACTION: Final = b'"compaction"'
_REWIND: Final = b'"rewind_before_invocation_id"'
_CALL: Final = b'"function_call"'
_REFERRING: Final = _REWIND, b'"function_response"', b'"branch"'


@dataclass(frozen=True)
class Loading:
    """Which records make up a session without its summarised events."""

    begin: int  # all from this place on
    apart: tuple[int, ...] = ()  # and these before it
    at: int = 0  # the last place that this takes into account

    @classmethod
    def of(cls, body: Document, first_seq: int) -> Loading:
        """Read from the session document; everything, if the document has no such field."""
        found = body.get("load")
        if isinstance(found, dict):
            places = [found.get("from"), found.get("at"), *(found.get("apart") or [])]
            if all(isinstance(each, int) and each >= first_seq for each in places):
                return cls(places[0], tuple(places[2:]), places[1])
        return cls(first_seq)

    @property
    def fields(self) -> Document:
        found: Document = {"from": self.begin, "at": self.at}
        return found | ({"apart": list(self.apart)} if self.apart else {})


def is_turning(record: Record) -> bool:
    """Whether the record may change what to load: a summary or a rewind."""
    return _COMPACTION in record.raw or _REWIND in record.raw


def fits(loading: Loading, records: list[Record]) -> bool:
    """Whether these records, all that `loading` names, need none of the omitted records."""
    telling = [
        _Event(record)
        for record in records
        if record.seq >= loading.begin and any(sign in record.raw for sign in _REFERRING)
    ]
    if not telling:
        return True
    calls = {call for record in records if _CALL in record.raw for call in _Event(record).calls}
    return all(
        not event.rewinds and not event.odd and event.refers_to <= calls for event in telling
    )


def advanced(loading: Loading, records: list[Record], first_seq: int) -> Loading:
    """What to load after these records, which are all that `loading` names, in order."""
    at = max(loading.at, records[-1].seq) if records else loading.at
    events = [_Event(record) for record in records if record.is_event]
    rewinds = [index for index, event in enumerate(events) if event.rewinds]
    odd = any(_REWIND in record.raw for record in records) and any(event.odd for event in events)
    if odd or (rewinds and loading.begin > first_seq):
        return Loading(first_seq, (), at)
    history = _History(events)
    first = history.last_turns()
    if not history.settle(first):
        return Loading(loading.begin, loading.apart, at)
    end, kept = 0, 0
    for index in range(first):
        if events[index].kept:
            kept += 1
            if kept > MOST_APART:
                break
        else:
            end = index + 1
    if rewinds and end <= rewinds[-1]:
        return Loading(loading.begin, loading.apart, at)
    begin = max(events[end].seq, loading.begin) if events else loading.begin
    apart = tuple(event.seq for event in events if event.seq < begin and event.kept)
    return Loading(begin, apart, at)


class _Event:
    """The fields of an event that the prompt may depend on."""

    def __init__(self, record: Record) -> None:
        self.seq, self.time = record.seq, record.timestamp
        self.live = self.kept = True
        fields: Document = {} if record.lost else from_json(record.raw)
        # An event that cannot be read, or is not in ADK's form, is kept.
        self.odd = record.lost or not math.isfinite(record.timestamp)
        self.user = fields.get("author") == "user"
        self.invocation = self._text(fields, "invocation_id")
        self.branch = self._text(fields, "branch")
        self.scope = self._text(fields, "isolation_scope")
        self.scoped = fields.get("isolation_scope") is not None
        self.calls: set[str] = set()
        self.responses: set[str] = set()
        self._read_parts(fields)
        waiting = fields.get("long_running_tool_ids")
        self.waiting = set(map(str, waiting)) if isinstance(waiting, list) else set()
        self.odd |= bool(waiting) and not self.waiting
        actions = _dict(fields.get("actions"))
        self.asked = {
            str(call)
            for name in ("requested_auth_configs", "requested_tool_confirmations")
            for call in _dict(actions.get(name))
        }
        self.rewinds = self._text(actions, "rewind_before_invocation_id")
        self.compacts = bool(actions.get("compaction"))
        self.span = self._span(_dict(actions.get("compaction")), _dict(fields.get("node_info")))

    def _text(self, fields: Document, name: str) -> str:
        found = fields.get(name)
        if found is not None and not isinstance(found, str):
            self.odd = True
        return found if isinstance(found, str) else ""

    def _read_parts(self, fields: Document) -> None:
        parts = _dict(fields.get("content")).get("parts")
        for part in parts if isinstance(parts, list) else []:
            for name, ids in (
                ("function_call", self.calls),
                ("function_response", self.responses),
            ):
                found = _dict(part).get(name)
                if found:
                    call = _dict(found).get("id")
                    if isinstance(call, str) and call:
                        ids.add(call)
                    else:  # ADK pairs it by its name
                        self.odd = True

    def _span(self, compaction: Document, node: Document) -> tuple[float, float] | None:
        """The time that it covers for every agent that is not isolated; None if there is none."""
        start, end = compaction.get("start_timestamp"), compaction.get("end_timestamp")
        if not isinstance(start, int | float) or not isinstance(end, int | float):
            return None
        hidden = self.scoped or self.branch or node.get("path") or self.calls or self.responses
        if hidden or self.odd or start > end or compaction.get("compacted_content") is None:
            return None
        return float(start), float(end)

    @property
    def runs(self) -> set[str]:
        """The calls and node runs that it is part of, as named in its branch."""
        return {part.rpartition("@")[2] for part in self.branch.split(".") if "@" in part}

    @property
    def refers_to(self) -> set[str]:
        """The calls that must be loaded with it. A name with a number is the run of a node."""
        return self.responses | {run for run in self.runs if not run.isdecimal()}


@dataclass
class _History:
    """The loaded events, and which of them are needed."""

    events: list[_Event]
    first_of: dict[str, int] = field(init=False)  # the index at which an invocation begins

    def __post_init__(self) -> None:
        self.first_of = {}
        for index, event in enumerate(self.events):
            if event.invocation:
                self.first_of.setdefault(event.invocation, index)
        self._apply_rewinds()

    def _apply_rewinds(self) -> None:
        """As ADK does: from the end, each rewind removes the events back to its target."""
        index = len(self.events) - 1
        while index >= 0:
            target = self.events[index].rewinds
            if target:
                first = min(self.first_of.get(target, index), index)
                for event in self.events[first : index + 1]:
                    event.live = event.kept = False
                index = first
            index -= 1

    def last_turns(self) -> int:
        """The index at which the last turns begin; 0 if there are fewer turns."""
        turns: list[int] = []
        seen: set[str] = set()
        for index in range(len(self.events) - 1, -1, -1):
            event = self.events[index]
            said = event.live and event.user and not event.compacts and not event.responses
            if not said or event.scoped or event.branch or event.invocation in seen:
                continue
            if event.invocation:
                seen.add(event.invocation)
            turns.append(self.first_of.get(event.invocation, index))
            if len(turns) == TURNS:
                return min(turns)
        return 0

    def settle(self, first: int) -> bool:
        """Determines which events before index `first` must be kept. False if none can be left
        out."""
        live = [event for event in self.events if event.live]
        spans = _Spans(event.span for event in live if event.span)
        if not spans:
            return False
        outer = _outermost(live)
        for event in self.events[:first]:
            if event.live:
                event.kept = (
                    event.odd
                    or event.scoped
                    or (event.seq in outer if event.compacts else event.time not in spans)
                )
        busy = self._busy(live)
        for event in live:
            event.kept |= bool(event.invocation) and event.invocation in busy
        scopes = {event.scope for event in live if event.scoped}
        if any(event.calls & scopes for event in self.events if not event.live):
            return False
        _keep_together(live)
        return True

    def _busy(self, live: list[_Event]) -> set[str]:
        """Invocations of isolated tasks, and those with a call that waits for an answer."""
        answered = {call for event in live for call in event.responses - event.asked}
        submitted = {call for event in live if event.user for call in event.responses}
        busy = set()
        for event in live:
            open_ones = (event.calls | event.asked) - answered or event.waiting - submitted
            if event.scoped or open_ones:
                event.kept = True
                busy.add(event.invocation)
        return busy


class _Spans:
    """Spans of time, which may overlap."""

    def __init__(self, spans: Iterable[tuple[float, float]]) -> None:
        self._merged: list[tuple[float, float]] = []
        for start, end in sorted(spans):
            if self._merged and start <= self._merged[-1][1]:
                first, last = self._merged[-1]
                self._merged[-1] = first, max(last, end)
            else:
                self._merged.append((start, end))

    def __bool__(self) -> bool:
        return bool(self._merged)

    def __contains__(self, time: float) -> bool:
        index = bisect.bisect_right(self._merged, time, key=lambda span: span[0]) - 1
        return index >= 0 and time <= self._merged[index][1]


def _outermost(live: list[_Event]) -> set[int]:
    """The places of the summaries that are shown: those that no other one contains, and the last
    of equal ones. They include summaries that only some agents see."""
    found = {event.seq for event in live if event.compacts}
    spans = [(event.span, event.seq) for event in live if event.span]
    spans.sort(key=lambda each: (each[0][0], -each[0][1], -each[1]))
    furthest = -math.inf
    for (_, end), seq in spans:
        if end <= furthest:
            found.discard(seq)
        furthest = max(furthest, end)
    return found


def _keep_together(live: list[_Event]) -> None:
    """Adds what the kept events need, until nothing is missing: for an answer its call, for a call
    all its answers and its invocation, for an event made on behalf of a call that call."""
    wanted: set[str] = set()
    called: set[str] = set()
    turns: set[str] = set()
    new = [event for event in live if event.kept]
    while new:
        for event in new:
            wanted |= event.responses | event.runs | ({event.scope} if event.scoped else set())
            called |= event.calls
        turns |= {each.invocation for each in live if each.invocation and each.calls & wanted}
        new = [
            event
            for event in live
            if not event.kept
            and (event.calls & wanted or event.responses & called or event.invocation in turns)
        ]
        for event in new:
            event.kept = True


def _dict(value: Any) -> Document:
    return value if isinstance(value, dict) else {}
