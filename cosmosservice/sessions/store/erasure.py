"""Erasing: records become stubs; chunks, origins and large values are removed.

A stub keeps the place of a record and nothing of its content. Removing a record would free its id
for an old session object. Stubs expire, later than any session object lives.

The documents to erase are found by partition and tenant, not through the session document. Every
erasure may be interrupted at any point and called again.
"""

from __future__ import annotations

from collections.abc import Callable

from cosmosservice.account.charges import current_operation
from cosmosservice.account.container import Document
from cosmosservice.account.failures import NotFound, PreconditionFailed
from cosmosservice.account.retries import CONTENTION
from cosmosservice.errors import UnavailableError
from cosmosservice.hosting.concurrency import together
from cosmosservice.sessions.store.clock import HybridClock
from cosmosservice.sessions.store.documents import (
    CHUNK,
    DAY,
    LOST,
    ORIGIN,
    PURGED,
    PURGED_TTL,
    PURGING,
    RESTORED,
    STUB,
    TOMBSTONE,
    iso,
    stub_document,
)
from cosmosservice.sessions.store.erased import Erased
from cosmosservice.sessions.store.event_log import EventLog
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.large_values import LargeValues
from cosmosservice.sessions.store.log_view import LogViews
from cosmosservice.sessions.store.queries import ERASABLE
from cosmosservice.sessions.store.session_documents import SessionDocument, SessionDocuments

_AT_ONCE = 8
_WITHOUT_CONTENT = (STUB, TOMBSTONE, RESTORED, LOST)


class Erasure:
    """Lives on one event loop."""

    def __init__(
        self,
        documents: SessionDocuments,
        values: LargeValues,
        log: EventLog,
        views: LogViews,
        clock: HybridClock,
    ) -> None:
        self._documents = documents
        self._values = values
        self._container = log.container
        self._log = log
        self._views = views
        self._clock = clock

    async def complete(self, document: SessionDocument) -> tuple[Erased, bool]:
        """Completes a purge that the document announces. The session is marked as purged only
        after a read that is newer than the announcement found no content. Also returns whether
        this call marked it."""
        key = document.key
        own, revision = document.incarnation, document.revision
        erased = await self._erase(
            key, lambda body: _incarnation(body) == own or 0 < _place(body) <= revision
        )
        now = self._clock.now()
        dead = {own} | {name for name, place in erased.incarnations.items() if place <= revision}
        erased.documents += await self._values.erase(key, dead.__contains__, before=now - DAY)
        erased.stamp = max(erased.stamp, document.initial_stamp)
        personal = ("replaced", "initial", "pending", "large", "title", "load")
        body = document.without("expires_at", *personal) | {
            "status": PURGED,
            "updated_at": iso(now),
            "state": {},
            "ttl": PURGED_TTL,
        }
        self._views.drop(key)
        try:
            await self._documents.replace(document, body)
        except (PreconditionFailed, NotFound):
            return erased, False
        return erased, True

    async def sweep(self, key: SessionKey) -> Erased:
        """Erases everything in the log that belongs to no session: left by one whose document has
        expired or was removed, or by an upload that was under way during a purge.

        No announcement is needed. The session document is read after the records. Records of any
        other incarnation belong to nobody, because a session's document is older than its records.
        """
        await self._documents.probe(key)
        erased = await self._erase(key, lambda _: False)
        current = await self._documents.read(key)
        if current is None or current.status in (PURGING, PURGED):
            # Not younger ones: their session may be about to be created.
            before = self._clock.now() - DAY
            erased.documents += await self._values.erase(key, lambda _: False, before=before)
        return erased

    async def of_predecessors(self, document: SessionDocument) -> Erased | None:
        """Erases what the session replaced when it was created again: every record before its own
        first. Nothing can restore those, so no announcement is needed. The document's `replaced`
        field is removed last. None if another writer changed the document: read it again."""
        own, first = document.incarnation, document.first_seq
        erased = await self._erase(
            document.key,
            lambda body: _incarnation(body) != own and 0 < _place(body) < first,
            unowned=False,
        )
        dead = {n for n, place in erased.incarnations.items() if n != own and place < first}
        erased.documents += await self._values.erase(document.key, dead.__contains__)
        try:
            await self._documents.replace(document, document.without("replaced"))
        except (PreconditionFailed, NotFound):
            return None
        return erased

    async def _erase(
        self, key: SessionKey, is_dead: Callable[[Document], bool], *, unowned: bool = True
    ) -> Erased:
        """Erases the dead incarnations and, with `unowned`, what belongs to no session, until a
        read finds nothing more to erase."""
        erased = Erased()
        await self._log.probe(key, 0, "probe")  # no later read is older than now
        for attempt in CONTENTION:
            await CONTENTION.pause(attempt)
            found = await self._found(key, erased)
            # Stubs name dead incarnations too: an earlier erasure may have been interrupted.
            names = {_incarnation(body) for body in found if is_dead(body)}
            dead: list[Document] = []
            rest: list[Document] = []
            for body in found:
                if _is_erased(body):
                    continue
                is_part = _is_beside_log(body) and _incarnation(body) in names
                (dead if is_part or is_dead(body) else rest).append(body)
            if rest and unowned:
                dead += await self._without_owner(key, rest)
            if not dead:
                return erased
            for start in range(0, len(dead), _AT_ONCE):
                some = dead[start : start + _AT_ONCE]
                erased.documents += sum(await together(*(self._one(key, body) for body in some)))
        raise UnavailableError(
            f"{current_operation.get()}: documents of session {key.session_id!r} are written again"
            " while they are erased. The operation is partly done; calling it again is safe, and"
            " continues from there."
        )

    async def _found(self, key: SessionKey, erased: Erased) -> list[Document]:
        """The records, chunks and origins, without their content."""
        parameters = {"first": key.first_chunk_id, "last": key.last_id}
        found = await self._container.query(ERASABLE, parameters, key.session_id)
        for body in found:
            if place := _place(body):
                erased.incarnations.setdefault(_incarnation(body), place)
            if isinstance(stamp := body.get("stamp"), int | float):
                erased.stamp = max(erased.stamp, int(stamp))
                self._clock.observe(int(stamp))
        return found

    async def _without_owner(self, key: SessionKey, rest: list[Document]) -> list[Document]:
        await self._documents.probe(key)
        current = await self._documents.read(key)
        if current is None or current.status in (PURGING, PURGED):
            return rest
        # Chunks and origins are among them, which `EventLog.read` does not return.
        return [body for body in rest if _incarnation(body) != current.incarnation]

    async def _one(self, key: SessionKey, body: Document) -> int:
        """Whether this call erased it. Another purge may be faster, and a renewal may have written
        the document again."""
        try:
            if _is_beside_log(body):
                await self._container.delete(body["id"], key.session_id)
            else:
                await self._container.replace(stub_document(body), body["_etag"])
        except (NotFound, PreconditionFailed):
            return 0
        return 1


def _is_erased(body: Document) -> bool:
    # The ttl alone does not tell: the events of a session that is kept for ten days have the same.
    return body.get("ttl") == PURGED_TTL and body.get("document_type") in _WITHOUT_CONTENT


def _is_beside_log(body: Document) -> bool:
    """A chunk or an origin: it has no place that must stay taken."""
    return body.get("document_type") in (CHUNK, ORIGIN)


def _place(body: Document) -> int:
    seq = body.get("seq")
    return int(seq) if isinstance(seq, int | float) else 0


def _incarnation(body: Document) -> str:
    return str(body.get("incarnation"))
