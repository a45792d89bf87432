"""Rebuilds what can be rebuilt from the log, and reports what is wrong with it."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass, field, replace

from cosmosservice.account.failures import Conflict, NotFound, PreconditionFailed
from cosmosservice.account.retries import CONTENTION
from cosmosservice.data_converters import UNREADABLE, fields_to_event, from_json
from cosmosservice.errors import SessionNotFoundError, UnavailableError
from cosmosservice.sessions.store.documents import DAY, EVENT, LOST, iso, session_document
from cosmosservice.sessions.store.event_log import Plan
from cosmosservice.sessions.store.keys import SessionKey, record_ttl
from cosmosservice.sessions.store.parts import Part
from cosmosservice.sessions.store.queries import IDS_WITH_TIMES
from cosmosservice.sessions.store.records import Record, new_mark, of_incarnation
from cosmosservice.sessions.store.session_documents import SessionDocument
from cosmosservice.sessions.store.state import NO_STATE, State
from cosmosservice.sessions.store.state_documents import newest, record_changes
from cosmosservice.sessions.store.store import SessionStore
from cosmosservice.sessions.store.titles import display_name
from cosmosservice.sessions.store.usage import Usage

logger = logging.getLogger("cosmosservice")


@dataclass(frozen=True)
class RepairReport:
    """What a repair found."""

    session_id: str
    events: int = 0
    late: int = 0  # records that were pending: not yet in the session document
    rebuilt: bool = False  # the session document was missing or damaged
    finished: bool = False  # a delete, restore or purge that had been interrupted
    holes: list[int] = field(default_factory=list)  # sequence numbers without a record
    unreadable: list[int] = field(default_factory=list)  # events that are shown as placeholders

    @property
    def healthy(self) -> bool:
        """Whether nothing is damaged."""
        return not self.holes and not self.unreadable


class Repair(Part):
    """Repairs sessions one by one."""

    def __init__(self, store: SessionStore) -> None:
        super().__init__(store)
        self._events = store.events
        self._reader = store.reader
        self._lifecycle = store.lifecycle
        self._projection = store.projection

    async def session(self, key: SessionKey, *, accept_loss: bool = False) -> RepairReport:
        """Reads everything again, and trusts nothing that this process has cached."""
        self._views.drop(key)
        await self._reader.confirm(key)
        document, found, mine, holes = await self._read(key)
        rebuilt = False
        if document is None or document.damaged:
            document = await self._rebuild(key, document, found)
            mine = of_incarnation(found, document.incarnation, document.first_seq)
            rebuilt = True
        finished = await self._lifecycle.complete(document)
        for seq in holes:
            await self._close(document, seq)
        await self._remove_unused_chunks(key, found)
        initial = await self._documents.initial_changes(document)
        await self._states.merge_shared(key, initial.map(newest, record_changes(mine)))
        await self._projection.project(key, document.incarnation, accept_loss=accept_loss)
        await self._correct_usage(key, mine)
        return RepairReport(
            session_id=key.session_id,
            events=sum(record.is_event for record in mine),
            late=sum(record.seq > document.revision for record in mine),
            rebuilt=rebuilt,
            finished=finished,
            holes=sorted({*holes, *(record.seq for record in mine if record.kind == LOST)}),
            unreadable=[record.seq for record in mine if record.is_event and _unreadable(record)],
        )

    async def _read(
        self, key: SessionKey
    ) -> tuple[SessionDocument | None, list[Record], list[Record], list[int]]:
        """The document, all records, those of its incarnation, and the numbers among these that are
        known to be empty."""
        document = await self._documents.read(key)
        # Of all incarnations: a damaged document does not say which one is current.
        found = await self._log.read(key)
        if document is None or document.damaged:
            return document, found, [], []
        mine = of_incarnation(found, document.incarnation, document.first_seq)
        plan = Plan(document.first_seq, document.revision)
        mine, holes = await self._log.read_whole(key, document.incarnation, plan, mine)
        return document, found, mine, holes

    async def _close(self, document: SessionDocument, seq: int) -> None:
        """Fills a hole below the revision. Otherwise an old session object could append there, and
        no projection would ever include that event."""
        closed = new_mark(LOST, self._clock.now())
        closed.seq, closed.incarnation = seq, document.incarnation
        with contextlib.suppress(Conflict):
            await self._log.append(document.key, closed, record_ttl(document.incarnation))

    async def _correct_usage(self, key: SessionKey, mine: list[Record]) -> None:
        """Replaces sums that are not those of the log. A document that others write meanwhile is
        left alone."""
        document = self._documents.known(key)  # just written, or read
        if document is None or not mine or mine[-1].seq != document.revision:
            return
        if mine[0].incarnation != document.incarnation:
            return
        counted = Usage.of_records(mine)
        # The size of an event, unlike its tokens, depends on who wrote its text.
        if replace(counted, request_units=0.0) != replace(document.usage, request_units=0.0):
            with contextlib.suppress(PreconditionFailed, NotFound):
                await self._documents.replace(
                    document, document.without() | {"usage": counted.stored}
                )

    async def _remove_unused_chunks(self, key: SessionKey, found: list[Record]) -> None:
        """Removes chunks that no record names after a day: the clean-up of a refused append
        failed."""
        named = {
            str(record.chunks.get("upload")) for record in found if isinstance(record.chunks, dict)
        }
        parameters = {"first": key.first_chunk_id, "last": key.first_id(0)}
        chunks = await self._events.query(IDS_WITH_TIMES, parameters, key.session_id)
        before = self._clock.now() - DAY
        for chunk in chunks:
            if key.upload_of(chunk["id"]) not in named and chunk.get("_ts", before) < before:
                with contextlib.suppress(NotFound):
                    await self._events.delete(chunk["id"], key.session_id)

    async def _rebuild(
        self, key: SessionKey, damaged: SessionDocument | None, found: list[Record]
    ) -> SessionDocument:
        begin = _last_begin(found)
        if begin is None:
            raise SessionNotFoundError(
                f"repair_session: there is no session {key.session_id!r}, and nothing to rebuild"
                " one from."
            )
        event, first = begin
        incarnation, now = event.incarnation, self._clock.now()
        earlier = [record.seq for record in found if record.seq < first and record.kind == EVENT]
        initial, time = event.initial, event.stamp / 1_000_000
        if (
            initial is None
        ):  # the first event is lost too: even a damaged document is the best source
            known = damaged.state if damaged is not None else NO_STATE
            initial = await self._values.whole(key, known, without_lost=True)
        state = await self._values.stored(
            key, incarnation, State(initial), ttl=record_ttl(incarnation)
        )
        body = session_document(
            key,
            incarnation=incarnation,
            first_seq=first,
            state=state,
            now=time if 0 < time < now else now,
            title=display_name(state),
            replaced={"first_seq": earlier[0], "deleted_at": iso(now)} if earlier else None,
        )
        for attempt in CONTENTION:
            await CONTENTION.pause(attempt)
            try:
                if damaged is not None:
                    return await self._documents.replace(damaged, body)
                return await self._documents.create(key, body)
            except (Conflict, PreconditionFailed, NotFound):
                logger.info("Session %s: another writer created its document.", key.session_hash)
            damaged = await self._documents.read(key)
            if damaged is not None and not damaged.damaged:
                return damaged
        raise UnavailableError(
            f"repair_session: the document of session {key.session_id!r} is being changed by too"
            " many other writers. Calling it again is safe."
        )


def _last_begin(found: list[Record]) -> tuple[Record, int] | None:
    """The first event of the last session of this id, and where its log begins. None if no event
    of any is left."""
    events: dict[str, Record] = {}
    for record in found:
        if record.kind == EVENT:
            events.setdefault(record.incarnation, record)
    begins = [(event, of_incarnation(found, name)[0].seq) for name, event in events.items()]
    return max(begins, key=lambda each: (each[1], each[0].stamp), default=None)


def _unreadable(record: Record) -> bool:
    return fields_to_event(from_json(record.raw)).error_code == UNREADABLE
