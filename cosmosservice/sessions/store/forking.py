"""Forks: a new session with the same history up to a point.

The new document comes first, with the status `forking`: it names its source and the point. It may
replace a purged session: its log then begins after the stubs of that one. Then the events
are copied into the new log, and the artifacts of the session, and the document becomes active, if
the source has not been erased meanwhile: then something may be missing, and the fork is purged. Any
process that finds `forking` completes the fork. A complete fork is independent of its source:
erasing one does not affect the other.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from dataclasses import replace

from cosmosservice.account.charges import current_operation
from cosmosservice.account.chunks import checksum
from cosmosservice.account.container import Document
from cosmosservice.account.dependants import Fork, Superseded
from cosmosservice.account.failures import Conflict, NotFound, PreconditionFailed
from cosmosservice.account.retries import CONTENTION, STEPS
from cosmosservice.data_converters import from_json, to_json
from cosmosservice.errors import (
    AlreadyExistsError,
    SessionNotFoundError,
    StorageError,
    UnavailableError,
)
from cosmosservice.sessions.store.documents import (
    ACTIVE,
    CLEARING,
    FORKING,
    PURGED,
    PURGING,
    session_document,
)
from cosmosservice.sessions.store.erasure import Erasure
from cosmosservice.sessions.store.expiries import Expiries
from cosmosservice.sessions.store.keys import (
    Marker,
    SessionKey,
    new_incarnation,
    record_ttl,
    retention_of,
)
from cosmosservice.sessions.store.parts import Part, Parts
from cosmosservice.sessions.store.records import Record
from cosmosservice.sessions.store.session_documents import SessionDocument, fold
from cosmosservice.sessions.store.snapshot import Past
from cosmosservice.sessions.store.state import State
from cosmosservice.sessions.store.titles import display_name, first_words

_CLOCKS = 10.0  # seconds by which the clocks of processes that save artifacts may be ahead


class _SourceErased(Exception):
    """The source of a fork was erased before everything was copied."""


class Forking(Part):
    """Copies sessions up to a revision, with their dependants."""

    def __init__(self, parts: Parts, erasure: Erasure, expiries: Expiries) -> None:
        super().__init__(parts)
        self._erasure = erasure
        self._expiries = expiries
        self._dependants = parts.dependants

    async def fork(self, past: Past, target: SessionKey) -> None:
        """Raises AlreadyExistsError if a session with that id exists, or was deleted but not yet
        purged."""
        source, records = past.snapshot.key, past.snapshot.records
        lost = [record.seq for record in records if record.lost]
        if lost:
            raise StorageError(
                f"{current_operation.get()}: the body of the event at {lost[0]} cannot be read."
                " Fork before it. Nothing was stored."
            )
        if not await self._finish(await self._begin(past, target), records):
            raise SessionNotFoundError(
                f"{current_operation.get()}: session {source.session_id!r} was erased while it was"
                " copied. Nothing of the fork is left."
            )

    async def _begin(self, past: Past, target: SessionKey) -> SessionDocument:
        """Announces the fork, as a new document or instead of a purged one."""
        source, records, now = past.snapshot.key, past.snapshot.records, self._clock.now()
        until = now + _CLOCKS if past.time == math.inf else past.time
        copies = await self._dependants.have_copies(_fork(source, target, records, until))
        named: Document = {
            "user_id": source.user_id,
            "session_id": source.session_id,
            "incarnation": past.incarnation,
            "seq": past.seq,
            "events": len(records),
        }
        if copies:
            named["copied_until"] = until
        ttl = retention_of(past.incarnation)
        noted = await self._expiries.begin(target, ttl)
        mine: set[str] = set()  # each attempt has its own incarnation
        purged: SessionDocument | None = None
        for attempt in STEPS:
            await STEPS.pause(attempt)
            incarnation = new_incarnation(ttl)
            mine.add(incarnation)
            body = session_document(
                target,
                incarnation=incarnation,
                first_seq=1 if purged is None else purged.revision + 1,
                state=await self._values.stored(
                    target, incarnation, State(past.initial), ttl=record_ttl(incarnation)
                ),
                title="",  # follows with the events
                now=now,
                replaced=None if purged is None else purged.as_predecessor(),
            )
            body |= {"status": FORKING, "source": named}
            try:
                if purged is not None or noted:
                    await self._erasure.clear(target, purged)
                if purged is None:
                    return await self._documents.create(target, body)
                return await self._documents.replace(purged, body)
            except (Conflict, PreconditionFailed, NotFound, Superseded):
                self._documents.forget(target)
            found = await self._documents.read(target)
            if found is not None and found.incarnation in mine:
                return found  # the answer to our write was lost
            await self._values.erase(target, mine.__contains__)
            if found is not None and found.status == PURGING:
                with contextlib.suppress(Superseded):  # erased, and created again
                    await self._erasure.complete(found)
            elif found is not None and found.status != PURGED:
                raise AlreadyExistsError(
                    f"{current_operation.get()}: session {target.session_id!r} already exists."
                    " Nothing was stored."
                )
            purged = found if found is not None and found.status == PURGED else None
        raise UnavailableError(
            f"{current_operation.get()}: session {target.session_id!r} is being created and erased"
            " by too many other writers. Nothing was stored."
        )

    async def complete(self, document: SessionDocument) -> bool:
        """Finishes a fork that was interrupted. False if its source is gone."""
        current = await self._documents.read_confirmed(document.key)
        if current is None or current.etag != document.etag:
            return True  # another process is completing it, or has done so
        records = await self._source_records(document)
        if records is None:
            return False
        await self._finish(document, records)
        return True

    async def _source_records(self, document: SessionDocument) -> list[Record] | None:
        """All events to copy; None if some of them are gone."""
        source = document.body.get("source")
        if not isinstance(source, dict):
            return None
        key = _source_key(document)
        incarnation, seq = str(source["incarnation"]), int(source["seq"])
        await self._log.probe(key, 0, "probe")
        found = await self._log.read(key, incarnation, before=seq + 1)
        events = [record for record in found if record.is_event and not record.lost]
        return events if len(events) == int(source["events"]) else None

    async def _finish(self, document: SessionDocument, records: list[Record]) -> bool:
        """Whether the fork is complete, whichever process completed it. False if its source is
        gone."""
        key, incarnation = document.key, document.incarnation
        current: SessionDocument | None = document
        uploads: list[Document] = []
        for attempt in CONTENTION:
            await CONTENTION.pause(attempt)
            gone = current is None or current.incarnation != incarnation
            if current is None or gone or current.status in (PURGING, PURGED):
                # Documents that were copied after the purge looked for them must go too.
                await self._erasure.sweep(key)
                await self._values.erase(key, incarnation.__eq__)
                return False
            if current.status != FORKING:
                await self._values.discard(key, current.named, uploads=uploads)
                return True
            try:
                await self._copy(current, records, uploads)
                return True
            except _SourceErased:
                await self._end(current)
            except (PreconditionFailed, NotFound):  # another process was faster
                pass
            current = await self._documents.read_confirmed(key)
        raise UnavailableError(
            f"{current_operation.get()}: the document of session {key.session_id!r} has too many"
            " writers at once. Reading the session completes the fork."
        )

    async def _copy(
        self, document: SessionDocument, records: list[Record], uploads: list[Document]
    ) -> None:
        """Raises _SourceErased; PreconditionFailed or NotFound if another process was faster."""
        key, incarnation = document.key, document.incarnation
        copies = []
        for seq, record in enumerate(records, document.first_seq):
            copy = replace(
                record,
                seq=seq,
                incarnation=incarnation,
                fields=None,
                chunks=None,
                copied=True,
                merged=True,
            )
            if seq == document.first_seq:
                copy.initial = await self._values.whole(key, document.state)
            # The same name at every attempt, unless the text of the event has changed.
            copy.upload = checksum(copy.raw + to_json(copy.initial or {}))[:16]
            try:
                await self._log.append(key, copy, record_ttl(incarnation))
            except Conflict:  # copied by an earlier attempt
                await self._discard_chunks(key, copy)
            copies.append(copy)
        if "copied_until" in document.body["source"]:
            await self._dependants.copy(_fork_of(document, records))
        if not await self._source_stands(document):
            raise _SourceErased
        wanted = fold(document.state, copies)
        state = await self._values.stored(
            key, incarnation, wanted, document.state, uploads, record_ttl(incarnation)
        )
        followed = document.followed(copies, state, self._clock.now())
        kept = {name: value for name, value in followed.items() if name != "source"}
        body = kept | {"title": display_name(state) or first_words(copies)} | _origin(document)
        self._views.drop(key)
        await self._documents.replace(document, body | {"status": ACTIVE})
        await self._values.discard(key, state, document.state, uploads)

    async def _source_stands(self, document: SessionDocument) -> bool:
        """Whether nothing of the source can have been erased until now. Erasing is announced."""
        source = _source_key(document)
        found = await self._documents.read_confirmed(source)
        if found is None or found.incarnation != document.body["source"]["incarnation"]:
            return False
        return found.status not in (CLEARING, PURGING, PURGED)

    async def _end(self, document: SessionDocument) -> None:
        """Erases the fork, unless another process was faster."""
        body = document.remains(PURGING, self._clock.now())
        with contextlib.suppress(PreconditionFailed, NotFound, Superseded):
            await self._erasure.complete(await self._documents.replace(document, body))

    async def _discard_chunks(self, key: SessionKey, copy: Record) -> None:
        """Removes the copy's chunks, unless the stored event names them."""
        if copy.chunks is None:
            return
        before = Marker(copy.incarnation, copy.seq - 1)
        there = (await self._log.read_after(key, before))[0].chunks
        if there is not None and there.get("upload") != copy.upload:
            await self._log.discard(key, copy)


