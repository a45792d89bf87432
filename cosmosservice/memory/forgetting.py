"""Forgetting: one memory, which then cannot be added again, or all of a session or a user."""

from __future__ import annotations

import asyncio
import datetime
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from cosmosservice.account.container import Container, Document
from cosmosservice.account.dependants import Stands, Superseded
from cosmosservice.account.failures import NotFound, PreconditionFailed
from cosmosservice.account.retries import CONTENTION
from cosmosservice.errors import StorageError
from cosmosservice.memory import documents, queries
from cosmosservice.memory.documents import Owner
from cosmosservice.memory.sharing import leave
from cosmosservice.memory.sources import MemoriesOf, documents_from, main_id, sources_of

_AT_ONCE: Final = 16
_ROUNDS: Final = 10  # after which a purge that still finds new memories gives up


@dataclass(frozen=True)
class MemoryPurgeReport:
    """How many documents a purge erased, by kind."""

    memories: int = 0
    forgotten: int = 0
    parts: int = 0
    vectors: int = 0

    @property
    def documents(self) -> int:
        """All of them."""
        return self.memories + self.forgotten + self.parts + self.vectors


class Forgetting:
    def __init__(self, container: Container) -> None:
        self._container = container

    async def forget(self, owner: Owner, memory_id: str) -> bool:
        """Removes the content. The remaining document keeps the memory from being added again.
        Returns whether there was such a memory."""
        document_id = documents.document_id(memory_id)
        if not await self._container.probe(document_id, owner.key):
            return False
        for attempt in CONTENTION:
            await CONTENTION.pause(attempt)
            try:
                found = await self._container.read(document_id, owner.key)
            except NotFound:
                return False
            assert isinstance(found, dict)
            was_there = found.get("kind") != documents.FORGOTTEN
            if was_there:
                left = documents.forgotten(found, datetime.datetime.now(datetime.UTC).isoformat())
                try:
                    await self._container.replace(left, found["_etag"])
                except PreconditionFailed:
                    continue  # another process changed it too
                except NotFound:
                    return False
            # Even if it was forgotten before: that call may have been interrupted before this.
            first, end = documents.beside(document_id)
            beside = await self._container.query(
                queries.BESIDE, {"first": first, "end": end}, owner.key
            )
            await self._delete(owner, beside)
            return was_there
        raise StorageError(
            "delete_memory: others keep changing the memory. It was not deleted; try again."
        )

    async def purge(
        self,
        owner: Owner,
        wanted: MemoriesOf | None,
        *,
        stands: Stands | None = None,
        kept: Collection[str] = (),
    ) -> MemoryPurgeReport:
        """Erases all documents of the user except those of the kept sessions, or those that only
        these sources have.

        Erases only what was found before `stands` was asked, and raises Superseded if the answer is
        no.
        """
        erased: Counter[str] = Counter()
        for _ in range(_ROUNDS):
            found = await self._found(owner, wanted, kept)
            if not found:
                break
            if stands is not None and not await stands():
                raise Superseded
            if wanted is not None:
                found = await leave(self._container, owner, wanted, found)
            gone = await self._delete(owner, found)
            erased.update(_kind(each) for each in found if each["id"] in gone)
        else:
            raise StorageError(
                "purge_memories: memories are added faster than they are erased. Some are left;"
                " try again when nobody adds any."
            )
        return MemoryPurgeReport(
            memories=erased[documents.MEMORY],
            forgotten=erased[documents.FORGOTTEN],
            parts=erased[documents.PART],
            vectors=erased[documents.VECTOR],
        )

    async def _found(
        self, owner: Owner, wanted: MemoriesOf | None, kept: Collection[str]
    ) -> list[Document]:
        """Memories first: without its memory, a search no longer finds a part or a vector."""
        if wanted is not None:
            return await documents_from(self._container, owner, wanted)
        # A lagging replica must not hide memories that other processes have added.
        await self._container.probe(documents.PROBED, owner.key)
        rows = await self._container.query(queries.ALL, {}, owner.key)
        mains = {each["id"]: each for each in rows if "of" not in each}
        found = [
            each
            for each in rows
            if not any(
                source.session_id in kept for source in sources_of(mains.get(main_id(each), each))
            )
        ]
        return sorted(found, key=lambda each: each.get("kind") != documents.MEMORY)

    async def _delete(self, owner: Owner, found: Sequence[Document]) -> set[str]:
        """Deletes these, except those whose etag has changed. Returns the ids of those."""
        limit = asyncio.Semaphore(_AT_ONCE)
        gone: set[str] = set()

        async def one(document: Document) -> None:
            async with limit:
                try:
                    await self._container.delete(document["id"], owner.key, document.get("_etag"))
                except (NotFound, PreconditionFailed):
                    return
                gone.add(document["id"])

        failures = [
            each
            for each in await asyncio.gather(*map(one, found), return_exceptions=True)
            if isinstance(each, BaseException)
        ]
        if failures:
            raise failures[0]
        return gone


def _kind(document: Document) -> str:
    """What a damaged document counts as: a memory."""
    kind = document.get("kind")
    known = (documents.FORGOTTEN, documents.PART, documents.VECTOR)
    return kind if isinstance(kind, str) and kind in known else documents.MEMORY
