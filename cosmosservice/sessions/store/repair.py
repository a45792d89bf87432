"""Rebuilds what can be rebuilt from the log, and says what is wrong with it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass, field

from cosmosservice.account.container import Document
from cosmosservice.account.failures import Conflict, NotFound, PreconditionFailed
from cosmosservice.data_converters import fields_to_event, from_json
from cosmosservice.errors import SessionNotFoundError
from cosmosservice.sessions.store.documents import ACTIVE, EVENT, iso, session_document
from cosmosservice.sessions.store.event_log import Record
from cosmosservice.sessions.store.keys import APP_STATE, USER_STATE, SessionKey
from cosmosservice.sessions.store.session_documents import SessionDocument
from cosmosservice.sessions.store.state_documents import newest, record_changes
from cosmosservice.sessions.store.store import SessionStore

logger = logging.getLogger("cosmosservice")

UNREADABLE = "UNREADABLE_EVENT"
_READ_ATTEMPTS = 5


@dataclass(frozen=True)
class RepairReport:
    """What a repair found."""

    session_id: str
    events: int = 0
    behind: int = 0  # records that the session document had not followed
    rebuilt: bool = False  # the session document was missing or damaged, and was made anew
    finished: bool = False  # a delete, restore or purge that had been cut short
    holes: list[int] = field(default_factory=list)  # places in the log where a document is missing
    unreadable: list[int] = field(default_factory=list)  # events that are shown as placeholders

    unmerged: list[str] = field(default_factory=list)  # keys that user: or app: has no room for

    @property
    def healthy(self) -> bool:
        return not self.holes and not self.unreadable and not self.unmerged


async def repair(
    store: SessionStore, key: SessionKey, *, accept_loss: bool = False
) -> RepairReport:
    """Looks at everything anew: nothing that this process remembers is trusted."""
    store.documents.forget(key)
    store.views.drop(key)
    document, found = await _read(store, key)
    rebuilt = False
    if document is None or document.damaged:
        document = await _rebuild(store, key, document, found)
        rebuilt = True
    finished = await store.lifecycle.complete(document)
    mine = [
        record
        for record in found
        if record.incarnation == document.incarnation and record.seq >= document.first_seq
    ]
    rest = await store.projector.merge(
        key,
        newest((document.pending_changes(USER_STATE), record_changes(mine, USER_STATE))),
        newest((document.pending_changes(APP_STATE), record_changes(mine, APP_STATE))),
    )
    places = {record.seq for record in mine}
    last = max(places, default=document.first_seq - 1)
    if last < document.revision and document.status == ACTIVE:
        # The end of the log is lost, as after a forced failover: go on from what is there.
        with contextlib.suppress(PreconditionFailed, NotFound):
            await store.documents.replace(
                document, document.with_status(document.status) | {"revision": last}
            )
    await store.projector.project(key, document.incarnation, accept_loss=accept_loss)
    return RepairReport(
        session_id=key.session_id,
        events=sum(record.is_event for record in mine),
        behind=sum(record.seq > document.revision for record in mine),
        rebuilt=rebuilt,
        finished=finished,
        holes=[
            seq
            for seq in range(document.first_seq, max(last, document.revision) + 1)
            if seq not in places
        ],
        unmerged=sorted(scope + name for scope, changes in rest.items() for name in changes),
        unreadable=[record.seq for record in mine if record.is_event and _unreadable(record)],
    )


async def _read(
    store: SessionStore, key: SessionKey
) -> tuple[SessionDocument | None, list[Record]]:
    """The document, then the log: what the document follows was there before it. A log that does
    not reach it may be a stale read, or have grown with the document: both are read again."""
    for attempt in range(_READ_ATTEMPTS):
        await asyncio.sleep(0.01 * 2**attempt if attempt else 0)
        document = await store.documents.read(key)
        found = await store.log.later(key, 0)
        last = found[-1].seq if found else 0
        if document is None or last >= document.revision:
            break
    return document, found


async def _rebuild(
    store: SessionStore, key: SessionKey, damaged: SessionDocument | None, found: list[Record]
) -> SessionDocument:
    live = [record for record in found if record.kind == EVENT]
    if not live:
        raise SessionNotFoundError(
            f"repair_session: there is no session {key.session_id!r}, and no events to rebuild"
            " one from."
        )
    incarnation = live[-1].incarnation
    first = min(record.seq for record in found if record.incarnation == incarnation)
    now = time.time()
    earlier = [record.seq for record in live if record.seq < first]
    body: Document = session_document(
        key,
        incarnation=incarnation,
        first_seq=first,
        state={},
        now=now,
        replaced={"first_seq": earlier[0], "deleted_at": iso(now)} if earlier else None,
    )
    if damaged is not None:
        body["state"] = damaged.state  # what the log does not say: the state it was created with
        await store.documents.replace(damaged, body)
    else:
        try:
            await store.documents.create(key, body)
        except Conflict:
            logger.info("Session %r: somebody else made its document.", key.session_id)
    document = await store.documents.read(key)
    assert document is not None
    return document


def _unreadable(record: Record) -> bool:
    return fields_to_event(from_json(record.raw)).error_code == UNREADABLE