def _source_key(document: SessionDocument) -> SessionKey:
    source = document.body["source"]
    return SessionKey.of(
        document.key.app_name, str(source.get("user_id")), str(source.get("session_id"))
    )


def _origin(document: SessionDocument) -> Document:
    """Where the fork comes from. Not if that is a session of another user: nothing may be left of
    a user who is erased."""
    source = document.body["source"]
    if source.get("user_id") != document.key.user_id:
        return {}
    return {"forked_from": {"session_id": source["session_id"], "seq": source["seq"]}}


def _fork_of(document: SessionDocument, records: Iterable[Record]) -> Fork:
    until = float(document.body["source"]["copied_until"])
    return _fork(_source_key(document), document.key, records, until)


def _fork(source: SessionKey, target: SessionKey, records: Iterable[Record], until: float) -> Fork:
    return Fork(
        source=source.name,
        target=target.name,
        artifacts=_artifacts_of(records),
        until=until,
    )


def _artifacts_of(records: Iterable[Record]) -> dict[str, int]:
    """The artifacts that these events name, and the last version of each."""
    found: dict[str, int] = {}
    for record in records:
        if b"artifact_delta" not in record.raw:
            continue
        actions = from_json(record.raw).get("actions")
        delta = actions.get("artifact_delta") if isinstance(actions, dict) else None
        for name, version in (delta if isinstance(delta, dict) else {}).items():
            if isinstance(version, int | float):
                found[name] = max(int(version), found.get(name, -1))
    return found
