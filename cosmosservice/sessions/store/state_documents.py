"""User and app state: documents that many sessions write, and the rule by which they are merged.

Per key, the larger (stamp, event id) wins. Applying something twice changes nothing, and the
order does not matter, so anybody may apply anything again: an append, a repair, a reader.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cosmosservice.account.cache import footprint
from cosmosservice.account.container import NOT_MODIFIED, Document
from cosmosservice.account.failures import Conflict, NotFound, PreconditionFailed
from cosmosservice.account.retries import CONTENTION, VISIBILITY
from cosmosservice.data_converters import to_json, wire_size
from cosmosservice.errors import StorageError, TooLargeError, UnavailableError
from cosmosservice.hosting.concurrency import retrieve, together
from cosmosservice.hosting.deadline import in_time, within
from cosmosservice.scopes import Pair
from cosmosservice.sessions.store.clock import HybridClock
from cosmosservice.sessions.store.documents import ITEM_LIMIT, state_document
from cosmosservice.sessions.store.keys import SessionKey, StateKey
from cosmosservice.sessions.store.large_values import DamagedValueError, LargeValues, least_size
from cosmosservice.sessions.store.records import Record
from cosmosservice.sessions.store.state import State

_OBJECTS = 500  # bytes of memory: the key with its id, and everything but the content
_STAMP_BYTES = 80  # per key besides its value: its stamp, and its name again

Stamp = tuple[int, str]  # (hybrid clock, event id)
Changes = dict[str, tuple[Stamp, Any]]  # key: (stamp, value)

NO_CHANGES: Pair[Changes] = Pair({}, {})


def stamped(state: Document, stamp: Stamp) -> Changes:
    return {key: (stamp, value) for key, value in state.items()}


def newest(*changes: Changes) -> Changes:
    """Combines several changes into one."""
    result: Changes = {}
    for each in changes:
        for key, (stamp, value) in each.items():
            if key not in result or result[key][0] < stamp:
                result[key] = (stamp, value)
    return result


def record_changes(records: Iterable[Record]) -> Pair[Changes]:
    """The changes that these events make to user and app state."""
    shared = [record for record in records if record.deltas.has_shared]
    if not shared:
        return NO_CHANGES
    made = [
        record.deltas.shared.map(lambda state, r=record: stamped(state, (r.stamp, r.event_id)))
        for record in shared
    ]
    return NO_CHANGES.map(newest, *made)


@dataclass
class StateDocument:
    """A state document as read. An empty one stands for a document that does not exist."""

    key: StateKey
    etag: str | None = None
    state: State = field(default_factory=State)
    stamps: Document = field(default_factory=dict)
    erased: int = 0  # the stamp of the last erasure
    wire_bytes: int = 200

    @property
    def size(self) -> int:
        """Approximate memory use in bytes."""
        parts = (self.state.inline, self.state.large, self.stamps)
        return _OBJECTS + sum(map(footprint, parts))

    def stamp(self, key: str) -> Stamp | None:
        found = self.stamps.get(key)
        if isinstance(found, list) and len(found) == 2 and isinstance(found[0], int | float):
            return int(found[0]), str(found[1])
        return None

    def missing(self, changes: Changes) -> Changes:
        """The changes that this document does not have yet. Changes older than the last erasure
        count as erased, wherever they come from."""
        missing: Changes = {}
        for key, (stamp, value) in changes.items():
            current = self.stamp(key)
            if (current is None or current < stamp) and stamp[0] > self.erased:
                missing[key] = (stamp, value)
        return missing

    def overlaid(self, changes: Changes) -> State:
        """The state with the changes applied."""
        return self.state.updated({k: value for k, (_, value) in self.missing(changes).items()})

    def merged(self, changes: Changes) -> StateDocument:
        missing = self.missing(changes)
        stamps = {key: list(stamp) for key, (stamp, _) in missing.items()}
        return StateDocument(
            self.key, self.etag, self.overlaid(changes), self.stamps | stamps, self.erased
        )


class StateDocuments:
    """Reads and merges user and app state. Merges that wait are combined."""

    def __init__(self, values: LargeValues, clock: HybridClock, timeout: float) -> None:
        self._container = values.container
        self._cache = values.cache
        self._clock = clock
        self._values = values
        self._timeout = timeout
        self._waiting: dict[StateKey, _Merge] = {}

    async def read_shared(self, key: SessionKey) -> Pair[StateDocument]:
        """The state that a session shares."""
        return Pair(*await together(*map(self.read, key.shared)))

    async def read(self, key: StateKey) -> StateDocument:
        """The current version. A version that this process already has is not sent again."""
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

    async def whole_shared(
        self, documents: Pair[StateDocument], changes: Pair[Changes]
    ) -> Pair[Document]:
        """`whole` for the user and for the app."""
        both = zip(documents, changes, strict=True)
        return Pair(*[await self.whole(*each) for each in both])

    async def whole(self, document: StateDocument, changes: Changes) -> Document:
        """All values with the changes applied, except those that are lost. If a value is not found
        and the document has a newer version, the value was replaced."""
        newest_one = False
        for attempt in VISIBILITY:
            await VISIBILITY.pause(attempt)
            found: Document | None = None
            with contextlib.suppress(NotFound, DamagedValueError):
                found = await self._values.whole(
                    document.key, document.overlaid(changes), without_lost=newest_one
                )
            if found is not None and not newest_one:
                return found
            again = await self.read_newest(document.key)
            newest_one = again.etag == document.etag
            if found is not None and newest_one:
                return found
            document = again
        raise StorageError(
            f"A large value of the {document.key.scope}: state of {document.key.app_name!r} is"
            " missing from the store. Write the key again."
        )

    async def read_newest(self, key: StateKey) -> StateDocument:
        self._cache.drop(key)
        await self._container.probe(key.document_id, key.user_id)
        return await self.read(key)

    def check_size(self, key: StateKey, delta: Mapping[str, Any], operation: str) -> None:
        """Refuses, before anything is stored, more keys than the document can name."""
        if not delta:
            return
        known: StateDocument | None = self._cache.get(key)
        size = least_size(delta) + _STAMP_BYTES * len(delta)
        if known is not None and size + known.wire_bytes > ITEM_LIMIT:
            values = known.state.updated(delta).inline
            names = known.stamps.keys() | delta.keys()
            size = least_size(values) + _bytes(known.state.large) + _STAMP_BYTES * len(names)
        if size > ITEM_LIMIT:
            raise TooLargeError(
                f"{operation}: the {key.scope}: state of {key.app_name!r} would have too many"
                f" keys: one Cosmos DB document, with {ITEM_LIMIT:,} bytes, names them all."
                " Nothing was stored."
            )

    async def merge_shared(self, key: SessionKey, changes: Pair[Changes]) -> None:
        """Merges into both documents in parallel."""
        begun = [self._begin(*both) for both in zip(key.shared, changes, strict=True)]
        try:
            for each in begun:
                await each
        finally:
            for each in begun:
                each.close()  # if it was not awaited; the write goes on

    async def merge(self, key: StateKey, changes: Changes) -> None:
        """Makes the changes durable. Changes that wait for one document go out together."""
        await self._begin(key, changes)

    def _begin(self, key: StateKey, changes: Changes) -> Coroutine[Any, Any, None]:
        """Like `merge`, but under way before it is awaited."""
        if not changes:
            return _nothing()
        waiting = self._waiting.get(key)
        if waiting is None or waiting.started:
            waiting = self._waiting[key] = _Merge(after=waiting)
            waiting.task = asyncio.create_task(self._run(key, waiting))
            waiting.task.add_done_callback(retrieve)
        waiting.changes = newest(waiting.changes, changes)
        assert waiting.task is not None
        return _shielded(waiting.task)

    async def erase(self, key: StateKey, after: int = 0) -> int:
        """Erases the state, and returns the number of documents that lost their content.

        The remaining document keeps the time of the erasure: no change up to then, or with a stamp
        up to `after`, ever comes back, whichever process still has it.
        """
        self._clock.observe(after)
        for attempt in CONTENTION:
            await CONTENTION.pause(attempt)
            current = await self.read_newest(key)
            stamp = self._clock.next()
            try:
                await self._put(state_document(key, State(), {}, stamp), current.etag)
            except (Conflict, PreconditionFailed, NotFound):
                continue
            self._cache.drop(key)
            values = await self._values.erase(key, _is_before(stamp))
            return values + bool(current.stamps)
        raise self._contended(key)

    async def sweep(self, key: StateKey, before: float) -> int:
        """Removes large values that nobody will name, and returns the number of documents: those
        from before the last erasure, which a writer may have stored after it; and those written
        before a time for sessions that were never created, because their writers died."""
        erased = (await self.read_newest(key)).erased
        gone = await self._values.erase(key, _is_before(erased)) if erased else 0
        return gone + await self._values.erase_unowned(key, before)

    async def drain(self) -> None:
        """Waits for the merges under way."""
        tasks = [each.task for each in self._waiting.values() if each.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, key: StateKey, merge: _Merge) -> None:
        if merge.after is not None and merge.after.task is not None:
            await asyncio.wait([merge.after.task])
        merge.after, merge.started = None, True
        try:
            # It serves several callers, each of which has its own timeout.
            with within(self._timeout):
                await self._write(key, merge.changes)
        finally:
            if self._waiting.get(key) is merge:
                del self._waiting[key]

    async def _write(self, key: StateKey, changes: Changes) -> None:
        known: StateDocument | None = self._cache.get(key)
        uploads: list[Document] = []
        for attempt in CONTENTION:
            await CONTENTION.pause(attempt)
            current = known if known is not None else await self.read(key)
            known = None
            if not current.missing(changes):  # another process has merged or erased them
                await self._values.discard(key, current.state, uploads=uploads)
                return
            new = current.merged(changes)
            new.state = await self._values.stored(
                key, str(new.erased), new.state, current.state, uploads
            )
            document = state_document(key, new.state, new.stamps, new.erased)
            try:
                new.etag = await self._put(document, current.etag)
            except (Conflict, PreconditionFailed, NotFound):
                self._cache.drop(key)
                continue
            new.wire_bytes = _bytes(document)
            self._remember(new)
            await self._values.discard(key, new.state, current.state, uploads)
            return
        if uploads:
            newest_one = await self.read_newest(key)
            await self._values.discard(key, newest_one.state, uploads=uploads)
        raise self._contended(key)

    async def _put(self, document: Document, etag: str | None) -> str:
        if etag is None:
            return await self._container.create(document)
        return await self._container.replace(document, etag)

    def _contended(self, key: StateKey) -> UnavailableError:
        return UnavailableError(
            f"The {key.scope}: state of {key.app_name!r} is being changed by too many other"
            f" writers: {CONTENTION.attempts} attempts failed."
        )

    def _remember(self, document: StateDocument) -> StateDocument:
        self._clock.observe(document.erased)
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
    task: asyncio.Task[None] | None = None


def _is_before(stamp: int) -> Callable[[str], bool]:
    """A test for generations: a later erasure may have begun a newer one."""
    return lambda generation: not generation.isdecimal() or int(generation) < stamp


async def _shielded(task: asyncio.Task[None]) -> None:
    try:
        await in_time(task)
        return
    except TimeoutError:
        pass
    raise UnavailableError("There was no answer in time.")


async def _nothing() -> None:
    pass


def _bytes(value: Any) -> int:
    return wire_size(to_json(value))


def parse_state(key: StateKey, found: Document) -> StateDocument:
    stamps, erased = found.get("stamps"), found.get("erased")
    return StateDocument(
        key,
        str(found.get("_etag", "")),
        State.of(found),
        stamps if isinstance(stamps, dict) else {},
        int(erased) if isinstance(erased, int | float) else 0,
        _bytes(found),
    )
