"""The log of a session: documents whose id is their sequence number, created and never changed."""

from __future__ import annotations

import logging
import re
import secrets
from typing import NamedTuple

from cosmosservice.account.charges import current_operation
from cosmosservice.account.chunks import Damaged
from cosmosservice.account.container import Container, Document
from cosmosservice.account.retries import VISIBILITY
from cosmosservice.data_converters import ENVELOPE, event_time, from_json, to_json, wire_size
from cosmosservice.data_converters.collector import collector_held_off
from cosmosservice.data_converters.state_scopes import Scoped
from cosmosservice.errors import UnavailableError
from cosmosservice.hosting.concurrency import together
from cosmosservice.sessions.store.bodies import Body, LargeBodies
from cosmosservice.sessions.store.clock import HybridClock
from cosmosservice.sessions.store.documents import (
    ENVELOPE_BYTES,
    EVENT,
    ITEM_LIMIT,
    LOST,
    RESTORED,
    STUB,
    TOMBSTONE,
    log_document,
)
from cosmosservice.sessions.store.keys import Marker, SessionKey
from cosmosservice.sessions.store.queries import NEWEST_RECORDS, RECORDS
from cosmosservice.sessions.store.records import (
    Record,
    deltas_of,
    missing_seqs,
    number,
    of_incarnation,
)

logger = logging.getLogger("cosmosservice")

_MARKS = (TOMBSTONE, RESTORED, STUB, LOST)
_READABLE = ("event_id", "timestamp", "author", "invocation_id", "partial")
_PROBED = 4  # ids that are probed if records seem to be missing
_INITIAL = "initial_state"
LOG_ID = re.compile(r"[0-9a-f]{32}\.(\d{10})\.(\w+)")


class Plan(NamedTuple):
    """Which records of a session to read without a gap."""

    begin: int  # all from this sequence number on
    end: int  # the log is known to reach it
    before: int | None = None  # only those before it
    newest: int | None = None  # only so many events, and all records after `end`


