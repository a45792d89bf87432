"""Embedding: vectors of what was said, made by the application's model.

A vector is a separate document next to its memory. A search by words does not read it, and a
vector that could not be made can be added later.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from cosmosservice.account.container import Container, Document
from cosmosservice.account.failures import Conflict, NotFound, PreconditionFailed
from cosmosservice.errors import ConfigurationError
from cosmosservice.memory import documents, queries
from cosmosservice.memory.damage import is_at, strings
from cosmosservice.memory.documents import Owner
from cosmosservice.memory.ranking import Near
from cosmosservice.memory.searching import Filter

logger = logging.getLogger("cosmosservice")

Embedder = Callable[[list[str]], Awaitable[Sequence[Sequence[float]]]]
"""Vectors of texts, in their order. It may have the attributes `model` and `dimensions`."""

MOST_CHARACTERS: Final = 8_000  # of a text: what models accept
AT_ONCE: Final = 64  # texts

EMBEDDED: Final = "author: text"  # what is embedded: who spoke matters (docs/memory.md)

# In a partition that no owner has: escaped names never give this key.
_SETTINGS: Final = {"id": "embedder", "owner": "="}


class EmbedderFailed(Exception):
    """The embedder raised, or did not return a vector for each text."""


async def embedded(embedder: Embedder, texts: Sequence[str]) -> list[list[float]]:
    """A vector for each text. Raises EmbedderFailed and nothing else."""
    found: list[list[float]] = []
    for start in range(0, len(texts), AT_ONCE):
        some = [text[:MOST_CHARACTERS] for text in texts[start : start + AT_ONCE]]
        try:
            vectors = [[float(value) for value in each] for each in await embedder(some)]
        except Exception as error:
            raise EmbedderFailed(type(error).__name__) from error
        if len(vectors) != len(some):
            raise EmbedderFailed(f"{len(vectors)} vectors for {len(some)} texts")
        if not all(each and all(map(math.isfinite, each)) for each in vectors):
            raise EmbedderFailed("a vector that is empty or has invalid numbers")
        found += vectors
    return found


def embedded_text(document: Document, text: str) -> str:
    """What is embedded of a memory: EMBEDDED."""
    author = document.get("author")
    return f"{author}: {text}" if isinstance(author, str) and author else text


async def dimensions_of(embedder: Embedder) -> int:
    """The embedder's `dimensions`, or else the length of a first vector."""
    declared = getattr(embedder, "dimensions", None)
    if isinstance(declared, int) and declared > 0:
        return declared
    try:
        return len((await embedded(embedder, ["dimensions"]))[0])
    except EmbedderFailed as failed:
        reason = str(failed)
    raise ConfigurationError(
        f"The embedder failed ({reason}) when it was asked how many dimensions its vectors have."
        " Nothing was stored. Give it an attribute `dimensions`, or try again."
    )


