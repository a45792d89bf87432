"""The memory store: adding, searching and forgetting in one container, on one event loop."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from google.adk.memory.memory_entry import MemoryEntry

from cosmosservice.account.chunks import Damaged
from cosmosservice.account.container import Container, Document
from cosmosservice.errors import ConfigurationError
from cosmosservice.memory import documents, queries
from cosmosservice.memory.adding import Added, Adding
from cosmosservice.memory.backfill import EmbedReport, Progress, embed_missing
from cosmosservice.memory.documents import Owner
from cosmosservice.memory.embedding import Vectors
from cosmosservice.memory.entries import Entry, memory_of, text_in
from cosmosservice.memory.erasing import MemoryDependant
from cosmosservice.memory.forgetting import Forgetting, MemoryPurgeReport
from cosmosservice.memory.known import Known
from cosmosservice.memory.ranking import WEIGHTS, Near, Weights
from cosmosservice.memory.searching import Filter, Searching, Start, content_of
from cosmosservice.memory.sources import KnownIncarnations, MemoriesOf, Source


class Found(NamedTuple):
    """A memory's document and its content, and why it was found."""

    document: Document
    content: Any
    match: Mapping[str, Any] | None = None
    context: Sequence[Found] = ()


_PAGE: Final = 100


class MemoryStore:
    """The store of a memory service on one event loop."""

    def __init__(
        self,
        container: Container,
        known: Known,
        vectors: Vectors | None = None,
        weights: Weights = WEIGHTS,
        incarnations: KnownIncarnations | None = None,
    ) -> None:
        self.container = container
        self._incarnations = incarnations
        self.damage = known.damage
        self._known = known
        self._adding = Adding(container, known)
        self._searching = Searching(container, known.damage, weights)
        self._forgetting = Forgetting(container)
        self.dependant = MemoryDependant(container, known)
        self.vectors = vectors

    async def drain(self) -> None:
        """Does nothing: this store has nothing to hand over."""

    async def close(self) -> None:
        """Does nothing: everything that was acknowledged is stored."""

    async def add_session(self, owner: Owner, source: Source, entries: Sequence[Entry]) -> None:
        await self._embed(await self._adding.session(owner, source, entries))

    async def remember(
        self,
        owner: Owner,
        source: Source,
        entries: Sequence[Entry],
        *,
        continues: bool,
        others: bool,
    ) -> int:
        """Adds the next events of a session, and returns the number of memories added."""
        added = await self._adding.session(
            owner, source, entries, continues=continues, others=others
        )
        await self._embed(added)
        return len(added)

    async def add_events(
        self, owner: Owner, session_id: str | None, entries: Sequence[Entry]
    ) -> None:
        await self._embed(await self._adding.events(owner, session_id, entries))

    async def add_alone(self, owner: Owner, entries: Sequence[Entry]) -> None:
        await self._embed(await self._adding.alone(owner, entries))

    async def search(
        self, owner: Owner, query: str, limit: int, chosen: Filter, *, context: int = 0
    ) -> list[MemoryEntry]:
        """The best matches, each with so many turns before and after it. Repeating a search costs
        nothing for a while, unless this process has changed the owner's memories."""
        chosen = await self._in_current_incarnation(owner, chosen)
        question = (query, limit, chosen, context)
        answer = self._known.answer(owner.key, question)
        if answer is None:
            version = self._known.version(owner.key)
            answer = await self._search(owner, query, limit, chosen)
            if context:
                answer = await self._in_context(owner, answer, context)
            self._known.answered(owner.key, question, answer, version)
        return [_memory(each) for each in answer]

    async def _in_context(self, owner: Owner, found: Sequence[Found], turns: int) -> list[Found]:
        around = {
            each.document["id"]: documents.around(each.document["at"], turns) for each in found
        }
        wanted = list(dict.fromkeys(at for turns_around in around.values() for at in turns_around))
        there = await self._with_contents(await self._searching.contents(owner, wanted))
        by_at = {each.document["at"]: each for each in there}
        return [
            each._replace(context=[by_at[at] for at in around[each.document["id"]] if at in by_at])
            for each in found
        ]

    async def _search(self, owner: Owner, query: str, limit: int, chosen: Filter) -> list[Found]:
        ranking, (vector, nearest) = await asyncio.gather(
            self._searching.rank(owner, query, chosen), self._nearest(owner, query, chosen)
        )
        if self.vectors is not None and vector is not None:
            unknown: list[str] = []
            if len(nearest) == queries.NEIGHBOURS:  # otherwise these are all
                known = {each.document_id for each in nearest}
                best = ranking.best_by_words(queries.COMPARED)
                unknown = [each for each in best if each not in known]
            others = await self.vectors.compared(owner, vector, unknown) if unknown else []
            ranking.add(nearest, others)
        hits = await self._searching.hits(owner, ranking, limit, chosen)
        why = {hit.document["id"]: hit.match for hit in hits}
        rest = await self._of_incarnation(owner, chosen, [hit.document for hit in hits])
        found: list[Found] = []
        while rest and len(found) < limit:  # again if some of the best cannot be read
            missing = limit - len(found)
            found += [
                each._replace(match=why[each.document["id"]])
                for each in await self._with_contents(rest[:missing])
            ]
            rest = rest[missing:]
        return found

    async def _nearest(
        self, owner: Owner, query: str, chosen: Filter
    ) -> tuple[list[float] | None, Sequence[Near]]:
        """The vector of the query, and the memories that are nearest to it."""
        vector = None if self.vectors is None else await self.vectors.vector_of(query)
        if self.vectors is None or vector is None:
            return None, []
        return vector, await self.vectors.nearest(owner, vector, chosen)

    async def page(
        self, owner: Owner, session_id: str | None, start: Start
    ) -> tuple[list[MemoryEntry], Start | None]:
        """The next memories in the order of time, and where to go on; None at the end."""
        if not start.seen:  # at the beginning: a list must be complete even if a replica lags
            await self.container.probe(documents.PROBED, owner.key)
        text = queries.FROM if session_id is None else queries.FROM_IN_SESSION
        parameters: dict[str, Any] = {"from": start.time, "count": _PAGE + len(start.seen)}
        if session_id is not None:
            parameters["session_id"] = session_id
        rows = await self.container.query(text, parameters, owner.key)
        new = [each for each in rows if each["id"] not in start.seen]
        if not new:
            return [], None
        chosen = await self._in_current_incarnation(owner, Filter(session_id))
        whole = [each for each in new if self.damage.is_memory(each) and chosen.may_have(each)]
        return await self._entries(await self._of_incarnation(owner, chosen, whole)), start.after(
            new
        )

    async def latest(self, owner: Owner, count: int) -> list[MemoryEntry]:
        """The newest memories, the newest first."""
        asked = count
        while True:
            rows = await self.container.query(queries.LATEST, {"count": asked}, owner.key)
            found = await self._entries(list(filter(self.damage.is_memory, rows)))
            if len(found) >= count or len(rows) < asked:
                return found[:count]
            asked += count  # some cannot be shown

    async def forget(self, owner: Owner, memory_id: str) -> bool:
        try:
            return await self._forgetting.forget(owner, memory_id)
        finally:
            self._known.changed(owner.key)

    async def purge(self, owner: Owner, wanted: MemoriesOf | None) -> MemoryPurgeReport:
        try:
            return await self._forgetting.purge(owner, wanted)
        finally:
            self._known.changed(owner.key, erased=True)

    async def embed_missing(self, owner: Owner | None, progress: Progress) -> EmbedReport:
        if self.vectors is None:
            raise ConfigurationError("The service has no embedder: pass embedder=.")
        key = None if owner is None else owner.key
        return await embed_missing(self.container, self.vectors, key, self.damage, progress)

    async def _in_current_incarnation(self, owner: Owner, chosen: Filter) -> Filter:
        if chosen.session_id is None or self._incarnations is None:
            return chosen
        current = await self._incarnations.current(owner, chosen.session_id)
        return dataclasses.replace(chosen, incarnation=current)

    async def _of_incarnation(
        self, owner: Owner, chosen: Filter, rows: Sequence[Document]
    ) -> Sequence[Document]:
        """Without memories that do not know their incarnation and whose events another one has."""
        if chosen.session_id is None or chosen.incarnation is None or self._incarnations is None:
            return rows
        meant = MemoriesOf(chosen.session_id, chosen.incarnation)
        unknown = {each["id"]: each["memory_id"] for each in rows if not meant.has(each)}
        if not unknown:
            return rows
        having = await self._incarnations.with_events(owner, chosen.session_id, unknown.values())
        elsewhere = {
            each
            for each, event_id in unknown.items()
            if event_id in having and chosen.incarnation not in having[event_id]
        }
        return [each for each in rows if each["id"] not in elsewhere]

    async def _embed(self, added: Sequence[Added]) -> None:
        if self.vectors is not None:
            await self.vectors.add([(each.document, each.text) for each in added])

    async def _entries(self, rows: Sequence[Document]) -> list[MemoryEntry]:
        return [_memory(each) for each in await self._with_contents(rows)]

    async def _with_contents(self, rows: Sequence[Document]) -> list[Found]:
        """Those that can be shown."""
        found = await asyncio.gather(*map(self._with_content, rows))
        return [each for each in found if each is not None]

    async def _with_content(self, document: Document) -> Found | None:
        try:
            content = await content_of(self.container, document)
            if content is not None:
                memory_of(document, content)
                return Found(document, content)
        except Damaged as damaged:
            self.damage.report(document, str(damaged))
        return None


def _memory(found: Found) -> MemoryEntry:
    memory = memory_of(found.document, found.content, found.match)
    if found.context:
        turns = [memory_of(each.document, each.content) for each in found.context]
        memory.custom_metadata.setdefault(
            "context",
            [
                {
                    "id": turn.id,
                    "author": turn.author,
                    "timestamp": turn.timestamp,
                    "text": text_in(turn.content),
                    "before": each.document["at"] < found.document["at"],
                }
                for each, turn in zip(found.context, turns, strict=True)
            ],
        )
    return memory
