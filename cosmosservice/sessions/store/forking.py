"""Forks: a new session with the same history up to a point.

The new document comes first, with the status `forking`: it names its source and the point. Then
the events are copied into the new log, and the document becomes active. Whoever finds `forking`
completes it; if the source is gone, the fork is purged. A complete fork is independent of its
source: erasing one does not reach into the other.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

from cosmosservice.account.charges import current_operation
from cosmosservice.account.container import Document
from cosmosservice.account.failures import Conflict, NotFound, PreconditionFailed
from cosmosservice.account.retries import CONTENTION
from cosmosservice.errors import (
    AlreadyExistsError,
    SessionNotFoundError,
    StorageError,
    UnavailableError,
)
from cosmosservice.sessions.store.clock import HybridClock
from cosmosservice.sessions.store.documents import (
    ACTIVE,
    FORKING,
    PURGED,
    PURGING,
    session_document,
)
from cosmosservice.sessions.store.erasure import Erasure
from cosmosservice.sessions.store.event_log import EventLog
from cosmosservice.sessions.store.keys import SessionKey, new_incarnation, record_ttl, retention_of
from cosmosservice.sessions.store.large_values import LargeValues
from cosmosservice.sessions.store.log_view import LogViews
from cosmosservice.sessions.store.records import Record
from cosmosservice.sessions.store.session_documents import SessionDocument, SessionDocuments, fold
from cosmosservice.sessions.store.snapshot import Past
from cosmosservice.sessions.store.state import State
from cosmosservice.sessions.store.titles import display_name, first_words


class Forking:
    """Lives on one event loop."""

    def __init__(
        self,
        documents: SessionDocuments,
        values: LargeValues,
        log: EventLog,
        views: LogViews,
        erasure: Erasure,
        clock: HybridClock,
    ) -> None:
        self._documents = documents
        self._values = values
        self._log = log
        self._views = views
        self._erasure = erasure
        self._clock = clock

    async def fork(self, past: Past, target: SessionKey) -> None:
        """Raises AlreadyExistsError if there is a session of that id, or was until it is purged."""
        source, source_incarnation = past.snapshot.key, past.incarnation
        records = past.snapshot.records
        lost = [record.seq for record in records if record.lost]
        if lost:
            raise StorageError(
                f"{current_operation.get()}: the body of the event at {lost[0]} cannot be read."
                " Fork before it. Nothing was stored."
            )
        incarnation = new_incarnation(retention_of(source_incarnation))
        now = self._clock.now()
        body = session_document(
            target,
            incarnation=incarnation,
            first_seq=1,
            state=await self._values.stored(
                target, incarnation, State(past.initial), ttl=record_ttl(incarnation)
            ),
            now=now,
        )
        body |= {
            "status": FORKING,
            "source": {
                "user_id": source.user_id,
                "session_id": source.session_id,
                "incarnation": source_incarnation,
                "place": past.place,
                "events": len(records),
            },
        }
        try:
            document = await self._documents.create(target, body)
        except Conflict:
            found = await self._documents.read(target)
            if found is None or found.incarnation != incarnation:
                await self._values.erase(target, incarnation.__eq__)
                raise AlreadyExistsError(
                    f"{current_operation.get()}: session {target.session_id!r} already exists."
                    " Nothing was stored."
                ) from None
            document = found  # the answer to our write was lost
        if not await self._finish(document, records):
            raise SessionNotFoundError(
                f"{current_operation.get()}: session {source.session_id!r} was erased while it was"
                " copied. Nothing of the fork is left."
            )

    async def complete(self, document: SessionDocument) -> bool:
        """Finishes a fork that was interrupted. False if its source is gone."""
        source = document.body.get("source")
        if not isinstance(source, dict):
            return False
        key = SessionKey.of(
            document.key.app_name, str(source.get("user_id")), str(source.get("session_id"))
        )
        records = await self._source_records(key, source)
        if records is None:
            return False
        await self._finish(document, records)
        return True

    async def _source_records(self, key: SessionKey, source: Document) -> list[Record] | None:
        """The events to copy, as many as there were; None if some are gone."""
        incarnation, place = str(source["incarnation"]), int(source["place"])
        await self._log.probe(key, 0, "probe")
        found = await self._log.read(key, incarnation, before=place + 1)
        events = [record for record in found if record.is_event and not record.lost]
        return events if len(events) == int(source["events"]) else None

    async def _finish(self, document: SessionDocument, records: list[Record]) -> bool:
        """Whether the fork is complete, by whomever. False if it was ended: its source is gone."""
        key, incarnation = document.key, document.incarnation
        current: SessionDocument | None = document
        for attempt in CONTENTION:
            await CONTENTION.pause(attempt)
            gone = current is None or current.incarnation != incarnation
            if current is None or gone or current.status in (PURGING, PURGED):
                # What was copied after the purge has looked for it must go too.
                await self._erasure.sweep(key)
                await self._values.erase(key, incarnation.__eq__)
                return False
            if current.status != FORKING:
                return True
            try:
                await self._copy(current, records)
                return True
            except (PreconditionFailed, NotFound):  # somebody else was faster
                await self._documents.probe(key)
                current = await self._documents.read(key)
        raise UnavailableError(
            f"{current_operation.get()}: the document of session {key.session_id!r} has too many"
            " writers at once. Reading the session completes the fork."
        )

    async def _copy(self, document: SessionDocument, records: list[Record]) -> None:
        """Raises PreconditionFailed or NotFound if somebody else was faster."""
        key, incarnation = document.key, document.incarnation
        copies = []
        for seq, record in enumerate(records, 1):
            copy = replace(
                record,
                seq=seq,
                incarnation=incarnation,
                fields=None,
                chunks=None,
                copied=True,
                settled=True,
            )
            if seq == 1:
                copy.initial = await self._values.whole(key, document.state)
            if record.chunks is not None:
                copy.upload = str(record.chunks["upload"])  # the same at every attempt
            with contextlib.suppress(Conflict):  # copied by an earlier attempt
                await self._log.append(key, copy, record_ttl(incarnation))
            copies.append(copy)
        uploads: list[Document] = []
        wanted = fold(document.state, copies)
        state = await self._values.stored(
            key, incarnation, wanted, document.state, uploads, record_ttl(incarnation)
        )
        followed = document.followed(copies, state, self._clock.now())
        body = {name: value for name, value in followed.items() if name != "source"}
        body["title"] = display_name(state) or first_words(copies)
        self._views.drop(key)
        await self._documents.replace(document, body | {"status": ACTIVE})
        await self._values.discard(key, state, document.state, uploads)
