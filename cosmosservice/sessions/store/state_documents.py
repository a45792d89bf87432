"""User and app state: documents that many sessions write, and the one rule by which they do.

Per key, the larger (stamp, event id) wins. Applying something twice changes nothing, and the
order does not matter, so anybody may apply anything again: an append, a repair, a reader.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cosmosservice.account.cache import Cache
from cosmosservice.account.container import NOT_MODIFIED, Container, Document
from cosmosservice.account.failures import Conflict, NotFound, PreconditionFailed
from cosmosservice.data_converters import to_json, wire_size
from cosmosservice.data_converters.state_scopes import Scoped
from cosmosservice.errors import TooLargeError, UnavailableError
from cosmosservice.hosting.concurrency import backoff, retrieve
from cosmosservice.sessions.store.clock import HybridClock
from cosmosservice.sessions.store.documents import ITEM_LIMIT, state_document
from cosmosservice.sessions.store.event_log import Record
from cosmosservice.sessions.store.keys import APP_STATE, StateKey

_ATTEMPTS = 60

Stamp = tuple[int, str]  # (hybrid clock, event id)
Changes = dict[str, tuple[Stamp, Any]]  # key: (stamp, value)


def changes_of(deltas: Scoped, kind: str, stamp: Stamp) -> Changes:
    """What an event does to the state document of this kind."""
    scope = deltas.app if kind == APP_STATE else deltas.user
    return {key: (stamp, value) for key, value in scope.items()}


def newest(changes: Iterable[Changes]) -> Changes:
    """Several changes as one."""
    result: Changes = {}
    for each in changes:
        for key, (stamp, value) in each.items():
            if key not in result or result[key][0] < stamp:
                result[key] = (stamp, value)
    return result


def record_changes(records: Iterable[Record], kind: str) -> Changes:
    return newest(
        changes_of(record.deltas, kind, (record.stamp, record.event_id))
        for record in records
        if record.deltas.shared
    )


@dataclass
class StateDocument:
    """A state document as read, or as it would be if there were one."""

    key: StateKey
    etag: str | None = None
    state: Document = field(default_factory=dict)
    stamps: Document = field(default_factory=dict)
    size: int = 200

    def stamp(self, key: str) -> Stamp | None:
        found = self.stamps.get(key)
        if isinstance(found, list) and len(found) == 2 and isinstance(found[0], int | float):
            return int(found[0]), str(found[1])
        return None

    def pending(self, changes: Changes) -> Changes:
        """Those changes that this document does not have yet."""
        missing: Changes = {}
        for key, (stamp, value) in changes.items():
            current = self.stamp(key)
            if current is None or current < stamp:
                missing[key] = (stamp, value)
        return missing

    def overlaid(self, changes: Changes) -> Document:
        """The state with the changes applied."""
        missing = self.pending(changes)
        if not missing:
            return self.state
        return self.state | {key: value for key, (_, value) in missing.items()}

    def fitting(self, changes: Changes) -> tuple[Changes, Changes]:
        """Those of the pending changes that there is room for, and the others. What makes the
        document smaller comes first, then what is older."""

        def growth(key: str) -> int:
            stamp, value = changes[key]
            old = self.stamp(key)
            before = _entry_size(key, self.state.get(key), old) if old is not None else 0
            return _entry_size(key, value, stamp) - before

        grows = {key: growth(key) for key in self.pending(changes)}
        fit: Changes = {}
        rest: Changes = {}
        size = self.size
        for key in sorted(grows, key=lambda key: (grows[key] > 0, changes[key][0])):
            fits = grows[key] <= 0 or size + grows[key] <= ITEM_LIMIT
            (fit if fits else rest)[key] = changes[key]
            size += grows[key] if fits else 0
        return fit, rest

    def merged(self, changes: Changes) -> StateDocument:
        missing = self.pending(changes)
        return StateDocument(
            self.key,
            self.etag,
            self.state | {key: value for key, (_, value) in missing.items()},
            self.stamps | {key: list(stamp) for key, (stamp, _) in missing.items()},
        )


def _entry_size(key: str, value: Any, stamp: Stamp) -> int:
    return wire_size(to_json({key: value})) + wire_size(to_json({key: list(stamp)}))


class StateDocuments:
    """Reads and merges user and app state. Lives on one event loop."""

    def __init__(self, container: Container, cache: Cache, clock: HybridClock) -> None:
        self._container = container
        self._cache = cache
        self._clock = clock
        self._waiting: dict[StateKey, _Merge] = {}

    async def read(self, key: StateKey) -> StateDocument:
        """As it is now. What this process has seen and nobody changed is not sent again."""
        known: StateDocument | None = self._cache.get(key)
        etag = known.etag if known is not None else None
        try:
            found = await self._container.read(key.document_id, key.user_id, etag)
        except NotFound:
            return self._remember(StateDocument(key))
        if found is NOT_MODIFIED:
            assert known is not None
            return known
        assert isinstance(found, dict)
        return self._remember(parse_state(key, found))

    def check_size(self, key: StateKey, delta: Mapping[str, Any], operation: str) -> None:
        """Refuses, before anything is stored, what would not fit into the document."""
        if not delta:
            return
        known: StateDocument | None = self._cache.get(key)
        size = wire_size(to_json(dict(delta))) + (known.size if known is not None else 0)
        if size > ITEM_LIMIT and known is not None:  # much of it may replace what is there
            size = known.size + wire_size(to_json(known.state | dict(delta)))
            size -= wire_size(to_json(known.state))
        if size > ITEM_LIMIT:
            scope = "app:" if key.kind == APP_STATE else "user:"
            raise TooLargeError(
                f"{operation}: the {scope} state of {key.app_name!r} would have about {size:,}"
                f" bytes; one Cosmos DB document takes {ITEM_LIMIT:,}. Nothing was stored."
            )

    async def merge(self, key: StateKey, changes: Changes) -> Changes:
        """Makes the changes durable, and returns those that the document has no room for. Changes
        that wait for one document go out together."""
        return await self.begin(key, changes)

    def begin(self, key: StateKey, changes: Changes) -> Coroutine[Any, Any, Changes]:
        """Like `merge`, but under way before it is awaited."""
        if not changes:
            return _nothing()
        waiting = self._waiting.get(key)
        if waiting is None or waiting.started:
            waiting = self._waiting[key] = _Merge(after=waiting)
            waiting.task = asyncio.create_task(self._run(key, waiting))
            waiting.task.add_done_callback(retrieve)
        waiting.changes = newest((waiting.changes, changes))
        assert waiting.task is not None
        return _of(changes, waiting.task)

    async def erase(self, key: StateKey) -> None:
        """Removes the document."""
        with contextlib.suppress(NotFound):
            await self._container.delete(key.document_id, key.user_id)
        self._cache.drop(key)

    async def settle(self) -> None:
        """Waits for the merges under way."""
        tasks = [each.task for each in self._waiting.values() if each.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, key: StateKey, merge: _Merge) -> Changes:
        if merge.after is not None and merge.after.task is not None:
            await asyncio.wait([merge.after.task])
        merge.after, merge.started = None, True
        try:
            return await self._write(key, merge.changes)
        finally:
            if self._waiting.get(key) is merge:
                del self._waiting[key]

    async def _write(self, key: StateKey, changes: Changes) -> Changes:
        known: StateDocument | None = self._cache.get(key)
        for attempt in range(_ATTEMPTS):
            current = known if known is not None else await self.read(key)
            fit, rest = current.fitting(changes)
            if rest and known is not None:  # others may have made room
                known = None
                continue
            known = None
            if not fit:
                return rest
            new = current.merged(fit)
            document = state_document(key, new.state, new.stamps)
            try:
                if current.etag is None:
                    new.etag = await self._container.create(document)
                else:
                    new.etag = await self._container.replace(document, current.etag)
            except (Conflict, PreconditionFailed, NotFound):
                self._cache.drop(key)
                await backoff(attempt)
                continue
            except TooLargeError:  # Cosmos DB counts otherwise than we do
                return rest | fit
            new.size = wire_size(to_json(document))
            self._remember(new)
            return rest
        raise UnavailableError(
            f"The state document of {key.app_name!r} is being changed by so many others that"
            f" {_ATTEMPTS} attempts to add to it failed."
        )

    def _remember(self, document: StateDocument) -> StateDocument:
        for key in document.stamps:
            stamp = document.stamp(key)
            if stamp is not None:
                self._clock.observe(stamp[0])
        self._cache.put(document.key, document)
        return document


@dataclass
class _Merge:
    """Changes that go out in one write, once the write before them is done."""

    after: _Merge | None
    changes: Changes = field(default_factory=dict)
    started: bool = False
    task: asyncio.Task[Changes] | None = None


async def _of(changes: Changes, task: asyncio.Task[Changes]) -> Changes:
    """What of these changes has no room, once the write that they are in is done."""
    rest = await asyncio.shield(task)
    return {name: changes[name] for name in rest if name in changes}


async def _nothing() -> Changes:
    return {}


def parse_state(key: StateKey, found: Document) -> StateDocument:
    state, stamps = found.get("state"), found.get("stamps")
    return StateDocument(
        key,
        str(found.get("_etag", "")),
        state if isinstance(state, dict) else {},
        stamps if isinstance(stamps, dict) else {},
        wire_size(to_json(found)),
    )
