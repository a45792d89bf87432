"""Erasing: records become stubs; chunks and large values are removed.

A stub keeps the id of a record and nothing of its content. Removing a record would free its id
for an old session object. Stubs expire, later than any session object lives.

The documents to erase are found by partition and session hash, not through the session document.
Every erasure may be interrupted at any moment and called again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from cosmosservice.account.charges import current_operation
from cosmosservice.account.container import Document
from cosmosservice.account.dependants import Stands, Successor, Superseded
from cosmosservice.account.failures import NotFound, PreconditionFailed
from cosmosservice.account.retries import CONTENTION
from cosmosservice.errors import ConfigurationError, StorageError, UnavailableError
from cosmosservice.hosting.concurrency import together
from cosmosservice.hosting.deadline import answered
from cosmosservice.sessions.store.documents import (
    CHUNK,
    DAY,
    LOST,
    MEMORIES,
    PURGED,
    PURGED_TTL,
    PURGING,
    RESTORED,
    STUB,
    TOMBSTONE,
    stub_document,
)
from cosmosservice.sessions.store.erased import Erased
from cosmosservice.sessions.store.expiries import Expiries
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.parts import Part, Parts
from cosmosservice.sessions.store.queries import ERASABLE
from cosmosservice.sessions.store.session_documents import SessionDocument

_AT_ONCE = 8
_WITHOUT_CONTENT = (STUB, TOMBSTONE, RESTORED, LOST)


class Erasure(Part):
    """Erases the records, values and dependants of sessions, and leaves stubs."""

    def __init__(self, parts: Parts, expiries: Expiries) -> None:
        super().__init__(parts)
        self._expiries = expiries
        self._dependants = parts.dependants
        self._erase_remnants = parts.erase_remnants
        self._container = parts.events

    async def complete(self, document: SessionDocument) -> Erased:
        """Completes a purge that the document announces."""
        erased = await self.erase(document)
        await self._erase_remnants()
        await self.mark(document)
        return erased

    async def erase(self, document: SessionDocument) -> Erased:
        """Erases everything of a session whose document announces it, until reads that are newer
        than the announcement find nothing. Raises Superseded if the session was erased and created
        again meanwhile."""
        key = document.key
        own, revision = document.incarnation, document.revision
        erased = await self._erase(
            key, lambda body: _incarnation(body) == own or 0 < _seq(body) <= revision
        )
        dead = {own} | {name for name, seq in erased.incarnations.items() if seq <= revision}
        before = self._clock.now() - DAY
        erased.documents += await self._values.erase(key, dead.__contains__, before=before)
        erased.stamp = max(erased.stamp, document.initial_stamp)
        self._views.drop(key)

        async def stands() -> bool:
            now = await self._documents.read_confirmed(key)
            return now is not None and (now.incarnation, now.status) == (own, PURGING)

        erased.dependants = await self._erase_dependants(
            key, stands, memories=not document.spares_memories
        )
        return erased

    async def mark(self, document: SessionDocument) -> None:
        """Says that everything is erased, the last bytes included."""
        await self._expiries.remove(document.key)
        fields: Document = {"spares": MEMORIES} if document.spares_memories else {}
        body = document.remains(PURGED, self._clock.now(), ttl=PURGED_TTL, **fields)
        body.pop("initial", None)
        with contextlib.suppress(PreconditionFailed, NotFound):  # another process did
            await self._documents.replace(document, body)

    async def sweep(self, key: SessionKey, *, memories: bool = True) -> Erased:
        """Erases everything that belongs to no session: left by one whose document has expired or
        was removed, or by an upload that was under way during a purge.

        No announcement is needed. The session document is read after everything else. Records of
        any other incarnation belong to nobody, because a session's document is older than its
        records.
        """
        await self._documents.probe(key)
        erased = await self._erase(key, lambda _: False)
        current = await self._documents.read(key)
        if _is_over(current):
            # Not younger ones: their session may be about to be created.
            before = self._clock.now() - DAY
            erased.documents += await self._values.erase(key, lambda _: False, before=before)

        async def stands() -> bool:
            return _is_over(await self._documents.read_confirmed(key))

        with contextlib.suppress(Superseded):
            erased.dependants = await self._erase_dependants(key, stands, memories=memories)
        return erased

    async def clear(self, key: SessionKey, current: SessionDocument | None) -> None:
        """Erases the artifacts of a former session, so that a new one can begin without them. Its
        document must say that nothing can restore it, or be gone. Raises Superseded if that has
        changed."""

        async def stands() -> bool:
            now = await self._documents.read_confirmed(key)
            same = now is not None and current is not None and now.etag == current.etag
            return same if current is not None else now is None

        if await self._erase_dependants(key, stands, memories=False):
            await self._erase_remnants()

    async def of_predecessors(self, document: SessionDocument) -> Erased | None:
        """Erases what the session replaced when it was created again: every record before its own
        first, and what belongs to its predecessors elsewhere. Nothing can restore them, so no
        announcement is needed. The document's `replaced` field is removed last, and not before the
        session is a day old: until then, a process may still add something to its predecessor.
        None if another writer changed the document: read it again."""
        own, first = document.incarnation, document.first_seq
        erased = await self._erase(
            document.key,
            lambda body: _incarnation(body) != own and 0 < _seq(body) < first,
            unowned=False,
        )
        dead = {n for n, seq in erased.incarnations.items() if n != own and seq < first}
        erased.documents += await self._values.erase(document.key, dead.__contains__)
        successor = Successor(document.key.name, own, document.created, frozenset(erased.events))
        memories = document.replaced.get("spares") != MEMORIES
        for each in await self._dependants.all(outliving=memories):
            erased.dependants += await each.erase_predecessors(successor)
            answered()
        if document.created > self._clock.now() - DAY:
            return erased
        try:
            await self._documents.replace(document, document.without("replaced"))
        except (PreconditionFailed, NotFound):
            return None
        return erased

    async def _erase_dependants(self, key: SessionKey, stands: Stands, *, memories: bool) -> int:
        """Goes on after a failure, and raises it at the end."""
        erased = 0
        problems: list[Exception] = []
        for each in await self._dependants.all(outliving=memories):
            try:
                erased += await each.erase_session(key.name, stands)
            except (StorageError, ConfigurationError) as problem:
                problems.append(problem)
            answered()
        if problems:
            raise problems[0]
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
            erased.events |= {
                str(body["event_id"]) for body in found if is_dead(body) and body.get("event_id")
            }
            dead: list[Document] = []
            rest: list[Document] = []
            for body in found:
                if _is_erased(body):
                    continue
                is_part = _is_chunk(body) and _incarnation(body) in names
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
        """The records and chunks, without their content."""
        parameters = {"first": key.first_chunk_id, "last": key.last_id}
        found = await self._container.query(ERASABLE, parameters, key.session_id)
        for body in found:
            if seq := _seq(body):
                erased.incarnations.setdefault(_incarnation(body), seq)
            if isinstance(stamp := body.get("stamp"), int | float):
                erased.stamp = max(erased.stamp, int(stamp))
                self._clock.observe(int(stamp))
        return found

    async def _without_owner(self, key: SessionKey, rest: list[Document]) -> list[Document]:
        current = await self._documents.read_confirmed(key)
        if _is_over(current):
            return rest
        assert current is not None
        # Chunks are among them, which `EventLog.read` does not return.
        return [body for body in rest if _incarnation(body) != current.incarnation]

    async def _one(self, key: SessionKey, body: Document) -> int:
        """Whether this call erased it. Another purge may be faster, and a renewal may have written
        the document again."""
        try:
            if _is_chunk(body):
                await self._container.delete(body["id"], key.session_id)
            else:
                await self._container.replace(stub_document(body), body["_etag"])
        except (NotFound, PreconditionFailed):
            return 0
        return 1


def _is_over(document: SessionDocument | None) -> bool:
    return document is None or document.status in (PURGING, PURGED)


def _is_erased(body: Document) -> bool:
    # The ttl alone does not tell: the events of a session that is kept for ten days have the same.
    return body.get("ttl") == PURGED_TTL and body.get("document_type") in _WITHOUT_CONTENT


def _is_chunk(body: Document) -> bool:
    """It has no id that must stay taken."""
    return body.get("document_type") == CHUNK


def _seq(body: Document) -> int:
    seq = body.get("seq")
    return int(seq) if isinstance(seq, int | float) else 0


def _incarnation(body: Document) -> str:
    return str(body.get("incarnation"))
