"""How an account opens artifact stores: one for each event loop that needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cosmosservice.artifacts.documents import ARTIFACTS_CONTAINER

if TYPE_CHECKING:
    from cosmosservice.account.connection import Connection
    from cosmosservice.account.container import Container
    from cosmosservice.account.settings import Settings
    from cosmosservice.artifacts.bodies import Bodies
    from cosmosservice.artifacts.erasing import ArtifactDependant
    from cosmosservice.artifacts.store import ArtifactStore


@dataclass(frozen=True)
class Sizes:
    """Limits in bytes. Tests use small ones."""

    header: int | None = None
    inline: int | None = None
    piece: int | None = None
    blob_piece: int | None = None


class ArtifactStores:
    """Names the containers of an artifact service, and opens its stores."""

    outlives_session: Final = False

    def __init__(
        self,
        settings: Settings,
        *,
        blobs: str | None,
        blob_credential: Any = None,
        sizes: Sizes | None = None,
    ) -> None:
        self._container = settings.artifact_container
        self._blobs = blobs
        self._blob_credential = blob_credential
        self._sizes = sizes or Sizes()

    async def open(self, connection: Connection) -> ArtifactStore:
        container = await connection.container(ARTIFACTS_CONTAINER, self._container)
        return await self._on(container, connection, ensure=connection.creates_containers)

    async def open_dependant(self, connection: Connection) -> ArtifactDependant | None:
        """The artifacts, for a session service; None if the container does not exist."""
        from cosmosservice.artifacts.erasing import ArtifactDependant

        container = await connection.existing_container(ARTIFACTS_CONTAINER, self._container)
        if container is None:
            return None
        return ArtifactDependant(await self._on(container, connection, ensure=False))

    async def _on(
        self, container: Container, connection: Connection, *, ensure: bool
    ) -> ArtifactStore:
        from cosmosservice.artifacts.bodies import PIECE_BYTES, Pieces
        from cosmosservice.artifacts.collaborators import (
            HEADER_BYTES,
            INLINE_BYTES,
            Collaborators,
            Limits,
        )
        from cosmosservice.artifacts.store import ArtifactStore

        sizes = self._sizes
        pieces = Pieces(container, sizes.piece or PIECE_BYTES)
        bodies: dict[str, Bodies] = {pieces.name: pieces}
        if self._blobs is not None:
            bodies["blobs"] = await self._open_blobs(self._blobs, connection, ensure=ensure)
        limits = Limits(sizes.inline or INLINE_BYTES, sizes.header or HEADER_BYTES)
        return ArtifactStore(Collaborators(container, bodies, limits))

    async def _open_blobs(self, where: str, connection: Connection, *, ensure: bool) -> Bodies:
        from cosmosservice.artifacts.blobs import PIECE_BYTES, BlobBodies, is_connection_string

        credential = self._blob_credential or connection.token_credential
        piece = self._sizes.blob_piece or PIECE_BYTES
        opened = BlobBodies.open(where, self._container, credential, piece)
        try:
            # A key may create containers, as in Cosmos DB; an identity needs an existing one.
            if ensure and is_connection_string(where):
                await opened.ensure()
        except BaseException:
            await opened.close()
            raise
        return opened

    def target(self, operation: str) -> str | None:
        return self._container
