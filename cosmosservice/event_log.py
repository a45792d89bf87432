"""The log of a session: documents whose id is their place, created and never changed."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import re
import secrets
import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cosmosservice.concurrency import together
from cosmosservice.cosmos_client import Container, NotFound
from cosmosservice.data_converters import (
    ENVELOPE,
    decode_state,
    fields_to_event,
    from_json,
    to_json,
)
from cosmosservice.documents import (
    CHUNK,
    EVENT,
    ITEM_LIMIT,
    RESTORED,
    STUB,
    TOMBSTONE,
    Document,
    SessionKey,
    log_document,
)
from cosmosservice.state_scopes import NOTHING, Scoped, split

logger = logging.getLogger("cosmosservice")

_CHUNK_BYTES = 1_400_000  # of compressed text; a third more as base64
_PLACE = re.compile(r"[0-9a-f]{32}\.(\d{10})\.(\w+)")
_RECORD_OVERHEAD = 400  # bytes that a record in memory takes besides its text

LATER = "SELECT * FROM c WHERE c.id >= @first AND c.id < @last ORDER BY c.id"
NEXT = "SELECT TOP @count * FROM c WHERE c.id >= @first AND c.id < @last ORDER BY c.id"
NEWEST = "SELECT TOP @count * FROM c WHERE c.id >= @first AND c.id < @last ORDER BY c.id DESC"


class HybridClock:
    """Stamps that never fall behind a stamp this process has seen: other hosts' clocks differ."""

    def __init__(self) -> None:
        self._latest = 0

    def next(self) -> int:
        self._latest = max(time.time_ns() // 1000, self._latest + 1)
        return self._latest

    def observe(self, stamp: int) -> None:
        self._latest = max(self._latest, stamp)


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
    deltas: Scoped = NOTHING
    settled: bool = False  # its user and app state is known to be merged
    appended_here: bool = False  # by this process
    etag: str = ""
    ts: int = 0

    @property
    def size(self) -> int:
        return len(self.raw) + _RECORD_OVERHEAD

    @property
    def is_event(self) -> bool:
        return self.kind == EVENT

    def same_event(self, other: Record) -> bool:
        # The store writes 5.0 as 5, so different text may still be the same event.
        return self.raw == other.raw or (
            fields_to_event(from_json(self.raw)) == fields_to_event(from_json(other.raw))
        )


def event_record(fields: Document, raw: bytes) -> Record:
    """A record of an event that has no place yet."""
    return Record(
        seq=0,
        incarnation="",
        kind=EVENT,
        event_id=str(fields.get("event_id", "")),
        timestamp=_number(fields.get("timestamp")),
        stamp=0,
        raw=raw,
        deltas=_deltas(raw) if _has_delta(fields) else NOTHING,
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
        self._clock = clock

    async def append(self, key: SessionKey, record: Record, ttl: int | None = None) -> None:
        """Creates the record at its place. Raises Conflict if the place is taken."""
        upload = ""
        fields = from_json(record.raw)
        if len(record.raw) > ITEM_LIMIT - 4_000:
            upload, fields = await self._upload(key, record, fields, ttl)
        document = log_document(
            key,
            kind=record.kind,
            incarnation=record.incarnation,
            seq=record.seq,
            stamp=record.stamp,
            fields=fields if record.is_event else _mark_fields(record),
        )
        if ttl is not None:
            document["ttl"] = ttl
        try:
            record.etag = await self.container.create(document)
        except Exception:
            if upload:
                await self._discard(key, record.incarnation, upload, fields["chunks"]["count"])
            raise
        record.appended_here = True
        record.ts = int(time.time())

    async def later(self, key: SessionKey, first: int, before: int | None = None) -> list[Record]:
        """The records from `first` on (and before `before`), in order."""
        last = key.last_id if before is None else key.first_id(before)
        parameters = {"first": key.first_id(first), "last": last}
        found = await self.container.query(LATER, parameters, key.session_id)
        return await self._records(key, found)

    async def next(self, key: SessionKey, first: int, count: int) -> list[Record]:
        """The `count` records from `first` on."""
        parameters = {"count": count, "first": key.first_id(first), "last": key.last_id}
        return await self._records(
            key, await self.container.query(NEXT, parameters, key.session_id)
        )

    async def newest(
        self, key: SessionKey, count: int, first: int = 0, before: int | None = None
    ) -> list[Record]:
        """The last `count` records (before `before`), in order."""
        last = key.last_id if before is None else key.first_id(before)
        parameters = {"count": count, "first": key.first_id(first), "last": last}
        found = await self.container.query(NEWEST, parameters, key.session_id)
        return await self._records(key, found[::-1])

    async def _records(self, key: SessionKey, documents: list[Document]) -> list[Record]:
        records = []
        for document in documents:
            place = _PLACE.fullmatch(str(document.get("id", "")))
            if place is None:
                logger.error(
                    "Session %r: a document in its log has no place there, and is ignored: id %r.",
                    key.session_id,
                    document.get("id"),
                )
                continue
            records.append(await self._record(key, document, int(place[1]), place[2]))
        return records

    async def _record(
        self, key: SessionKey, document: Document, seq: int, incarnation: str
    ) -> Record:
        kind = document.get("document_type", EVENT)
        fields: Document = {k: v for k, v in document.items() if k not in ENVELOPE}
        if "chunks" in document:
            fields |= await self._download(key, incarnation, document)
        stamp = int(_number(document.get("stamp")))
        self._clock.observe(stamp)
        raw = to_json(fields)
        return Record(
            seq=seq,
            incarnation=incarnation,
            kind=kind if kind in (TOMBSTONE, RESTORED, STUB) else EVENT,
            event_id=str(fields.get("event_id", "")),
            timestamp=_number(fields.get("timestamp")),
            stamp=stamp,
            raw=raw,
            deltas=_deltas(raw) if _has_delta(fields) else NOTHING,
            etag=str(document.get("_etag", "")),
            ts=int(_number(document.get("_ts"))),
        )

    # Events over the item limit: the body goes into chunks first, the event document, which
    # names them, is the commit.

    async def _upload(
        self, key: SessionKey, record: Record, fields: Document, ttl: int | None
    ) -> tuple[str, Document]:
        upload, incarnation = secrets.token_hex(8), record.incarnation
        packed = await asyncio.to_thread(zlib.compress, record.raw, 1)
        pieces = [packed[i : i + _CHUNK_BYTES] for i in range(0, len(packed), _CHUNK_BYTES)]

        async def create(number: int, piece: bytes) -> None:
            document: Document = {
                "id": key.chunk_id(incarnation, upload, number),
                "document_type": CHUNK,
                "session_id": key.session_id,
                "user_id": key.user_id,
                "app_name": key.app_name,
                "incarnation": incarnation,
                "event_id": record.event_id,
                "data": base64.b64encode(piece).decode("ascii"),
            }
            if ttl is not None:
                document["ttl"] = ttl
            await self.container.create(document)

        try:
            await together(*(create(number, piece) for number, piece in enumerate(pieces)))
        except BaseException:
            await self._discard(key, incarnation, upload, len(pieces))
            raise
        envelope = ("event_id", "timestamp", "author", "invocation_id", "partial")
        small = {name: fields[name] for name in envelope if name in fields}
        small["chunks"] = {
            "upload": upload,
            "count": len(pieces),
            "bytes": len(record.raw),
            "sha256": hashlib.sha256(record.raw).hexdigest(),
        }
        return upload, small

    async def _download(self, key: SessionKey, incarnation: str, document: Document) -> Document:
        try:
            upload, count = document["chunks"]["upload"], int(document["chunks"]["count"])
            chunks = await together(
                *(
                    self.container.read(key.chunk_id(incarnation, upload, number), key.session_id)
                    for number in range(count)
                )
            )
            packed = b"".join(base64.b64decode(chunk["data"]) for chunk in chunks)
            raw = await asyncio.to_thread(zlib.decompress, packed)
            if hashlib.sha256(raw).hexdigest() != document["chunks"]["sha256"]:
                raise ValueError("its checksum is wrong")
            whole: Document = from_json(raw)
            return whole
        except (NotFound, KeyError, TypeError, ValueError, zlib.error) as problem:
            logger.error(
                "Session %r: the body of the large event at %s cannot be read (%s).",
                key.session_id,
                document.get("seq"),
                type(problem).__name__,
            )
            return {"content": "unreadable"}  # becomes a placeholder event

    async def _discard(self, key: SessionKey, incarnation: str, upload: str, count: int) -> None:
        """Removes the chunks of an event that was not stored; purge removes what this misses."""
        for number in range(count):
            try:
                await self.container.delete(
                    key.chunk_id(incarnation, upload, number), key.session_id
                )
            except Exception as problem:
                logger.debug("An unused chunk stays behind: %s", type(problem).__name__)


def _mark_fields(record: Record) -> Document:
    return {"event_id": record.event_id, "timestamp": record.timestamp}


def _has_delta(fields: Document) -> bool:
    actions = fields.get("actions")
    return isinstance(actions, dict) and bool(actions.get("state_delta"))


def _deltas(raw: bytes) -> Scoped:
    delta = from_json(raw)["actions"]["state_delta"]
    return split(decode_state(delta)) if isinstance(delta, dict) else NOTHING


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
