"""The memory services that are measured."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any
from unittest import mock

from google.adk.memory import BaseMemoryService, InMemoryMemoryService
from google.adk.memory.base_memory_service import SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session

from benchmarks.memory.local_model import LocalEmbedder, is_installed
from cosmosservice import CosmosMemoryService
from cosmosservice.memory.embedding import Embedder
from cosmosservice.memory.ranking import WEIGHTS

HITS = 20  # what each is asked for; InMemoryMemoryService returns ten

OURS = "CosmosMemoryService"

Open = Callable[[], contextlib.AbstractAsyncContextManager[BaseMemoryService]]


class PlainBm25(BaseMemoryService):
    """Textbook BM25: lower-case words, the usual constants, the best HITS."""

    def __init__(self) -> None:
        self._entries: dict[str, list[tuple[str, Counter[str]]]] = {}

    async def add_session_to_memory(self, session: Session) -> None:
        entries = self._entries.setdefault(session.user_id, [])
        for event in session.events:
            text = event.content.parts[0].text or ""  # type: ignore[union-attr, index]
            entries.append((event.id, Counter(re.findall(r"\w+", text.lower()))))

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        entries = self._entries[user_id]
        average = sum(words.total() for _, words in entries) / len(entries)
        scores: Counter[str] = Counter()
        for word in set(re.findall(r"\w+", query.lower())):
            having = sum(word in words for _, words in entries)
            rarity = math.log(1 + (len(entries) - having + 0.5) / (having + 0.5))
            for event_id, words in entries:
                if count := words[word]:
                    norm = 1.2 * (0.25 + 0.75 * words.total() / average)
                    scores[event_id] += rarity * count * 2.2 / (count + norm)
        return SearchMemoryResponse(
            memories=[MemoryEntry(id=each, content={}) for each, _ in scores.most_common(HITS)]
        )


@contextlib.asynccontextmanager
async def in_memory() -> AsyncIterator[BaseMemoryService]:
    yield InMemoryMemoryService()


@contextlib.asynccontextmanager
async def plain_bm25() -> AsyncIterator[BaseMemoryService]:
    yield PlainBm25()


@contextlib.asynccontextmanager
async def sqlite() -> AsyncIterator[BaseMemoryService]:
    from google.adk.memory import SqliteMemoryService  # since google-adk 2.x

    service: Any = SqliteMemoryService(":memory:")
    try:
        yield service
    finally:
        await service.close()


def cosmos(embedder: Embedder | None = None, **weights: float) -> Open:
    """Our service, optionally with a model or with other weights."""

    @contextlib.asynccontextmanager
    async def opened() -> AsyncIterator[BaseMemoryService]:
        service = CosmosMemoryService.embedded(
            results=HITS, embedder=embedder, timeout=600 if embedder else None
        )
        service._stores._weights = dataclasses.replace(WEIGHTS, **weights)  # type: ignore[attr-defined]
        async with service:
            yield service

    return opened


def without(name: str, replacement: Any) -> Open:
    """Our service with one part of its text analysis switched off."""

    @contextlib.asynccontextmanager
    async def opened() -> AsyncIterator[BaseMemoryService]:
        with mock.patch(f"cosmosservice.memory.{name}", replacement):
            async with cosmos()() as service:
                yield service

    return opened


def peers() -> dict[str, Open]:
    """All that are compared; with the small model if it is installed."""
    found: dict[str, Open] = {
        "InMemoryMemoryService": in_memory,
        "SqliteMemoryService": sqlite,
        "plain BM25": plain_bm25,
        OURS: cosmos(),
    }
    if is_installed():
        found[f"{OURS}, all-MiniLM-L6-v2"] = cosmos(LocalEmbedder())
    return found


ABLATIONS: dict[str, Open] = {
    "everything": cosmos(),
    "neighbours lend nothing": cosmos(previous=0, next=0, second=0),
    "answers are not found": cosmos(well=math.inf),
    "length does not count": cosmos(length=0),
    "words instead of stems": without("languages.stem", lambda word, language: word),
    "stop words count": without("languages.stop_words_of", lambda language: frozenset()),
    "no pairs of characters": without("words._pairs", lambda run: [run]),
    "authors count no more than words": cosmos(author=1),
}


def event_id(memory: MemoryEntry) -> str:
    """SqliteMemoryService has ids of its own. The event's id is in the metadata."""
    return str(memory.custom_metadata.get("event_id") or memory.id)
