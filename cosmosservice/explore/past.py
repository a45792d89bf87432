"""The state of a session at any revision, computed from as few events as possible.

From the beginning: the initial state and the changes up to the revision. From the end: the current
state, with the earlier values of the keys that were changed since, found by going back. The nearer
side is used. Records never change, so those that were read are cached.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from cosmosservice.account.cache import Cache, footprint
from cosmosservice.account.container import Document
from cosmosservice.data_converters.state_scopes import plain
from cosmosservice.explore.session_log import Head, LogPage, shared_keys
from cosmosservice.explore.texts import value_text
from cosmosservice.hosting.operation import Bounded
from cosmosservice.sessions.store.event_log import Plan

if TYPE_CHECKING:
    from cosmosservice.cosmos_session_service import CosmosSessionService
    from cosmosservice.sessions.store.keys import SessionKey
    from cosmosservice.sessions.store.records import Record

MISSING: Final = object()
STRETCH: Final = 200  # records that are read at a time
_MOST_KEYS: Final = 300
_WAS: Final = 1_000  # characters of an earlier value
_KEPT_BYTES: Final = 32 * 1024 * 1024

Mark = Literal["", "new", "changed", "removed"]


@dataclass(frozen=True)
class Value:
    """A key of the state, and what the event with that revision did to it."""

    key: str
    value: Any
    mark: Mark = ""
    before: Any = MISSING

    @property
    def was(self) -> str | None:
        """The earlier value of a changed key."""
        return None if self.before is MISSING else value_text(self.before, _WAS)


def compared(before: dict[str, Any], after: dict[str, Any]) -> list[Value]:
    """The state `after`, with its differences from the state `before`."""
    return [
        _value(key, before.get(key, MISSING), after.get(key, MISSING))
        for key in sorted(before.keys() | after.keys())
    ]


def shown(values: list[Value]) -> tuple[list[Value], int]:
    """As many values as a page shows, changed ones first, and how many are left out."""
    chosen = sorted(values, key=lambda each: not each.mark)[:_MOST_KEYS]
    return sorted(chosen, key=lambda each: each.key), len(values) - len(chosen)


def _value(key: str, before: Any, after: Any) -> Value:
    if after is MISSING:
        return Value(key, before, "removed")
    if before is MISSING:
        return Value(key, after, "new")
    return Value(key, after) if before == after else Value(key, after, "changed", before)


@dataclass
class _Stretch:
    """The changes of the session's own state in a stretch of the log, by seq."""

    changes: dict[int, Document] = field(default_factory=dict)
    initial: Document | None = None  # if it has the first record, and that stores it
    shared: dict[int, frozenset[str]] = field(default_factory=dict)  # keys that were set

    @property
    def size(self) -> int:
        return footprint(self.initial) + sum(map(footprint, self.changes.values()))


class Past:
    """Computes states from as few events as possible, and caches what it has read."""

    def __init__(self, service: CosmosSessionService) -> None:
        self._service = service
        self._kept = Cache(_KEPT_BYTES)

    async def state_at(self, head: Head, revision: int, page: LogPage | None = None) -> list[Value]:
        """The session's own state after an event, and what that event changed. With `page`, its
        events are not read again. Raises ValueError if the session has no such revision."""
        if not head.first <= revision <= head.last:
            raise ValueError(f"The session has the revisions {head.first} to {head.last}.")
        log = _Log(self, head, page)
        if revision == head.first:
            state = await log.state_before(revision + 1)
            return compared(state, state)
        before = await log.state_before(revision)
        after = before | plain(await log.changes(revision))
        return compared(before, after)

    async def shared_state(
        self, head: Head, revision: int, page: LogPage | None = None
    ) -> list[Value]:
        """The current state that sessions share, with the keys that the event set marked."""
        keys = await _Log(self, head, page).shared(revision)
        return [
            Value(key, value, "changed" if key in keys else "")
            for key, value in sorted(head.shared_state.items())
        ]

    async def stretch(self, head: Head, number: int) -> _Stretch:
        """The changes in the stretch with this number, counted from 0."""
        begin = head.first + number * STRETCH
        end = min(begin + STRETCH, head.last)
        name = head.key, head.incarnation, begin, end
        known: _Stretch | None = self._kept.get(name)
        if known is None:
            known = _stretch(await self._records(head.key, head.incarnation, begin, end))
            self._kept.put(name, known)
        return known

    async def _records(
        self, key: SessionKey, incarnation: str, after: int, last: int
    ) -> list[Record]:
        plan = Plan(after + 1, last, before=last + 1)
        return await self._service.in_store(
            Bounded("get_session_at"),
            lambda store: store.looking.records(key, incarnation, plan),
        )


