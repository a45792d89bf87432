"""Projection: brings a session document up to date with its log.

The log is the truth, so nothing is lost if this does not run: the next reader does it.
"""

from __future__ import annotations

import logging

from cosmosservice.account import telemetry
from cosmosservice.account.charges import current_operation
from cosmosservice.account.container import Document
from cosmosservice.account.failures import NotFound, PreconditionFailed
from cosmosservice.account.retries import CONTENTION
from cosmosservice.hosting.concurrency import Locks, acquire_in_time
from cosmosservice.hosting.deadline import remaining
from cosmosservice.sessions.store.compaction import Loading, advanced
from cosmosservice.sessions.store.documents import ACTIVE
from cosmosservice.sessions.store.event_log import Plan
from cosmosservice.sessions.store.keys import SessionKey, record_ttl
from cosmosservice.sessions.store.parts import Part, Parts
from cosmosservice.sessions.store.records import Record, is_deleted
from cosmosservice.sessions.store.retention import (
    expired,
    must_renew,
    must_renew_records,
    renew_records,
)
from cosmosservice.sessions.store.session_documents import SessionDocument, fold
from cosmosservice.sessions.store.state import NO_STATE, State
from cosmosservice.sessions.store.state_documents import newest, record_changes
from cosmosservice.sessions.store.titles import BEGINNING, display_name, first_words

logger = logging.getLogger("cosmosservice")


