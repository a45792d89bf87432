"""The session document: the state at a revision of the log, and how it is kept up to date."""

from __future__ import annotations

import datetime
import logging
import math
from collections.abc import Iterable
from typing import Any

from cosmosservice.account.cache import footprint
from cosmosservice.account.container import NOT_MODIFIED, Document
from cosmosservice.account.failures import NotFound
from cosmosservice.data_converters import to_json, wire_size
from cosmosservice.errors import StorageError
from cosmosservice.scopes import SCOPES, Pair
from cosmosservice.sessions.store.clock import HybridClock
from cosmosservice.sessions.store.compaction import Loading
from cosmosservice.sessions.store.documents import (
    ACTIVE,
    DELETED,
    MEMORIES,
    PURGED,
    REMAINING,
    RESTORED,
    STATUSES,
    TOMBSTONE,
    iso,
)
from cosmosservice.sessions.store.keys import LAST_SEQ, SessionKey
from cosmosservice.sessions.store.large_values import LargeValues
from cosmosservice.sessions.store.records import Record
from cosmosservice.sessions.store.retention import timed
from cosmosservice.sessions.store.state import State
from cosmosservice.sessions.store.state_documents import NO_CHANGES, Changes, stamped
from cosmosservice.sessions.store.usage import Usage

logger = logging.getLogger("cosmosservice")

_OBJECTS = 700  # bytes of memory: the key with its ids, and everything but the body


class SessionDocument:
    """A session document as read."""

    __slots__ = (
        "_wire_bytes", "body", "etag", "first_seq", "key", "loading", "revision", "state", "status",
    )  # fmt: skip

    def __init__(self, key: SessionKey, body: Document, etag: str) -> None:
        self.key = key
        self.body = body
        self.etag = etag
        self._wire_bytes = 0
        self.status = self._one_of(STATUSES, "status", ACTIVE)
        self.first_seq = self._int("first_seq", 1)
        # Without a state or a revision, everything is folded again from the beginning.
        start = self.first_seq - 1
        has_state = isinstance(body.get("state"), dict)
        self.revision = self._int("revision", start) if has_state else start
        self.state = State.of(body)
        self.loading = Loading.of(body, self.first_seq)

    @property
    def size(self) -> int:
        """Approximate memory use in bytes, with its key."""
        return footprint(self.body) + _OBJECTS

    @property
    def wire_bytes(self) -> int:
        if not self._wire_bytes:
            self._wire_bytes = wire_size(to_json(self.body))
        return self._wire_bytes

    @property
    def usage(self) -> Usage:
        return Usage.of(self.body.get("usage")) if self.revision >= self.first_seq else Usage()

    @property
    def damaged(self) -> bool:
        """Whether it is unusable: it does not say which events belong to it."""
        found = self.body.get("incarnation")
        return not isinstance(found, str) or not found

    @property
    def incarnation(self) -> str:
        if self.damaged:
            raise StorageError(
                f"The document of session {self.key.session_id!r} is damaged: it has no"
                " incarnation. Its events are untouched; `cosmosservice sessions repair` can"
                " rebuild it from them."
            )
        return str(self.body["incarnation"])

    @property
    def last_update_time(self) -> float:
        found = self.body.get("last_update_time")
        return float(found) if isinstance(found, int | float) else 0.0

    @property
    def title(self) -> str:
        found = self.body.get("title")
        return found if isinstance(found, str) else ""

    @property
    def created(self) -> float:
        """When the session was created; 0 if the document does not say."""
        try:
            return datetime.datetime.fromisoformat(str(self.body.get("created_at"))).timestamp()
        except ValueError:
            return 0.0

    @property
    def updated_at(self) -> str:
        return str(self.body.get("updated_at", ""))

    @property
    def initial(self) -> Document:
        """User and app state that the session was created with and that may not be merged yet."""
        found = self.body.get("initial")
        return found if isinstance(found, dict) else {}

    @property
    def initial_stamp(self) -> int:
        number = self.initial.get("stamp")
        return int(number) if isinstance(number, int | float) else 0

    @property
    def named(self) -> State:
        """All large values that it names: of its state, and of what it was created with."""
        large = dict(self.state.large)
        for scope in SCOPES:
            found = State.of(self.initial.get(scope)).large
            large |= {f"{scope}:{key}": ref for key, ref in found.items()}
        return State({}, large)

    @property
    def replaced(self) -> Document:
        """Its information about predecessors whose content is still stored."""
        found = self.body.get("replaced")
        return found if isinstance(found, dict) else {}

    @property
    def spares_memories(self) -> bool:
        """Whether its erasure leaves the memories, which belong to the user: it has expired, and
        nobody deleted it."""
        return self.body.get("spares") == MEMORIES

    def remains(self, status: str, now: float, **fields: Any) -> Document:
        """What stays of it when it is erased."""
        body: Document = {name: self.body[name] for name in REMAINING if name in self.body}
        body |= {"status": status, "updated_at": iso(now), "state": {}} | fields
        if self.initial_stamp:  # the erasure of the user's state must be later
            body["initial"] = {"stamp": self.initial_stamp}
        return body

    def as_predecessor(self) -> Document:
        """The `replaced` field of a session that is created instead of this one."""
        found = self.replaced or {"deleted_at": self.updated_at}
        if self.replaced:
            return found
        if self.status == PURGED:
            found["purged"] = True
        if self.status == ACTIVE or self.spares_memories:
            found["spares"] = MEMORIES
        return found

    def _int(self, name: str, default: int) -> int:
        found = self.body.get(name)
        if isinstance(found, int | float) and not isinstance(found, bool):
            in_range = 0 <= found <= LAST_SEQ
            if in_range:
                return int(found)
        logger.error(
            "Session %s: its document is damaged: %s is missing or not a sequence number.",
            self.key.session_hash,
            name,
        )
        return default

    def _one_of(self, known: frozenset[str], name: str, default: str) -> str:
        found = self.body.get(name)
        if isinstance(found, str) and found in known:
            return found
        logger.error(
            "Session %s: its document is damaged: its %s is missing or unknown.",
            self.key.session_hash,
            name,
        )
        return default

    def without(self, *names: str) -> Document:
        """Its own fields except these."""
        return {k: v for k, v in self.body.items() if not k.startswith("_") and k not in names}

    def with_status(self, status: str, now: float) -> Document:
        return self.without() | {"status": status, "updated_at": iso(now)}

    def followed(self, records: list[Record], state: State, now: float) -> Document:
        """The document at the last of these records, which follow its revision, with this state.
        Its initial user and app state must already be merged."""
        body = self.without("initial", "large") | state.fields
        usage = self.usage + Usage.of_records(records)
        body |= {"status": self.status, "updated_at": iso(now), "usage": usage.stored}
        for record in records:
            body["revision"] = record.seq
            if record.is_event and math.isfinite(record.timestamp):
                body["last_update_time"] = record.timestamp
            elif record.kind == TOMBSTONE:
                body["status"] = DELETED
            elif record.kind == RESTORED:
                body["status"] = ACTIVE
        return body


