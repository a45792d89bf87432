"""CosmosArtifactService: ADK's artifacts on Azure Cosmos DB and Blob Storage."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Any

from google.adk.artifacts.base_artifact_service import ArtifactVersion, BaseArtifactService
from google.genai import types
from typing_extensions import Unpack, override

from cosmosservice.account.account import CosmosAccount
from cosmosservice.account.options import (
    AccountOptions,
    EmbeddedOptions,
    documented,
    embedded_store,
)
from cosmosservice.account.service import AccountService
from cosmosservice.artifacts import references
from cosmosservice.artifacts.digests import digests_of
from cosmosservice.artifacts.keys import ArtifactKey, Scope
from cosmosservice.artifacts.parts import blob_part, divided, ensure_part, reference_of
from cosmosservice.artifacts.saving import Draft
from cosmosservice.artifacts.stores import ArtifactStores, Sizes
from cosmosservice.artifacts.streams import ArtifactReader, Opened, Source, blocks
from cosmosservice.artifacts.sweeping import ArtifactPurgeReport, Progress, SweepReport
from cosmosservice.errors import UnavailableError
from cosmosservice.hosting.operation import Background, Bounded, Unbounded

if TYPE_CHECKING:
    from cosmos_emulator import Emulator
    from cosmosservice.artifacts.payloads import Upload
    from cosmosservice.artifacts.store import ArtifactStore

__all__ = ["ArtifactReader", "CosmosArtifactService"]

_COPY = Unbounded("copy_artifacts")
_STREAM = Unbounded("save_artifact_stream")
_AHEAD = 3  # pieces of a stream that are sent at the same time


class ArtifactOptions(EmbeddedOptions, total=False):
    """Options of an artifact service on the embedded emulator."""

    artifact_container: str | None
    blobs: str | None
    blob_credential: Any


class CosmosArtifactService(AccountService["ArtifactStore"], BaseArtifactService):
    """Versioned files of ADK agents on Azure Cosmos DB.

        artifacts container, partition = a session of a user, or the user for user: names
        ┌──────────────────────────────────────────┐
        │ report.pdf  0  1  2 …  one document each │ ──▶ payload: up to 256 KB in the document,
        │ notes.txt   0 …        created, never    │     larger in pieces beside it, or a blob
        │                        changed           │
        └──────────────────────────────────────────┘

    Saving creates the next document of a name. Any number of event loops and threads may use one
    service, and any number of processes one store.
    """

    @documented
    def __init__(
        self,
        *,
        account: CosmosAccount | None = None,
        artifact_container: str | None = None,
        blobs: str | None = None,
        blob_credential: Any = None,
        _sizes: Sizes | None = None,
        **options: Unpack[AccountOptions],
    ) -> None:
        """Without arguments: `COSMOSDB_*` from the environment or `.env`.

        Args:
          account: the CosmosAccount to use, which other services may share. Without one the
            service makes its own from the options below.
          artifact_container: the container in Cosmos DB. Default: "artifacts".
          blobs: where payloads over 256 KB are stored: the URL of a blob container, or a connection
            string of the storage account. Default: COSMOSDB_ARTIFACT_BLOBS; without it, Cosmos DB.
          blob_credential: a token credential for the blobs. Default: `credential` if it is a token
            credential, otherwise Entra ID.
        """
        settings = self._take_account(
            account,
            {"artifact_container": artifact_container, "artifact_blobs": blobs},
            **options,
        )
        secret = settings.artifact_blobs
        self._stores = ArtifactStores(
            settings,
            blobs=None if secret is None else secret.get_secret_value(),
            blob_credential=blob_credential,
            sizes=_sizes,
        )
        self._account.dependants[settings.artifact_container] = self._stores

    @classmethod
    def embedded(
        cls,
        store: str | os.PathLike[str] | Emulator = ":memory:",
        **options: Unpack[ArtifactOptions],
    ) -> CosmosArtifactService:
        """On the embedded emulator: a file, `:memory:`, or a given `cosmos_emulator.Emulator`."""
        return cls(**embedded_store(store), **options)

    # --- BaseArtifactService

    @override
    async def save_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        artifact: types.Part | dict[str, Any],
        session_id: str | None = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> int:
        key = ArtifactKey.named(app_name, user_id, filename, session_id)
        part = ensure_part(artifact)
        rest, mime_type, payload = divided(part)
        uri = reference_of(part) if payload is None else None
        if uri is not None:
            references.target_of(uri, app_name, user_id, session_id)
        draft = Draft(rest, mime_type, custom_metadata)
        return await self.in_store(
            Unbounded("save_artifact"),
            lambda store: store.saving.save(key, draft, payload),
            outlasts=True,
        )

    @override
    async def load_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> types.Part | None:
        key = ArtifactKey.named(app_name, user_id, filename, session_id)
        return await self.in_store(
            Unbounded("load_artifact"), lambda store: store.load(key, session_id, version)
        )

    @override
    async def list_artifact_keys(
        self, *, app_name: str, user_id: str, session_id: str | None = None
    ) -> list[str]:
        scopes = [Scope.named(app_name, user_id, None)]
        if session_id is not None:
            scopes.append(Scope.named(app_name, user_id, session_id))
        return await self.in_store(Bounded("list_artifact_keys"), lambda store: store.keys(scopes))

    @override
    async def delete_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        key = ArtifactKey.named(app_name, user_id, filename, session_id)
        await self.in_store(Unbounded("delete_artifact"), lambda store: store.deletion.delete(key))

    @override
    async def list_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[int]:
        key = ArtifactKey.named(app_name, user_id, filename, session_id)
        found = await self.in_store(Bounded("list_versions"), lambda store: store.versions.all(key))
        return [int(each["version"]) for each in found]

    @override
    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        key = ArtifactKey.named(app_name, user_id, filename, session_id)
        return await self.in_store(
            Bounded("list_artifact_versions"), lambda store: store.list_versions(key)
        )

    @override
    async def get_artifact_version(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> ArtifactVersion | None:
        key = ArtifactKey.named(app_name, user_id, filename, session_id)
        return await self.in_store(
            Bounded("get_artifact_version"), lambda store: store.version(key, version)
        )

    # --- in parts

    async def open_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> ArtifactReader | None:
        """Opens a version to read it in parts, with only a few pieces in memory; None if there is
        no such version."""
        key = ArtifactKey.named(app_name, user_id, filename, session_id)
        opened = await self.in_store(
            Unbounded("open_artifact"), lambda store: store.open(key, session_id, version)
        )
        return None if opened is None else ArtifactReader(opened, self._piece, self._explain)

    async def _piece(self, opened: Opened, number: int) -> bytes:
        extent = opened.extent
        assert extent is not None
        return await self.in_store(
            Unbounded("open_artifact"),
            lambda store: store.reading.pieces(opened.key, extent, number),
        )

    async def _explain(self, opened: Opened, problem: str) -> None:
        await self.in_store(
            Unbounded("open_artifact"),
            lambda store: store.reading.explain(opened.key, opened.document, problem),
        )

    async def save_artifact_stream(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        data: Source,
        mime_type: str = "application/octet-stream",
        session_id: str | None = None,
        display_name: str | None = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> int:
        """Saves a stream: a file, or any iterator of bytes. Only a few pieces are in memory at a
        time."""
        key = ArtifactKey.named(app_name, user_id, filename, session_id)
        rest, _, _ = divided(blob_part(mime_type, display_name))
        draft = Draft(rest, mime_type, custom_metadata)
        inline, size = await self.in_store(_STREAM, _sizes_of)
        stream = blocks(data, size)
        first = await anext(stream, b"")
        if len(first) <= inline:  # such a short block is the last one
            return await self.in_store(
                _STREAM, lambda store: store.saving.save(key, draft, first), outlasts=True
            )
        upload = await self.in_store(_STREAM, lambda store: store.payloads.begin(key.scope))
        try:
            await self._send(upload, first, stream)
            return await self.in_store(
                _STREAM,
                lambda store: store.saving.finish_stream(key, draft, upload),
                outlasts=True,
            )
        except UnavailableError:  # a sweep removes it once its announcement has expired
            raise
        except Exception:
            with contextlib.suppress(Exception):
                await self.in_store(_STREAM, lambda store: store.collecting.discard(upload))
            raise

    async def _send(self, upload: Upload, first: bytes, rest: Any) -> None:
        number = 0
        under_way: set[asyncio.Task[None]] = set()
        block: bytes | None = first
        try:
            while block is not None:
                upload.digests += await digests_of(block, len(block), upload.bodies.digest)
                upload.sizes.append(len(block))
                await self.in_store(_STREAM, lambda store: store.payloads.renew(upload))
                under_way.add(asyncio.create_task(self._put(upload, number, block)))
                number, block = number + 1, None
                if len(under_way) >= _AHEAD:
                    done, under_way = await asyncio.wait(
                        under_way, return_when=asyncio.FIRST_COMPLETED
                    )
                    await asyncio.gather(*done)
                block = await anext(rest, None)
            await asyncio.gather(*under_way)
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _put(self, upload: Upload, number: int, block: bytes) -> None:
        await self.in_store(
            _STREAM,
            lambda store: store.payloads.put(upload, number, block),
        )

    # --- for operators

    async def purge_artifacts(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str | None = None,
    ) -> ArtifactPurgeReport:
        """Erases the artifacts of a session or, without one, all of a user: every version and
        every payload, in Cosmos DB and in blobs. Only stubs without content remain, for 30 days.
        It may be called again if it was interrupted.
        """
        one = Scope.named(app_name, user_id, session_id)

        async def purge(store: ArtifactStore) -> ArtifactPurgeReport:
            report = ArtifactPurgeReport()
            scopes = [one]
            if session_id is None:
                scopes = await store.sweeping.scopes_of_user(app_name, user_id)
            for scope in scopes:
                report.add(await store.sweeping.purge(scope))
            return report

        return await self.in_store(Background("purge_artifacts"), purge)

    async def sweep(self, *, progress: Progress | None = None) -> SweepReport:
        """Removes what interrupted saves and deletes left behind, in all scopes. It removes nothing
        that is in use, and may run at any time."""
        return await self.in_store(
            Background("sweep_artifacts"), lambda store: store.sweeping.sweep(progress)
        )


async def _sizes_of(store: ArtifactStore) -> tuple[int, int]:
    return store.saving.limits.inline, store.payloads.piece_bytes
