"""Erasing: events become stubs, chunks go.

A stub keeps the place of an event and nothing of its content. Removing an event would free its id
for an old session object. Stubs expire, later than any session object lives.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Set

from cosmosservice.account.container import Document
from cosmosservice.account.failures import NotFound, PreconditionFailed
from cosmosservice.hosting.concurrency import together
from cosmosservice.sessions.store.bodies import IDS
from cosmosservice.sessions.store.documents import PURGED, PURGED_TTL, RESTORED, STUB, TOMBSTONE
from cosmosservice.sessions.store.event_log import EventLog
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.log_view import LogViews
from cosmosservice.sessions.store.session_documents import SessionDocument, SessionDocuments

logger = logging.getLogger("cosmosservice")

_AT_ONCE = 8
_WHOLE_ATTEMPTS = 5
# What a stub keeps, and what tells whether the document is one: never the content.
DEAD = (
    "SELECT c.id, c._etag, c.document_type, c.session_id, c.user_id, c.app_name, c.incarnation,"
    " c.seq, c.event_id, c.schema_version, c.ttl"
    " FROM c WHERE c.id >= @first AND c.id < @last ORDER BY c.id"
)


class Erasure:
    """Both ways may be cut short at any point and called again. Lives on one event loop."""

    def __init__(self, documents: SessionDocuments, log: EventLog, views: LogViews) -> None:
        self._documents = documents
        self._container = log.container
        self._views = views

    async def complete(self, document: SessionDocument) -> int:
        """A purge that the document announces. Every record up to its revision is dead, whichever
        incarnation it is of. Says how many documents were erased."""
        key, own = document.key, document.incarnation
        places = range(document.first_seq, document.revision + 1)
        dead, whole = await self._dead(
            key, document.revision, {key.event_id(seq, own) for seq in places}
        )
        if not whole:
            logger.warning(
                "Session %r: its log has holes; what is there is purged.", key.session_id
            )
        erased = await self._erase(key, dead, {own})
        body = document.with_status(PURGED) | {"state": {}, "ttl": PURGED_TTL}
        for name in ("replaced", "unmerged", "pending"):
            body.pop(name, None)
        with contextlib.suppress(PreconditionFailed, NotFound):
            await self._documents.replace(document, body)
        self._views.drop(key)
        return erased

    async def of_predecessors(self, document: SessionDocument) -> int | None:
        """What the session replaced when it was created anew: every record before its own first.
        Nothing brings those back, so that no announcement is needed. The document's mark goes
        last; None if somebody changed the document meanwhile, so that it must be read again."""
        key, own = document.key, document.incarnation
        # Those of a predecessor with a ttl may have expired: a gap is nothing to tell of.
        last = document.first_seq - 1
        dead, _ = await self._dead(key, last, count=last - document.replaced_from + 1)
        erased = await self._erase(key, [each for each in dead if each.get("incarnation") != own])
        try:
            await self._documents.replace(document, document.without("replaced"))
        except (PreconditionFailed, NotFound):
            return None
        return erased

    async def _dead(
        self, key: SessionKey, last: int, ids: Set[str] = frozenset(), count: int = 0
    ) -> tuple[list[Document], bool]:
        """The records up to `last`, and whether those that must be there are. A read may be older
        than what the document says: then it is repeated."""
        parameters = {"first": key.first_id(0), "last": key.first_id(last + 1)}
        for attempt in range(_WHOLE_ATTEMPTS):
            found = await self._container.query(DEAD, parameters, key.session_id)
            if len(found) >= count and ids <= {body["id"] for body in found}:
                return found, True
            await asyncio.sleep(0.02 * 2**attempt)
        return found, False

    async def _erase(
        self, key: SessionKey, dead: list[Document], incarnations: set[str] | None = None
    ) -> int:
        chunks: list[str] = []
        for incarnation in {str(body.get("incarnation")) for body in dead} | (
            incarnations or set()
        ):
            parameters = dict(zip(("first", "last"), key.chunk_range(incarnation), strict=True))
            chunks += await self._container.query(  # type: ignore[arg-type]
                IDS, parameters, key.session_id
            )

        async def remove(chunk_id: str) -> None:
            with contextlib.suppress(NotFound):
                await self._container.delete(chunk_id, key.session_id)

        async def stub(body: Document) -> None:
            # Another purger may be faster.
            with contextlib.suppress(NotFound, PreconditionFailed):
                await self._container.replace(_stub(body), body["_etag"])

        todo = [body for body in dead if body.get("ttl") != PURGED_TTL]
        for start in range(0, len(chunks), _AT_ONCE):
            await together(*map(remove, chunks[start : start + _AT_ONCE]))
        for start in range(0, len(todo), _AT_ONCE):
            await together(*map(stub, todo[start : start + _AT_ONCE]))
        return len(chunks) + len(todo)


def _stub(body: Document) -> Document:
    kept = ("id", "session_id", "user_id", "app_name", "incarnation", "seq", "schema_version")
    kind = body.get("document_type")
    return {name: body[name] for name in kept if name in body} | {
        "document_type": kind if kind in (TOMBSTONE, RESTORED) else STUB,
        "event_id": body.get("event_id", ""),
        "stamp": 0,
        "ttl": PURGED_TTL,
    }
