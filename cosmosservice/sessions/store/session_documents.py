"""The session document: the current state as of a revision of the log, and how it follows it."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cosmosservice.account.cache import Cache
from cosmosservice.account.container import NOT_MODIFIED, Container, Document
from cosmosservice.account.failures import NotFound
from cosmosservice.data_converters import to_json, wire_size
from cosmosservice.errors import StorageError
from cosmosservice.sessions.store.clock import HybridClock
from cosmosservice.sessions.store.documents import (
    ACTIVE,
    DELETED,
    RESTORED,
    STATUSES,
    TOMBSTONE,
    iso,
)
from cosmosservice.sessions.store.event_log import Record
from cosmosservice.sessions.store.keys import APP_STATE, SessionKey
from cosmosservice.sessions.store.state_documents import Changes

logger = logging.getLogger("cosmosservice")


@dataclass(frozen=True)
class Left:
    """What user and app state had no room for: of which event on, and of the creation's."""

    first: int | None = None
    initial: bool = False


class SessionDocument:
    """A session document as read."""

    __slots__ = ("_size", "body", "etag", "first_seq", "key", "revision", "state", "status")

    def __init__(self, key: SessionKey, body: Document, etag: str) -> None:
        self.key = key
        self.body = body
        self.etag = etag
        self._size = 0
        self.status = self._one_of(STATUSES, "status", ACTIVE)
        self.first_seq = self._int("first_seq", 1)
        state = body.get("state")
        # Without a state, or without a revision, everything is folded again from the beginning.
        start = self.first_seq - 1
        self.revision = self._int("revision", start) if isinstance(state, dict) else start
        self.state: Document = state if isinstance(state, dict) else {}

    @property
    def size(self) -> int:
        if not self._size:
            self._size = wire_size(to_json(self.body))
        return self._size

    @property
    def damaged(self) -> bool:
        """Beyond use: it does not say which events are its own."""
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
    def updated_at(self) -> str:
        return str(self.body.get("updated_at", ""))

    @property
    def pending(self) -> Document:
        """Initial user and app state that may not have been merged yet."""
        found = self.body.get("pending")
        return found if isinstance(found, dict) else {}

    def pending_changes(self, kind: str) -> Changes:
        if not self.pending:
            return {}
        scope = self.pending.get("app" if kind == APP_STATE else "user")
        number = self.pending.get("stamp")
        stamp = (
            int(number) if isinstance(number, int | float) else 0,
            f"create-{self.body.get('incarnation')}",
        )
        return {k: (stamp, v) for k, v in scope.items()} if isinstance(scope, dict) else {}

    @property
    def replaced(self) -> Document:
        """What it says of predecessors whose content is still stored."""
        found = self.body.get("replaced")
        return found if isinstance(found, dict) else {}

    @property
    def replaced_from(self) -> int:
        """Where in the log the content of predecessors begins."""
        found = self.replaced.get("first_seq")
        return int(found) if isinstance(found, int | float) else 1

    def left_behind(self) -> Document | None:
        """What a session that is created in the place of this one must say of it."""
        if self.status != DELETED:
            return None  # purged: nothing is left
        return self.replaced or {"first_seq": self.first_seq, "deleted_at": self.updated_at}

    @property
    def unmerged(self) -> int | None:
        """The first event whose user or app state did not fit into its document."""
        found = self.body.get("unmerged")
        return int(found) if isinstance(found, int | float) else None

    def _int(self, name: str, default: int) -> int:
        found = self.body.get(name)
        if isinstance(found, int | float) and not isinstance(found, bool):
            return int(found)
        logger.error(
            "The document of session %r is damaged: %s is missing or not a number.",
            self.key.session_id,
            name,
        )
        return default

    def _one_of(self, known: frozenset[str], name: str, default: str) -> str:
        found = self.body.get(name)
        if isinstance(found, str) and found in known:
            return found
        logger.error(
            "The document of session %r is damaged: its %s is missing or unknown.",
            self.key.session_id,
            name,
        )
        return default

    def without(self, name: str) -> Document:
        return {k: v for k, v in self.body.items() if not k.startswith("_") and k != name}

    def with_status(self, status: str) -> Document:
        body = {k: v for k, v in self.body.items() if not k.startswith("_")}
        return body | {"status": status, "updated_at": iso(time.time())}

    def followed(self, records: list[Record], left: Left) -> Document:
        """The document as of the last of these records, which follow its revision."""
        body = self.with_status(self.status) | {"state": fold(self.state, records)}
        if not left.initial:
            body.pop("pending", None)
        body.pop("unmerged", None)
        if left.first is not None:
            body["unmerged"] = left.first
        for record in records:
            body["revision"] = record.seq
            if record.is_event and math.isfinite(record.timestamp):
                body["last_update_time"] = record.timestamp
            elif record.kind == TOMBSTONE:
                body["status"] = DELETED
            elif record.kind == RESTORED:
                body["status"] = ACTIVE
        return body


def fold(state: Document, records: Iterable[Record]) -> Document:
    """The session's state after these records."""
    result = dict(state)
    for record in records:
        result.update(record.deltas.session)
    return result


class SessionDocuments:
    """Reads and writes session documents, remembering what it has seen."""

    def __init__(self, container: Container, cache: Cache, clock: HybridClock) -> None:
        self._container = container
        self._cache = cache
        self._clock = clock

    def known(self, key: SessionKey) -> SessionDocument | None:
        found: SessionDocument | None = self._cache.get(key)
        return found

    def forget(self, key: SessionKey) -> None:
        self._cache.drop(key)

    async def read(self, key: SessionKey) -> SessionDocument | None:
        """As it is now; None if there is none."""
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

    async def create(self, key: SessionKey, body: Document) -> None:
        """Raises Conflict if there is one."""
        etag = await self._container.create(body)
        self._remember(SessionDocument(key, body, etag))

    async def replace(self, current: SessionDocument, body: Document) -> None:
        """Raises PreconditionFailed if somebody was faster, NotFound if it is gone."""
        self.forget(current.key)
        etag = await self._container.replace(body, current.etag)
        self._remember(SessionDocument(current.key, body, etag))

    def _remember(self, document: SessionDocument) -> SessionDocument:
        stamp = document.pending.get("stamp")
        if isinstance(stamp, int):
            self._clock.observe(stamp)
        self._cache.put(document.key, document)
        return document