class Vectors:
    """The vectors of one container."""

    def __init__(self, container: Container, embedder: Embedder, dimensions: int) -> None:
        self.container = container
        self._embedder = embedder
        self._dimensions = dimensions
        self._model = getattr(embedder, "model", None) or "an embedder without a name"

    @property
    def made(self) -> str:
        """Which model makes the vectors, and of what. Others cannot be compared with them."""
        return f"{self._model}: {EMBEDDED}"

    async def check_model(self) -> None:
        """Stores how the vectors are made. Warns if there are vectors that were made otherwise."""
        record = {**_SETTINGS, "made": self.made, "dimensions": self._dimensions}
        try:
            await self.container.create(record)
        except Conflict:
            found = await self.container.read(_SETTINGS["id"], _SETTINGS["owner"])
            made = found.get("made") if isinstance(found, dict) else None
            if made != self.made:
                logger.warning(
                    "Vectors in container %r were made by %r, and the embedder makes %r. They are"
                    " not used until `cosmosservice memory embed` renews them. Words are searched"
                    " as before.",
                    self.container.name,
                    made,
                    self.made,
                )

    async def renewed(self) -> None:
        """Notes that all vectors are made by this embedder."""
        record = {**_SETTINGS, "made": self.made, "dimensions": self._dimensions}
        found = await self.container.read(_SETTINGS["id"], _SETTINGS["owner"])
        if isinstance(found, dict) and found.get("made") != self.made:
            await self.container.replace(record, found["_etag"])

    async def add(self, memories: Sequence[tuple[Document, str]]) -> int:
        """Embeds the texts of memories, and stores the vectors. Returns the number of successes: a
        failure is no reason to lose the memories themselves."""
        chosen = [(document, text) for document, text in memories if text]
        if not chosen:
            return 0
        try:
            vectors = await self._embed([embedded_text(*each) for each in chosen])
        except EmbedderFailed as failed:
            logger.warning(
                "The embedder failed (%s): %d memories are stored without a vector. They are found"
                " by their words; `cosmosservice memory embed` makes the vectors later.",
                failed,
                len(chosen),
            )
            return 0
        for (document, _), vector in zip(chosen, vectors, strict=True):
            await self._store(document, vector)
        return len(chosen)

    async def _store(self, document: Document, vector: list[float]) -> None:
        main_id, owner = document["id"], document["owner"]
        made: Document = {
            "id": documents.vector_id(main_id),
            "owner": owner,
            "kind": documents.VECTOR,
            "of": main_id,
            "beside": document["at"],
            "made": self.made,
            "embedding": vector,
        }
        for name in ("session_id", "incarnation", "ttl"):
            if name in document:
                made[name] = document[name]
        try:
            await self.container.create(made)
        except Conflict:
            if not await self._renew(made):
                return
        # The memory may have been forgotten meanwhile. Then the vector must not outlive it.
        try:
            await self.container.probe(main_id, owner)
            found = await self.container.read(main_id, owner)
            gone = isinstance(found, dict) and found.get("kind") != documents.MEMORY
        except NotFound:
            gone = True
        if gone:
            try:
                await self.container.delete(made["id"], owner)
            except NotFound:
                return

    async def _renew(self, made: Document) -> bool:
        """Replaces a vector that was made otherwise."""
        try:
            found = await self.container.read(made["id"], made["owner"])
            if not isinstance(found, dict) or found.get("made") == made["made"]:
                return False
            await self.container.replace(made, found["_etag"])
        except (NotFound, PreconditionFailed):
            return False
        return True

    async def vector_of(self, query: str) -> list[float] | None:
        """None if the embedder failed."""
        try:
            (vector,) = await self._embed([query])
        except EmbedderFailed as failed:
            logger.warning("The embedder failed (%s): this search goes by words alone.", failed)
            return None
        return vector

    async def nearest(self, owner: Owner, vector: list[float], chosen: Filter) -> list[Near]:
        """The memories whose vectors are nearest, the nearest first."""
        text = queries.NEAREST
        parameters: dict[str, Any] = {}
        if chosen.session_id is not None:
            text = queries.NEAREST_IN_SESSION
            shared = await self.container.query(queries.SHARED, chosen.of_session, owner.key)
            parameters = chosen.of_session | {
                "shared": strings([each.get("at") for each in shared])
            }
        return await self._compared(owner, text, parameters, vector)

    async def compared(
        self, owner: Owner, vector: list[float], document_ids: Sequence[str]
    ) -> list[Near]:
        """How near these memories are, of which there is at least one."""
        ids = [documents.vector_id(each) for each in document_ids]
        text = queries.similarity(queries.slots(len(ids)))
        return await self._compared(owner, text, queries.filled("v", ids), vector)

    async def _compared(
        self, owner: Owner, text: str, parameters: Mapping[str, Any], vector: list[float]
    ) -> list[Near]:
        every = {**parameters, "vector": vector, "made": self.made}
        found = await self.container.query(text, every, owner.key)
        return [
            Near(each["of"], each["beside"], each["similarity"])
            for each in found
            if isinstance(each.get("of"), str)
            and is_at(each.get("beside"))
            and isinstance(each.get("similarity"), int | float)
        ]

    async def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        vectors = await embedded(self._embedder, texts)
        wrong = next((len(each) for each in vectors if len(each) != self._dimensions), None)
        if wrong is not None:
            raise EmbedderFailed(f"{wrong} dimensions instead of {self._dimensions}")
        return vectors
