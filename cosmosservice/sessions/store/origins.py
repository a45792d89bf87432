"""The origin of a session: the state that it was created with, stored beside its log.

A session's first event keeps that state too. So an origin is needed only while there is no event,
and is written only if the session stays without one for a moment. It is not a record: it takes no
place in the log, and no read of the log returns it. Erasure removes it like a chunk.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
from dataclasses import dataclass
from typing import Any

from cosmosservice.account.container import Container, Document
from cosmosservice.account.failures import Conflict, NotFound
from cosmosservice.data_converters import to_json, wire_size
from cosmosservice.sessions.store.bodies import Body, LargeBodies
from cosmosservice.sessions.store.documents import (
    ACTIVE,
    ENVELOPE_BYTES,
    ITEM_LIMIT,
    ORIGIN,
    PURGED,
    PURGING,
    origin_document,
)
from cosmosservice.sessions.store.event_log import EventLog
from cosmosservice.sessions.store.keys import SessionKey, record_ttl
from cosmosservice.sessions.store.large_values import LargeValues
from cosmosservice.sessions.store.queries import ORIGINS
from cosmosservice.sessions.store.records import missing_places, number
from cosmosservice.sessions.store.session_documents import SessionDocument, SessionDocuments

logger = logging.getLogger("cosmosservice")


@dataclass(frozen=True)
class Origin:
    """How a session began."""

    incarnation: str
    first_seq: int
    state: Document
    time: float


class Origins:
    """Lives on one event loop."""

    def __init__(
        self,
        container: Container,
        documents: SessionDocuments,
        values: LargeValues,
        log: EventLog,
    ) -> None:
        self._container = container
        self._documents = documents
        self._values = values
        self._log = log
        self._bodies = LargeBodies(container)

    async def keep(self, key: SessionKey, incarnation: str) -> None:
        """Stores the origin of a session that has no events. Does nothing if it has some."""
        document = self._documents.known(key) or await self._documents.read(key)
        if document is None or not _is_alive(document, incarnation):
            return
        if not await self._is_without_events(document):
            return
        try:
            state = await self._values.whole(key, document.state)
        except NotFound:  # a large value was replaced: there are events by now
            return
        await self._store(document, state)
        # The session may have been purged meanwhile, by a process that did not find the origin.
        await self._documents.probe(key)
        current = await self._documents.read(key)
        if current is not None and _is_erased(current, incarnation):
            await self._remove(key, incarnation)

    async def _is_without_events(self, document: SessionDocument) -> bool:
        """Whether the state in the document is the one that the session was created with."""
        begin, revision = document.first_seq, document.revision
        if revision < begin:
            return True
        # It has been deleted and restored, or has events. The log may be older than the document.
        found = await self._log.read(document.key, document.incarnation, after=begin - 1)
        if missing_places(found, begin, revision):
            return False
        return not any(record.is_event for record in found)

    async def _store(self, document: SessionDocument, state: Document) -> None:
        key, incarnation = document.key, document.incarnation
        ttl = record_ttl(incarnation)
        fields: Document = {"initial_state": state}
        raw, chunks = to_json(fields), None
        if wire_size(raw) > ITEM_LIMIT - ENVELOPE_BYTES:
            # Chunks are stored first, as those of a large event are.
            chunks = await self._bodies.upload(
                key, incarnation, ORIGIN, raw, ttl, upload=secrets.token_hex(8)
            )
            fields = {"chunks": chunks}
        body = origin_document(
            key,
            incarnation=incarnation,
            first_seq=document.first_seq,
            time=document.last_update_time,
            fields=fields,
        )
        if ttl is not None:
            body["ttl"] = ttl
        try:
            await self._container.add(body)
        except Conflict:  # another process stored it, or the response was lost
            if chunks is not None and chunks != await self._chunks_of(key, incarnation):
                await self._bodies.discard(key, incarnation, chunks)

    async def _chunks_of(self, key: SessionKey, incarnation: str) -> Document | None:
        """Where a stored origin keeps its state, if that is large."""
        try:
            found: Any = await self._container.read(key.origin_id(incarnation), key.session_id)
        except NotFound:
            return None
        chunks = found.get("chunks")
        return chunks if isinstance(chunks, dict) else None

    async def _remove(self, key: SessionKey, incarnation: str) -> None:
        chunks = await self._chunks_of(key, incarnation)
        if chunks is not None:
            await self._bodies.discard(key, incarnation, chunks)
        with contextlib.suppress(NotFound):
            await self._container.delete(key.origin_id(incarnation), key.session_id)

    async def read(self, key: SessionKey) -> list[Origin]:
        """All that are stored under this session id, of every incarnation."""
        found = await self._container.query(ORIGINS, _range(key), key.session_id)
        origins = [await self._origin(key, document) for document in found]
        return [each for each in origins if each is not None]

    async def uploads(self, key: SessionKey) -> set[str]:
        """The uploads that origins name."""
        found = await self._container.query(ORIGINS, _range(key), key.session_id)
        named = (document.get("chunks") for document in found)
        return {str(each.get("upload")) for each in named if isinstance(each, dict)}

    async def _origin(self, key: SessionKey, document: Document) -> Origin | None:
        incarnation, fields = str(document.get("incarnation")), document
        if "chunks" in document:
            (body,) = await self._bodies.read(key, [Body(incarnation, document["chunks"])])
            fields = {} if isinstance(body, Exception) else body
        state, first = fields.get("initial_state"), document.get("first_seq")
        if not isinstance(state, dict) or not isinstance(first, int) or first < 1:
            logger.error("Session %s: its origin cannot be read.", key.tenant)
            return None
        return Origin(incarnation, first, state, number(document.get("last_update_time")))


def _range(key: SessionKey) -> Document:
    return {"first": key.first_chunk_id, "last": key.first_id(0)}


def _is_alive(document: SessionDocument, incarnation: str) -> bool:
    return (
        not document.damaged and document.incarnation == incarnation and document.status == ACTIVE
    )


def _is_erased(document: SessionDocument, incarnation: str) -> bool:
    """Whether that incarnation cannot come back. A missing document was removed by something else:
    then the origin is all that is left of the session."""
    if document.damaged:
        return False
    return document.incarnation != incarnation or document.status in (PURGING, PURGED)
