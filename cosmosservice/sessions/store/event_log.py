"""The log of a session: documents whose id is their place, created and never changed."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cosmosservice.account.charges import current_operation
from cosmosservice.account.container import Container, Document
from cosmosservice.account.failures import NotFound
from cosmosservice.data_converters import (
    ENVELOPE,
    event_time,
    fields_to_event,
    from_json,
    same_event,
    to_json,
    wire_size,
)
from cosmosservice.data_converters.state_scopes import NOTHING, Scoped, split_stored
from cosmosservice.errors import UnavailableError
from cosmosservice.hosting.concurrency import together
from cosmosservice.sessions.store.bodies import Body, LargeBodies, checksum
from cosmosservice.sessions.store.clock import HybridClock
from cosmosservice.sessions.store.documents import (
    EVENT,
    ITEM_LIMIT,
    RESTORED,
    STUB,
    TOMBSTONE,
    log_document,
)
from cosmosservice.sessions.store.keys import Marker, SessionKey

logger = logging.getLogger("cosmosservice")

_READ_ATTEMPTS = 12
_ENVELOPE_BYTES = 4_000
_READABLE = ("event_id", "timestamp", "author", "invocation_id", "partial")
_PLACE = re.compile(r"[0-9a-f]{32}\.(\d{10})\.(\w+)")
_RECORD_OVERHEAD = 400  # bytes that a record in memory takes besides its text

LATER = "SELECT * FROM c WHERE c.id >= @first AND c.id < @last ORDER BY c.id"
NEXT = "SELECT TOP @count * FROM c WHERE c.id > @after AND c.id < @last ORDER BY c.id"
NEWEST = "SELECT TOP @count * FROM c WHERE c.id >= @first AND c.id < @last ORDER BY c.id DESC"


@dataclass(slots=True)
class Record:
    """One document of the log, in memory."""

    seq: int
    incarnation: str
    kind: str
    event_id: str
    timestamp: float
    stamp: int
    raw: bytes  # the event's fields as JSON: nothing that a caller does can change it
    fields: Document | None = None  # the same, until they are stored
    deltas: Scoped = NOTHING
    delta_size: int | None = None  # in bytes, once somebody has asked
    settled: bool = False  # its user and app state is known to be merged
    appended_here: bool = False  # by this process
    upload: str = ""  # under which name the body of a large event is being put into chunks
    chunks: Document | None = None  # where that body was put
    lost: bool = False  # that body cannot be read: what the event says and changes is not known
    awaited: bool = False  # it is lost because chunks do not show, which may be a matter of time

    @property
    def size(self) -> int:
        return len(self.raw) + _RECORD_OVERHEAD

    @property
    def is_event(self) -> bool:
        return self.kind == EVENT

    def same_event(self, other: Record) -> bool:
        if self.lost:
            told = self.chunks.get("sha256") if isinstance(self.chunks, dict) else None
            return told == checksum(other.raw)
        # The store writes 5.0 as 5, so different text may still be the same event.
        return self.raw == other.raw or same_event(
            fields_to_event(from_json(self.raw)), fields_to_event(from_json(other.raw))
        )


def event_record(fields: Document, raw: bytes) -> Record:
    """A record of an event that has no place yet."""
    return Record(
        seq=0,
        incarnation="",
        kind=EVENT,
        event_id=str(fields.get("event_id", "")),
        timestamp=event_time(fields),
        stamp=0,
        raw=raw,
        fields=fields,
        deltas=_deltas(fields),
    )


def mark(kind: str) -> Record:
    """A tombstone or the record of a restore: of the log, but not an event."""
    return Record(0, "", kind, f"{kind}-{secrets.token_hex(8)}", time.time(), 0, b"{}")


def is_deleted(records: Iterable[Record]) -> bool | None:
    """Whether the session is deleted after these records; None if they do not say."""
    deleted = None
    for record in records:
        if record.kind == TOMBSTONE:
            deleted = True
        elif record.kind == RESTORED:
            deleted = False
    return deleted


class EventLog:
    """Appends to and reads from the events container."""

    def __init__(self, container: Container, clock: HybridClock) -> None:
        self.container = container
        self._bodies = LargeBodies(container)
        self._clock = clock

    async def append(self, key: SessionKey, record: Record, ttl: int | None = None) -> None:
        """Creates the record at its place. Raises Conflict if the place is taken.

        The chunks of a large event stay where they are then, for the next attempt or because the
        event in that place is this one: see `discard`.
        """
        if not record.is_event:
            fields: Document = {"event_id": record.event_id, "timestamp": record.timestamp}
        else:
            fields = record.fields or from_json(record.raw)
            if wire_size(record.raw) > ITEM_LIMIT - _ENVELOPE_BYTES:
                # They go first: the event document, which names them, is the commit.
                record.upload = record.upload or secrets.token_hex(8)
                record.chunks = record.chunks or await self._bodies.upload(
                    key, record.incarnation, record.event_id, record.raw, ttl, record.upload
                )
                fields = {name: fields[name] for name in _READABLE if name in fields}
                fields["chunks"] = record.chunks
        document = log_document(
            key,
            kind=record.kind,
            incarnation=record.incarnation,
            seq=record.seq,
            stamp=record.stamp,
            fields=fields,
        )
        if ttl is not None:
            document["ttl"] = ttl
        await self.container.add(document)
        record.appended_here = True

    async def at(self, key: SessionKey, seq: int, incarnation: str) -> Record:
        """What stands in a place that is known to be taken."""
        return (await self.behind(key, Marker(incarnation, seq - 1)))[0]

    async def behind(self, key: SessionKey, marker: Marker) -> list[Record]:
        """What took the place behind the marker, and what followed it. A read may be older than
        the write that said so: then it is repeated."""
        for attempt in range(_READ_ATTEMPTS):
            await asyncio.sleep(0.01 * 2 ** min(attempt, 6) if attempt else 0)
            found = await self.later(key, marker.seq + 1)
            mine = [record for record in found if record.incarnation == marker.incarnation]
            if mine and mine[0].seq == marker.seq + 1:
                return mine
        raise UnavailableError(
            f"{current_operation.get()}: something is stored behind the end of session"
            f" {key.session_id!r} as it was loaded, but cannot be read yet. It may be what this"
            " call sent: whether that was stored is not known; sending it again is safe."
        )

    async def later(self, key: SessionKey, first: int, before: int | None = None) -> list[Record]:
        """The records from `first` on (and before `before`), in order."""
        last = key.last_id if before is None else key.first_id(before)
        parameters = {"first": key.first_id(first), "last": last}
        found = await self.container.query(LATER, parameters, key.session_id)
        return await self._records(key, found)

    async def next(
        self, key: SessionKey, after: str, count: int
    ) -> tuple[list[Record], str | None]:
        """Up to `count` records behind the id `after`, and the id to go on behind."""
        parameters = {"count": count, "after": after, "last": key.last_id}
        found = await self.container.query(NEXT, parameters, key.session_id)
        return await self._records(key, found), found[-1]["id"] if len(found) == count else None

    async def newest(
        self, key: SessionKey, count: int, first: int = 0, before: int | None = None
    ) -> list[Record]:
        """The last `count` records (before `before`), in order."""
        last = key.last_id if before is None else key.first_id(before)
        parameters = {"count": count, "first": key.first_id(first), "last": last}
        found = await self.container.query(NEWEST, parameters, key.session_id)
        return await self._records(key, found[::-1])

    async def _records(self, key: SessionKey, documents: list[Document]) -> list[Record]:
        placed = []
        for document in documents:
            place = _PLACE.fullmatch(str(document.get("id", "")))
            if place is None:
                logger.error(
                    "Session %r: a document in its log has no place there, and is ignored: id %r.",
                    key.session_id,
                    document.get("id"),
                )
                continue
            placed.append((document, int(place[1]), place[2]))
        large = [each for each in placed if "chunks" in each[0]]
        bodies = {}
        if large:
            wanted = [Body(incarnation, document["chunks"]) for document, _, incarnation in large]
            found = await self._bodies.read(key, wanted)
            bodies = {each[0]["id"]: body for each, body in zip(large, found, strict=True)}
        return [self._record(key, *each, bodies.get(each[0]["id"])) for each in placed]

    async def came_to_light(self, key: SessionKey, awaited: list[Record]) -> bool:
        """Whether the body of one of these records shows now."""
        bodies = [Body(record.incarnation, record.chunks) for record in awaited]
        return any(await together(*(self._bodies.shows(key, body) for body in bodies)))

    def _record(
        self,
        key: SessionKey,
        document: Document,
        seq: int,
        incarnation: str,
        body: Document | Exception | None,
    ) -> Record:
        kind = document.get("document_type", EVENT)
        fields: Document = {k: v for k, v in document.items() if k not in ENVELOPE}
        if isinstance(body, Exception):
            logger.error(
                "Session %r: the body of the large event at %d cannot be read (%s).",
                key.session_id,
                seq,
                type(body).__name__,
            )
            fields["content"] = "unreadable"  # becomes a placeholder event
        elif body is not None:
            fields |= body
        stamp = int(_number(document.get("stamp")))
        self._clock.observe(stamp)
        raw = to_json(fields)
        return Record(
            seq=seq,
            incarnation=incarnation,
            kind=kind if kind in (TOMBSTONE, RESTORED, STUB) else EVENT,
            event_id=str(fields.get("event_id", "")),
            timestamp=event_time(fields),
            stamp=stamp,
            raw=raw,
            deltas=_deltas(fields),
            chunks=document.get("chunks"),
            lost=isinstance(body, Exception),
            awaited=isinstance(body, NotFound),
        )

    async def discard(self, key: SessionKey, record: Record) -> None:
        """Removes the chunks of an event that is certain not to be stored."""
        if record.chunks is not None:
            await self._bodies.discard(key, record.incarnation, record.chunks)


def _deltas(fields: Document) -> Scoped:
    """What the event changes."""
    actions = fields.get("actions")
    delta = actions.get("state_delta") if isinstance(actions, dict) else None
    return split_stored(delta) if delta and isinstance(delta, dict) else NOTHING


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
