"""How an account opens memory stores: one for each event loop that needs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from cosmosservice.memory.definition import MEMORIES_CONTAINER, with_vectors
from cosmosservice.memory.known import Known
from cosmosservice.memory.ranking import WEIGHTS

if TYPE_CHECKING:
    from cosmosservice.account.connection import Connection
    from cosmosservice.account.settings import Settings
    from cosmosservice.memory.embedding import Embedder, Vectors
    from cosmosservice.memory.erasing import MemoryDependant
    from cosmosservice.memory.sources import KnownIncarnations
    from cosmosservice.memory.store import MemoryStore

    OpenIncarnations = Callable[[Connection], Awaitable[KnownIncarnations]]


class MemoryStores:
    """Names the container of a memory service, and opens its stores."""

    outlives_session: Final = True

    def __init__(
        self,
        settings: Settings,
        *,
        embedder: Embedder | None,
        repeat_seconds: float,
        incarnations: OpenIncarnations | None = None,
    ) -> None:
        self._incarnations = incarnations
        self._container = settings.memory_container
        self._embedder = embedder
        self._known = Known(repeat_seconds)
        self._weights = WEIGHTS

    async def open(self, connection: Connection) -> MemoryStore:
        from cosmosservice.memory.store import MemoryStore

        incarnations = None if self._incarnations is None else await self._incarnations(connection)
        if self._embedder is None:
            container = await connection.container(MEMORIES_CONTAINER, self._container)
            return MemoryStore(
                container, self._known, weights=self._weights, incarnations=incarnations
            )
        vectors = await self._vectors(connection, self._embedder)
        return MemoryStore(vectors.container, self._known, vectors, self._weights, incarnations)

    async def open_dependant(self, connection: Connection) -> MemoryDependant | None:
        """The memories, for a session service; None if the container does not exist."""
        from cosmosservice.memory.erasing import MemoryDependant

        container = await connection.existing_container(MEMORIES_CONTAINER, self._container)
        return None if container is None else MemoryDependant(container, self._known)

    async def _vectors(self, connection: Connection, embedder: Embedder) -> Vectors:
        from cosmosservice.memory import embedding

        dimensions = await embedding.dimensions_of(embedder)
        container = await connection.container(with_vectors(dimensions), self._container)
        vectors = embedding.Vectors(container, embedder, dimensions)
        await vectors.check_model()
        return vectors

    def target(self, operation: str) -> str | None:
        return self._container