class _Log:
    """The changes of one session."""

    def __init__(self, past: Past, head: Head, page: LogPage | None) -> None:
        self._past = past
        self._head = head
        self._page = page.entries if page is not None else []

    async def changes(self, seq: int) -> Document:
        for entry in self._page:
            if entry.revision == seq:
                return entry.changes
        stretch = await self._past.stretch(self._head, self._number(seq))
        return stretch.changes.get(seq, {})

    async def shared(self, seq: int) -> frozenset[str]:
        for entry in self._page:
            if entry.revision == seq:
                return entry.shared
        if seq == self._head.first:
            return frozenset()
        stretch = await self._past.stretch(self._head, self._number(seq))
        return stretch.shared.get(seq, frozenset())

    async def state_before(self, seq: int) -> dict[str, Any]:
        head = self._head
        if head.last == head.first:
            return head.own_state
        if seq - head.first <= head.last - seq:
            return await self._from_beginning(seq)
        return await self._from_end(seq)

    async def _from_beginning(self, seq: int) -> dict[str, Any]:
        initial = await self._initial()
        if initial is None:  # the event that stores it is lost
            return await self._from_end(seq)
        folded = dict(initial)
        for number in range(self._number(seq) + 1):
            stretch = await self._past.stretch(self._head, number)
            for at, changes in stretch.changes.items():
                if at < seq:
                    folded |= changes
        return plain(folded)

    async def _from_end(self, seq: int) -> dict[str, Any]:
        changed: set[str] = set()
        found: Document = {}
        async for first, stretch in self._backwards():
            for at, changes in reversed(stretch.items()):
                if at >= seq:
                    changed |= changes.keys()
                else:
                    found = {key: changes[key] for key in changes if key in changed} | found
            if first <= seq and found.keys() == changed:
                break
        if missing := changed - found.keys():
            initial = await self._initial() or {}
            found |= {key: initial[key] for key in missing if key in initial}
        gone = plain(dict.fromkeys(changed))
        return {k: v for k, v in self._head.own_state.items() if k not in gone} | plain(found)

    async def _backwards(self) -> AsyncIterator[tuple[int, dict[int, Document]]]:
        """The changes, from the end backwards, and the seq where each part begins."""
        before = self._head.last + 1
        if self._page and self._page[-1].revision == self._head.last:
            before = self._page[0].revision
            yield before, {entry.revision: entry.changes for entry in self._page}
        for number in range(self._number(before - 1), -1, -1):
            stretch = await self._past.stretch(self._head, number)
            changes = {at: each for at, each in stretch.changes.items() if at < before}
            yield self._head.first + number * STRETCH + 1, changes

    async def _initial(self) -> Document | None:
        if self._page and self._page[0].revision == self._head.first + 1:
            return self._page[0].initial
        return (await self._past.stretch(self._head, 0)).initial

    def _number(self, seq: int) -> int:
        return max(0, seq - self._head.first - 1) // STRETCH


def _stretch(records: list[Record]) -> _Stretch:
    changes = {record.seq: record.deltas.session for record in records if record.deltas.session}
    shared = {record.seq: keys for record in records if (keys := shared_keys(record))}
    return _Stretch(changes, records[0].initial if records else None, shared)
