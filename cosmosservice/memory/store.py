"""The memory store: adding, searching and forgetting in one container, on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from cosmosservice.account.container import Container, Document
from cosmosservice.errors import ConfigurationError
from cosmosservice.memory import documents, queries
from cosmosservice.memory.adding import Added, Adding
from cosmosservice.memory.backfill import EmbedReport, Progress, embed_missing
from cosmosservice.memory.documents import Owner
from cosmosservice.memory.embedding import Vectors
from cosmosservice.memory.entries import Entry
from cosmosservice.memory.forgetting import Forgetting, MemoryPurgeReport
from cosmosservice.memory.known import Known
from cosmosservice.memory.ranking import WEIGHTS, Weights, fused
from cosmosservice.memory.searching import Filter, Searching, content_of

Found = tuple[Document, Any]
"""A memory's document and its content."""

_SPARE: Final = 4  # places to read beyond the limit, since not every place has a memory
_NARROW: Final = 5  # times as many places, if a filter excludes most of them
_PAGE: Final = 100


class MemoryStore:
    """The store of a memory service on one event loop."""

    def __init__(
        self,
        container: Container,
        known: Known,
        vectors: Vectors | None = None,
        weights: Weights = WEIGHTS,
    ) -> None:
        self.container = container
        self._known = known
        self._adding = Adding(container, known)
        self._searching = Searching(container, weights)
        self._forgetting = Forgetting(container)
        self.vectors = vectors

    async def settle(self) -> None:
        """Does nothing: this store has nothing to hand over."""

    async def close(self) -> None:
        """Does nothing: everything that was acknowledged is stored."""

    async def add_session(self, owner: Owner, session_id: str, entries: Sequence[Entry]) -> None:
        await self._embed(await self._adding.session(owner, session_id, entries))

    async def remember(
        self,
        owner: Owner,
        session_id: str,
        entries: Sequence[Entry],
        *,
        continues: bool,
        others: bool,
    ) -> int:
        """Adds the next events of a session, and returns the number of memories added."""
        added = await self._adding.session(
            owner, session_id, entries, continues=continues, others=others
        )
        await self._embed(added)
        return len(added)

    async def add_events(
        self, owner: Owner, session_id: str | None, entries: Sequence[Entry]
    ) -> None:
        await self._embed(await self._adding.events(owner, session_id, entries))

    async def add_alone(self, owner: Owner, entries: Sequence[Entry]) -> None:
        await self._embed(await self._adding.alone(owner, entries))

    async def search(self, owner: Owner, query: str, limit: int, chosen: Filter) -> list[Found]:
        """The best matches with their contents. Repeating a search costs nothing for a while,
        unless this process has changed the owner's memories."""
        question = (query, limit, chosen)
        answer = self._known.answer(owner.key, question)
        if answer is not None:
            return list(answer)
        version = self._known.version(owner.key)
        ranking = self._searching.rank(owner, query, chosen)
        if self.vectors is None:
            ranked = await ranking
        else:
            ranked = fused(*await asyncio.gather(ranking, self.vectors.rank(owner, query, chosen)))
        count = limit * (_NARROW if chosen.is_narrow else 1) + _SPARE
        documents_found = await self._searching.contents(owner, ranked.places[:count], chosen)
        found = await self._with_contents(ranked.sorted(documents_found)[:limit])
        self._known.answered(owner.key, question, tuple(found), version)
        return found

    async def page(
        self, owner: Owner, session_id: str | None, after: float, seen: frozenset[str]
    ) -> list[Found]:
        """The next memories in the order of time; `seen` are those of the time `after`."""
        if not seen:  # at the beginning: a list must be complete even if a replica lags
            await self.container.probe(documents.PROBED, owner.key)
        text = queries.FROM if session_id is None else queries.FROM_IN_SESSION
        parameters: dict[str, Any] = {"from": after, "count": _PAGE + len(seen)}
        if session_id is not None:
            parameters["session_id"] = session_id
        found = await self.container.query(text, parameters, owner.key)
        return await self._with_contents([each for each in found if each["id"] not in seen])

    async def latest(self, owner: Owner, count: int) -> list[Found]:
        """The newest memories, the newest first."""
        found = await self.container.query(queries.LATEST, {"count": count}, owner.key)
        return await self._with_contents(found)

    async def forget(self, owner: Owner, memory_id: str) -> bool:
        try:
            return await self._forgetting.forget(owner, memory_id)
        finally:
            self._known.changed(owner.key)

    async def purge(self, owner: Owner, session_id: str | None) -> MemoryPurgeReport:
        try:
            return await self._forgetting.purge(owner, session_id)
        finally:
            self._known.changed(owner.key, erased=True)

    async def embed_missing(self, owner: Owner | None, progress: Progress) -> EmbedReport:
        if self.vectors is None:
            raise ConfigurationError("The service has no embedder: pass embedder=.")
        key = None if owner is None else owner.key
        return await embed_missing(self.container, self.vectors, key, progress)

    async def _embed(self, added: Sequence[Added]) -> None:
        if self.vectors is not None:
            await self.vectors.add([(each.document, each.text) for each in added])

    async def _with_contents(self, found: Sequence[Document]) -> list[Found]:
        contents = await asyncio.gather(*(content_of(self.container, each) for each in found))
        return [
            (document, content)
            for document, content in zip(found, contents, strict=True)
            if content is not None and document["kind"] == documents.MEMORY
        ]
