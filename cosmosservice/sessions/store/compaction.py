"""Where to begin to load a session whose old events ADK has summarised.

ADK appends a summary as an event (`actions.compaction`) that covers a span of time, and leaves the
events of that time out of the prompt. They need not be loaded, unless the prompt depends on them
in another way. Loading begins at the first of these:

* an event that no summary covers,
* a summary that no later one contains: ADK shows them all,
* a call that waits for an answer, with its whole invocation,
* an event of an isolated task,
* the last turns: ADK includes some of them in its next summary again,
* the invocation of a call to which a loaded event belongs: its answer, or a message on its branch.

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

TURNS: Final = 3  # last turns that are loaded although a summary covers them

_COMPACTION: Final = b'"compaction"'
_REWIND: Final = b'"rewind_before_invocation_id"'
_CALL: Final = b'"function_call"'
_REFERRING: Final = _REWIND, b'"function_response"', b'"branch"', b'"isolation_scope"'


@dataclass(frozen=True)
class Loading:
    """Which records make up a session without its summarised events."""

    begin: int  # all from this sequence number on
    at: int = 0  # the last number that this takes into account

    @classmethod
    def of(cls, body: Document, first_seq: int) -> Loading:
        """Read from the session document; everything, if the document has no such field."""
        found = body.get("load")
        if isinstance(found, dict):
            begin, at = found.get("from"), found.get("at")
            if isinstance(begin, int) and isinstance(at, int) and min(begin, at) >= first_seq:
                return cls(begin, at)
        return cls(first_seq)

    @property
    def fields(self) -> Document:
        return {"from": self.begin, "at": self.at}


def may_change_loading(record: Record) -> bool:
    """Whether the record may change what to load: a summary or a rewind."""
    return _COMPACTION in record.raw or _REWIND in record.raw


def fits(records: list[Record]) -> bool:
    """Whether these records, all that are to be loaded, need none of the omitted ones."""
    telling = [
        _Event(record) for record in records if any(sign in record.raw for sign in _REFERRING)
    ]
    if not telling:
        return True
    calls = {call for record in records if _CALL in record.raw for call in _Event(record).calls}
    return all(
        not event.rewinds and not event.odd and event.refers_to <= calls for event in telling
    )


def advanced(loading: Loading, records: list[Record], first_seq: int) -> Loading:
    """Where to begin after these records, which are all that `loading` names, in order."""
    at = max(loading.at, records[-1].seq) if records else loading.at
    events = [_Event(record) for record in records if record.is_event]
    rewinds = [index for index, event in enumerate(events) if event.rewinds]
    odd = any(_REWIND in record.raw for record in records) and any(event.odd for event in events)
    if odd or (rewinds and loading.begin > first_seq):
        return Loading(first_seq, at)
    begin = _History(events).begin()
    if begin is None or (rewinds and begin <= rewinds[-1]):
        return Loading(loading.begin, at)
    return Loading(events[begin].seq, at)


class _Event:
    """The fields of an event that the prompt may depend on."""

    def __init__(self, record: Record) -> None:
        self.seq, self.time = record.seq, record.timestamp
        self.live = True
        fields: Document = {} if record.lost else from_json(record.raw)
        # An event that cannot be read, or is not in ADK's form, is loaded.
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
    def refers_to(self) -> set[str]:
        """The calls that must be loaded with it: those that it answers, and those that it is part
        of, as its branch and its scope say. A name with a number is the run of a node."""
        runs = {part.rpartition("@")[2] for part in self.branch.split(".") if "@" in part}
        runs |= {self.scope.rpartition("@")[2]} if self.scope else set()
        return self.responses | {run for run in runs if not run.isdecimal()}


@dataclass
class _History:
    """The loaded events, and from where on they are needed."""

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
                    event.live = False
                index = first
            index -= 1

    def _last_turns(self) -> int:
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

    def begin(self) -> int | None:
        """The index of the first event that must be loaded; None if none can be left out."""
        live = [event for event in self.events if event.live]
        spans = _Spans(event.span for event in live if event.span)
        scopes = {event.scope for event in live if event.scoped}
        if not spans or any(event.calls & scopes for event in self.events if not event.live):
            return None
        outer, busy = _outermost(live), _busy(live)
        last_turns = self._last_turns()
        for index, event in enumerate(self.events[:last_turns]):
            shown = event.seq in outer if event.compacts else event.time not in spans
            if event.live and (shown or event.odd or event.scoped or event.invocation in busy):
                return self._with_calls(index)
        return self._with_calls(last_turns)

    def _with_calls(self, begin: int) -> int:
        """Goes back until the events from there on belong to no earlier call."""
        calls: dict[str, int] = {}
        for index, event in enumerate(self.events):
            for call in event.calls:
                calls.setdefault(call, self.first_of.get(event.invocation, index))
        index = len(self.events)
        while index > begin:
            index -= 1
            begin = min([begin, *(calls.get(call, begin) for call in self.events[index].refers_to)])
        return begin


def _busy(live: list[_Event]) -> set[str]:
    """Invocations of isolated tasks, and those with a call that waits for an answer."""
    answered = {call for event in live for call in event.responses - event.asked}
    submitted = {call for event in live if event.user for call in event.responses}
    return {
        event.invocation
        for event in live
        if event.scoped or (event.calls | event.asked) - answered or event.waiting - submitted
    }


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
    """The numbers of the summaries that are shown: those that no other one contains, and the last
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


def _dict(value: Any) -> Document:
    return value if isinstance(value, dict) else {}