class Projection(Part):
    """The only code that projects the log into session documents."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._locks = Locks()

    async def project(
        self, key: SessionKey, incarnation: str, *, appended: int = 0, accept_loss: bool = False
    ) -> bool:
        """Projects the log into the document up to its end, as far as it is known or can be read.

        It stops before an event whose body cannot be read, unless `accept_loss` is set: the
        changes of that event would be missing from the state for good. `appended` is the number of
        an event that this process stored, if any. Returns whether the document was written.
        """
        uploads: list[Document] = []
        lock = self._locks.of(key)
        await acquire_in_time(
            lock,
            remaining(),
            f"{current_operation.get()}: this process is still writing the document of session"
            f" {key.session_id!r}, and there was no answer in time. What the log has is stored;"
            " call it again.",
        )
        try:
            written = await self._project(key, incarnation, appended, accept_loss, uploads)
            if uploads and not written:
                await self._discard(key, incarnation, uploads)
            return written
        finally:
            lock.release()

    async def _project(
        self,
        key: SessionKey,
        incarnation: str,
        appended: int,
        accept_loss: bool,
        uploads: list[Document],
    ) -> bool:
        for attempt in CONTENTION:
            await CONTENTION.pause(attempt)
            current = await self._current(key, incarnation)
            if current is None:
                await self._report_unseen(key, incarnation, appended)
                return False
            found = await self._new_records(key, current)
            records = _readable(key, found, accept_loss)
            loading = self._loading(current, records)
            due = current.initial or self._renewal_due(current) or loading != current.loading
            if not records and not due:
                return False
            try:
                await self._merge_shared(key, current, found)
                await self._write(current, records, loading, uploads)
            except (PreconditionFailed, NotFound):
                self._documents.forget(key)
                continue
            telemetry.repaired(sum(not record.appended_here for record in records))
            return True
        logger.warning("Session %s: its document has too many writers at once.", key.session_hash)
        return False

    async def _discard(self, key: SessionKey, incarnation: str, uploads: list[Document]) -> None:
        """Removes the large values that failed attempts have stored, except those that the
        document names: the response to one of the attempts may have been lost."""
        newest_one = await self._documents.read_confirmed(key)
        mine = newest_one is not None and newest_one.incarnation == incarnation
        kept = newest_one.named if newest_one is not None and mine else NO_STATE
        await self._values.discard(key, kept, uploads=uploads)

    async def _current(self, key: SessionKey, incarnation: str) -> SessionDocument | None:
        """The document, if it still belongs to a living session of this incarnation."""
        known = self._documents.known(key)
        if known is None or not self._is_alive(known, incarnation):
            known = await self._documents.read(key)
        return known if known is not None and self._is_alive(known, incarnation) else None

    def _is_alive(self, document: SessionDocument, incarnation: str) -> bool:
        return (
            document.incarnation == incarnation
            and document.status == ACTIVE
            and not expired(document.body, self._clock.now())
        )

    def _renewal_due(self, current: SessionDocument) -> bool:
        return must_renew(current.body, self._clock.now())

    async def _new_records(self, key: SessionKey, current: SessionDocument) -> list[Record]:
        """The records after the revision, without a gap."""
        view = self._views.of(key)
        if view is not None and view.incarnation == current.incarnation:
            known = view.after(current.revision)
            if known:
                return known
        plan = Plan(current.revision + 1, current.revision)
        found, _ = await self._log.read_whole(key, current.incarnation, plan)
        return found

    async def _merge_shared(
        self, key: SessionKey, current: SessionDocument, records: list[Record]
    ) -> None:
        """Merges the user and app state of the creation, of events that other processes appended,
        and of those that this process could not merge. Once the revision is past them, nobody
        would read them again."""
        open_ones = [record for record in records if record.deltas.has_shared and not record.merged]
        initial = await self._documents.initial_changes(current)
        changes = initial.map(newest, record_changes(open_ones))
        await self._states.merge_shared(key, changes)
        for record in open_ones:
            record.merged = True

    def _loading(self, current: SessionDocument, records: list[Record]) -> Loading:
        """Which records of the session to load after these records."""
        loading, view = current.loading, self._views.of(current.key)
        if (
            view is None
            or view.incarnation != current.incarnation
            or view.last_loading_change <= loading.at
        ):
            return loading
        named = view.after(loading.begin - 1)
        if named is None:
            return loading  # a reader that has all of them corrects this
        revision = records[-1].seq if records else current.revision
        named = [record for record in named if record.seq <= revision]
        return advanced(loading, named, current.first_seq)

    async def _write(
        self,
        current: SessionDocument,
        records: list[Record],
        loading: Loading,
        uploads: list[Document],
    ) -> None:
        key, incarnation = current.key, current.incarnation
        fields: Document = {}
        if loading != current.loading:
            fields["load"] = loading.fields
        if must_renew_records(current.body, self._clock.now()):
            await self._log.probe(key, 0, "probe")  # all records, or some would expire
            parts = self._parts
            await renew_records(parts.events, parts.sessions, key, incarnation, self._clock.now())
            fields["events_renewed_at"] = self._clock.now()
        wanted = fold(current.state, records)
        state = await self._values.stored(
            key, incarnation, wanted, current.state, uploads, record_ttl(incarnation)
        )
        fields["title"] = await self._title(current, records, state)
        body = current.followed(records, state, self._clock.now()) | fields
        await self._documents.replace(current, body)
        await self._values.discard(key, state, current.named, uploads)

    async def _title(self, current: SessionDocument, records: list[Record], state: State) -> str:
        """The title after these records."""
        name = display_name(state)
        if name or not display_name(current.state):
            return name or current.title or first_words(records)
        # The name was removed: the log has the first words.
        key, view = current.key, self._views.of(current.key)
        if view is not None and view.incarnation == current.incarnation and view.whole:
            return first_words(view.records)
        begin, end = current.first_seq, current.first_seq + BEGINNING
        plan = Plan(begin, min(end - 1, current.revision), before=end)
        found, _ = await self._log.read_whole(key, current.incarnation, plan)
        return first_words(found) or first_words(records)

    async def _report_unseen(self, key: SessionKey, incarnation: str, appended: int) -> None:
        """Warns about an append to a session that has expired: the log alone decides an append,
        and does not know of the expiry. A session that was deleted and created again is not such a
        case, because it begins after the appended event."""
        if not appended:
            return
        found = await self._documents.read(key)
        recreated = found is not None and found.incarnation != incarnation
        gone = found is None or expired(found.body, self._clock.now())
        if gone or (recreated and found is not None and found.first_seq <= appended):
            logger.warning(
                "Session %s: its last event is not visible to anybody: its document has expired or"
                " was removed. A session object must not be used for longer than the ttl.",
                key.session_hash,
            )


def _readable(key: SessionKey, records: list[Record], accept_loss: bool) -> list[Record]:
    """The records that may be projected. A tombstone always is: a deleted session shows no state,
    and its delete must be completed."""
    lost = next((number for number, record in enumerate(records) if record.lost), None)
    if lost is None:
        return records
    if accept_loss or is_deleted(records):
        logger.error(
            "Session %s: its document continues after event %d, whose body cannot be read. What"
            " that event changed is not in its state.",
            key.session_hash,
            records[lost].seq,
        )
        return records
    logger.error(
        "Session %s: its document stays before event %d, whose body cannot be read. If that is"
        " lost for good, `cosmosservice sessions repair --accept-loss` continues without it.",
        key.session_hash,
        records[lost].seq,
    )
    return records[:lost]
