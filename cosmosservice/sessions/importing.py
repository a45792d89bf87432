"""Copies sessions of another service into the store, with their ids, timestamps, order and state.

The log is written as an append would write it, so that a copy is a session like any other. Two
things differ. Stamps come from the events' own times, not from now: `user:` and `app:` keys end up
with the value that was last written in the source, in whatever order sessions are copied, and
never win against what the target wrote later. And it needs no session object, so a copy
that was interrupted continues where it stopped: the target itself says how far it got.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from google.adk.events import Event, EventActions
from google.adk.sessions import Session

from cosmosservice.account.failures import Conflict
from cosmosservice.data_converters import event_to_fields, to_json
from cosmosservice.data_converters.state_scopes import Scoped, split
from cosmosservice.sessions.store.documents import ACTIVE, session_document
from cosmosservice.sessions.store.keys import SessionKey, new_incarnation
from cosmosservice.sessions.store.records import Record, event_record
from cosmosservice.sessions.store.session_documents import SessionDocument, fold
from cosmosservice.sessions.store.state import State
from cosmosservice.sessions.store.state_documents import stamped
from cosmosservice.sessions.store.store import SessionStore
from cosmosservice.sessions.store.titles import display_name

IMPORT = "cosmosservice-import"


class ImportOutcome(StrEnum):
    """What became of one session. DIFFERENT: the store has another one with its id."""

    COPIED = "copied"
    RESUMED = "resumed"
    PRESENT = "already there"
    DIFFERENT = "different"


class Importer:
    """Copies sessions into one store, on the event loop of that store."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store

    async def copy(self, session: Session) -> ImportOutcome:
        """DIFFERENT: the target has another session with this id, which is left unchanged."""
        key = SessionKey.of(session.app_name, session.user_id, session.id)
        state = split(session.state)
        wanted = log_of(session, state)
        created = await self._create(key, session, wanted, state)
        document = await self._store.documents.read(key)
        if document is None or document.status != ACTIVE:
            return ImportOutcome.DIFFERENT
        present = await self._present(key, document)
        if not _is_beginning(present, wanted):
            return ImportOutcome.DIFFERENT
        missing = wanted[len(present) :]
        try:
            stamp = await self._append(key, document, present, missing)
        except Conflict:  # another process is writing to the session
            return ImportOutcome.DIFFERENT
        await self._store.projection.project(key, document.incarnation)
        await self._share(key, state, shared_stamp(stamp, session, self._store.clock.now()))
        if created:
            return ImportOutcome.COPIED
        return ImportOutcome.RESUMED if missing else ImportOutcome.PRESENT

    async def _create(
        self, key: SessionKey, session: Session, wanted: list[Record], state: Scoped
    ) -> bool:
        if await self._store.documents.read(key) is not None:
            return False
        folded = fold(State(), wanted).inline
        incarnation = new_incarnation()
        # State that no event sets must have been there from the beginning.
        first = State({name: v for name, v in state.session.items() if name not in folded})
        stored = await self._store.values.stored(key, incarnation, first)
        body = session_document(
            key,
            incarnation=incarnation,
            first_seq=1,
            state=stored,
            title=display_name(stored),
            now=_finite(wanted[0].timestamp if wanted else session.last_update_time),
        )
        try:
            await self._store.documents.create(key, body)
        except Conflict:
            self._store.documents.forget(key)
            return False
        return True

    async def _present(self, key: SessionKey, document: SessionDocument) -> list[Record]:
        await self._store.reader.confirm(key)
        return await self._store.log.read(key, document.incarnation, after=document.first_seq - 1)

    async def _append(
        self,
        key: SessionKey,
        document: SessionDocument,
        present: list[Record],
        missing: list[Record],
    ) -> int:
        """Returns the last stamp of the log."""
        stamp = present[-1].stamp if present else 0
        if missing and not present:
            missing[0].initial = await self._store.values.whole(key, document.state)
        for seq, record in enumerate(missing, document.first_seq + len(present)):
            stamp = max(stamp + 1, _microseconds(record.timestamp, self._store.clock.now()))
            record.seq, record.incarnation, record.stamp = seq, document.incarnation, stamp
            await self._store.log.append(key, record)
        return stamp

    async def _share(self, key: SessionKey, state: Scoped, stamp: int) -> None:
        """Stores the user and app state of the source that no event sets."""
        for target, wanted in zip(key.shared, state.shared, strict=True):
            there = await self._store.states.whole(await self._store.states.read(target), {})
            new = {n: v for n, v in wanted.items() if n not in there or there[n] != v}
            await self._store.states.merge(target, stamped(new, (stamp, IMPORT)))


def log_of(session: Session, state: Scoped) -> list[Record]:
    """The session's events, and one more if they do not add up to its state.

    Some services fold differently: a None deletes the key, or a dict is merged into a dict.
    """
    records = [_record(event) for event in session.events]
    folded = fold(State(), records).inline
    wrong = [name for name, value in folded.items() if state.session.get(name) != value]
    if wrong:
        delta: dict[str, Any] = {name: session.state.get(name) for name in wrong}
        correction = Event(
            id=f"{IMPORT}-{session.id}",
            author=IMPORT,
            timestamp=session.last_update_time,
            actions=EventActions(state_delta=delta),
        )
        records.append(_record(correction))
    return records


def shared_stamp(last: int, session: Session, now: float) -> int:
    """The stamp for the session's user and app state: later than every stamp in its log."""
    return max(last, _microseconds(session.last_update_time, now)) + 1


def _record(event: Event) -> Record:
    fields = event_to_fields(event)
    return event_record(fields, to_json(fields))


def _is_beginning(present: Iterable[Record], wanted: list[Record]) -> bool:
    ids = [record.event_id for record in present]
    return ids == [record.event_id for record in wanted[: len(ids)]]


def _microseconds(timestamp: float, now: float) -> int:
    """The stamp of that time, but never one in the future."""
    return int(min(timestamp, now) * 1_000_000) if math.isfinite(timestamp) else 0


def _finite(timestamp: float) -> float:
    return timestamp if math.isfinite(timestamp) and timestamp >= 0 else 0.0