def fold(state: State, records: Iterable[Record]) -> State:
    """The session's state after these records."""
    changes: Document = {}
    for record in records:
        changes.update(record.deltas.session)
    return state.updated(changes)


class SessionDocuments:
    """Reads and writes session documents, and caches them."""

    def __init__(self, values: LargeValues, clock: HybridClock) -> None:
        self._container = values.container
        self._cache = values.cache
        self._clock = clock
        self._values = values

    def known(self, key: SessionKey) -> SessionDocument | None:
        found: SessionDocument | None = self._cache.get(key)
        return found

    def forget(self, key: SessionKey) -> None:
        self._cache.drop(key)

    async def read(self, key: SessionKey) -> SessionDocument | None:
        """None if there is none."""
        known = self.known(key)
        try:
            found: Any = await self._container.read(
                key.document_id, key.user_id, known.etag if known is not None else None
            )
        except NotFound:
            self.forget(key)
            return None
        if found is NOT_MODIFIED:
            assert known is not None
            return known
        return self._remember(SessionDocument(key, found, str(found.get("_etag", ""))))

    async def initial_changes(self, document: SessionDocument) -> Pair[Changes]:
        """The user and app state that the session was created with, while it may not be merged."""
        if not document.initial:
            return NO_CHANGES
        stamp = document.initial_stamp, f"create-{document.body.get('incarnation')}"
        given = SCOPES.map(lambda scope: State.of(document.initial.get(scope)))
        found = [await self._values.whole(document.key, each) for each in given]
        return Pair(*(stamped(each, stamp) for each in found))

    async def probe(self, key: SessionKey) -> bool:
        """Whether it exists, whatever a replica shows. After this, no read of this client in the
        user's partition is older than now."""
        self.forget(key)
        return await self._container.probe(key.document_id, key.user_id)

    async def read_confirmed(self, key: SessionKey) -> SessionDocument | None:
        """The document as it is now, whatever a replica shows."""
        await self.probe(key)
        return await self.read(key)

    async def create(self, key: SessionKey, body: Document) -> SessionDocument:
        """Raises Conflict if there is one."""
        body = timed(body, self._clock.now())
        etag = await self._container.create(body)
        return self._remember(SessionDocument(key, body, etag))

    async def replace(self, current: SessionDocument, body: Document) -> SessionDocument:
        """Raises PreconditionFailed if another writer was faster, NotFound if it is gone."""
        self.forget(current.key)
        body = timed(body, self._clock.now())
        etag = await self._container.replace(body, current.etag)
        return self._remember(SessionDocument(current.key, body, etag))

    def _remember(self, document: SessionDocument) -> SessionDocument:
        self._clock.observe(document.initial_stamp)
        self._cache.put(document.key, document)
        return document