class EventLog:
    """Appends to and reads from the events container."""

    def __init__(self, container: Container, clock: HybridClock) -> None:
        self.container = container
        self._bodies = LargeBodies(container)
        self._clock = clock

    async def append(self, key: SessionKey, record: Record, ttl: int | None = None) -> None:
        """Creates the record with its sequence number. Raises Conflict if that is taken.

        The chunks of a large event then stay, for the next attempt or because the event with that
        number is this one: see `discard`.
        """
        if not record.is_event:
            fields: Document = {"event_id": record.event_id, "timestamp": record.timestamp}
        else:
            fields, raw = record.fields or from_json(record.raw), record.raw
            if record.initial is not None:
                fields = fields | {_INITIAL: record.initial}
                raw = to_json(fields) if record.initial else raw
            if wire_size(raw) > ITEM_LIMIT - ENVELOPE_BYTES:
                # Chunks are stored first: the event document, which names them, is the commit.
                record.upload = record.upload or secrets.token_hex(8)
                record.chunks = record.chunks or await self._bodies.upload(
                    key, record.incarnation, record.event_id, raw, ttl, record.upload
                )
                fields = {name: fields[name] for name in _READABLE if name in fields}
                fields["chunks"] = record.chunks
            if record.copied:
                fields = fields | {"copied": True}
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

    async def read(
        self,
        key: SessionKey,
        incarnation: str | None = None,
        *,
        after: int = -1,
        before: int | None = None,
        newest: int | None = None,
    ) -> list[Record]:
        """The records of an incarnation (None: of all) after `after` and before
        `before`, in order: all of them, or the `newest` ones.

        A read may be older than what others have written: see `read_whole`.
        """
        parameters: Document = {
            "first": key.first_id(after + 1),
            "last": key.last_id if before is None else key.first_id(before),
        }
        if newest is None:
            found = await self.container.query(RECORDS, parameters, key.session_id)
            return of_incarnation(await self.records(key, found), incarnation)
        records: list[Record] = []
        while True:
            count = parameters["count"] = newest - len(records)
            found = await self.container.query(NEWEST_RECORDS, parameters, key.session_id)
            ids = [document["id"] for document in found]
            records = of_incarnation(await self.records(key, found), incarnation)[::-1] + records
            if len(records) == newest or len(ids) < count:
                return records
            # Records of other incarnations were among them, so that some are still missing.
            parameters["last"] = ids[-1]

    async def read_whole(
        self, key: SessionKey, incarnation: str, plan: Plan, given: list[Record] | None = None
    ) -> tuple[list[Record], list[int]]:
        """The records of a plan, and the holes between them: somebody
        else removed their records, which is logged. `given` is what the caller has read already.

        Records that a read does not return are lag or damage. Probes of the first few tell
        which, and the next read is at least as new: what it does not return either is gone.
        """
        lost_up_to = 0
        for attempt in VISIBILITY:
            await VISIBILITY.pause(attempt)
            found = await self._of_plan(key, incarnation, plan) if given is None else given
            found, begin = await self._extended(key, incarnation, plan, found)
            missing = missing_seqs(found, begin, plan.end)
            if not missing or missing[-1] <= lost_up_to:
                _report_damage(key, missing)
                return found, missing
            if await self._are_lost(key, incarnation, missing):
                lost_up_to = max(plan.end, found[-1].seq if found else 0)
            given = None
        raise UnavailableError(
            f"{current_operation.get()}: not all events of session {key.session_id!r} can be read"
            " yet. Nothing was changed."
        )

    async def _are_lost(self, key: SessionKey, incarnation: str, missing: list[int]) -> bool:
        """Whether records that a read did not return are really gone. Otherwise it was lag."""
        some = missing[:_PROBED]
        return not any(await together(*(self.probe(key, seq, incarnation) for seq in some)))

    async def _of_plan(self, key: SessionKey, incarnation: str, plan: Plan) -> list[Record]:
        newest = None if plan.newest is None else max(plan.newest, 1)
        return await self.read(
            key, incarnation, after=plan.begin - 1, before=plan.before, newest=newest
        )

    async def _extended(
        self, key: SessionKey, incarnation: str, plan: Plan, found: list[Record]
    ) -> tuple[list[Record], int]:
        """Adds earlier records until the `newest` events of the plan, and all records after its
        end, are among them. Also returns where they begin."""
        if plan.newest is None:
            return found, plan.begin
        enough = sum(record.is_event for record in found) >= plan.newest
        begin = plan.end + 1 if enough else plan.begin
        if found and found[0].seq > begin:
            before = found[0].seq
            found = await self.read(key, incarnation, after=begin - 1, before=before) + found
        return found, min(begin, found[0].seq) if found else begin

    async def read_after(self, key: SessionKey, marker: Marker) -> list[Record]:
        """The record after the marker, and those that follow it. A conflict has shown
        that there is one; a read that is older than the conflict is repeated."""
        for attempt in VISIBILITY:
            await VISIBILITY.pause(attempt)
            found = await self.read(key, marker.incarnation, after=marker.seq)
            if found and found[0].seq == marker.seq + 1:
                return found
            await self.probe(key, marker.seq + 1, marker.incarnation)
        raise UnavailableError(
            f"{current_operation.get()}: a record is stored after the end of session"
            f" {key.session_id!r} as it was loaded, but cannot be read yet. It may be what this"
            " call sent: whether that was stored is not known; sending it again is safe."
        )

    async def probe(self, key: SessionKey, seq: int, incarnation: str) -> bool:
        """Whether there is such a record, whatever a replica shows. After this, no read of this
        client in the session's log is older than now."""
        return await self.container.probe(key.event_id(seq, incarnation), key.session_id)

    async def records(self, key: SessionKey, documents: list[Document]) -> list[Record]:
        """The records in these documents, which are taken out of the list: each is freed as soon
        as its record is made, so that the next record takes its place in memory."""
        numbered = []
        for document in documents:
            matched = LOG_ID.fullmatch(str(document.get("id", "")))
            if matched is None:
                logger.error(
                    "Session %s: a document in its log is ignored: its id %r has no sequence"
                    " number.",
                    key.session_hash,
                    document.get("id"),
                )
                continue
            numbered.append((document, int(matched[1]), matched[2]))
        large = [each for each in numbered if "chunks" in each[0]]
        bodies = {}
        if large:
            wanted = [Body(incarnation, document["chunks"]) for document, _, incarnation in large]
            found = await self._bodies.read(key, wanted)
            bodies = {each[0]["id"]: body for each, body in zip(large, found, strict=True)}
            large.clear()
        documents.clear()
        numbered.reverse()
        records = []
        with collector_held_off():
            while numbered:
                document, seq, incarnation = numbered.pop()
                body = bodies.get(document["id"])
                records.append(self._record(key, document, seq, incarnation, body))
        return records

    def _record(
        self,
        key: SessionKey,
        document: Document,
        seq: int,
        incarnation: str,
        body: Document | Damaged | None,
    ) -> Record:
        kind = document.get("document_type", EVENT)
        fields: Document = {k: v for k, v in document.items() if k not in ENVELOPE}
        if isinstance(body, Damaged):
            logger.error(
                "Session %s: the body of the large event at %d is damaged: %s.",
                key.session_hash,
                seq,
                body,
            )
            fields["content"] = "unreadable"  # becomes a placeholder event
        elif body is not None:
            fields |= body
        initial = document.get(_INITIAL, fields.pop(_INITIAL, None))
        copied = bool(document.get("copied"))
        deltas = deltas_of(fields)
        stamp = int(number(document.get("stamp")))
        self._clock.observe(stamp)
        return Record(
            seq=seq,
            incarnation=incarnation,
            kind=kind if kind in _MARKS else EVENT,
            event_id=str(fields.get("event_id", "")),
            timestamp=event_time(fields),
            stamp=stamp,
            raw=to_json(fields),
            deltas=Scoped(deltas.session) if copied else deltas,
            chunks=document.get("chunks"),
            initial=initial if isinstance(initial, dict) else None,
            copied=copied,
            lost=isinstance(body, Damaged),
        )

    async def discard(self, key: SessionKey, record: Record) -> None:
        """Removes the chunks of an event that is known not to be stored."""
        if record.chunks is not None:
            await self._bodies.discard(key, record.incarnation, record.chunks)


def _report_damage(key: SessionKey, missing: list[int]) -> None:
    if missing:
        logger.error(
            "Session %s: its log has lost %d of its records, the first of them number %d. The"
            " others are used; run `cosmosservice sessions repair` for details.",
            key.session_hash,
            len(missing),
            missing[0],
        )
