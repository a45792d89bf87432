"""The artifact store: the service's operations on documents and payloads, on one event loop."""

from __future__ import annotations

from typing import Any

from google.adk.artifacts.artifact_util import ParsedArtifactUri
from google.adk.artifacts.base_artifact_service import ArtifactVersion
from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types

from cosmosservice.account.container import Document
from cosmosservice.artifacts import references
from cosmosservice.artifacts.bodies import MissingPiece
from cosmosservice.artifacts.collaborators import Collaborators
from cosmosservice.artifacts.copying import Copying
from cosmosservice.artifacts.deleting import Deletion
from cosmosservice.artifacts.keys import ArtifactKey, Scope
from cosmosservice.artifacts.parts import filled, is_absent, part_of, reference_of
from cosmosservice.artifacts.reading import Reading, created_at, damaged, extent_of, metadata_of
from cosmosservice.artifacts.saving import Saving
from cosmosservice.artifacts.streams import Opened
from cosmosservice.artifacts.sweeping import WITH_VERSIONS, Sweeping
from cosmosservice.hosting.concurrency import together


class ArtifactStore:
    """Everything that an artifact service does on one connection, on its event loop."""

    def __init__(self, shared: Collaborators) -> None:
        self.container = shared.container
        self._bodies = shared.bodies
        self.versions = shared.versions
        self.payloads = shared.payloads
        self.collecting = shared.collecting
        self.deletion = Deletion(shared)
        self.reading = Reading(shared)
        self.saving = Saving(shared, self.reading, self.deletion)
        self.sweeping = Sweeping(shared, self.deletion)
        self.copying = Copying(shared, self.saving, self._load_of_user)

    async def _load_of_user(self, key: ArtifactKey, version: int) -> types.Part | None:
        return await self.load(key, None, version)

    async def load(
        self,
        key: ArtifactKey,
        session_id: str | None,
        version: int | None,
        remaining: int = references.MAX_DEPTH,
    ) -> types.Part | None:
        while True:
            probable = self.versions.guess_payload(key) if version is None else None
            async with self.reading.ahead(key, probable) as payload_of:
                document = await self.versions.find(key, version, whole=True)
                if document is None:
                    return None
                part = _part(document)
                uri = reference_of(part)
                if uri is not None:
                    referred, target = _target(key, session_id, uri, remaining)
                    return await self.load(
                        referred, target.session_id, target.version, remaining - 1
                    )
                try:
                    payload = await payload_of(document)
                except MissingPiece as problem:
                    await self.reading.explain(key, document, str(problem))
                    if version is not None:
                        return None
                    continue  # deleted meanwhile: there may be a new one
            try:
                whole = part if payload is None else filled(part, payload)
            except ValueError:
                raise damaged(document, "its text cannot be read") from None
            if version is None:
                self.versions.seen(key, document)
            return whole if payload or not is_absent(whole) else None

    async def open(
        self,
        key: ArtifactKey,
        session_id: str | None,
        version: int | None,
        remaining: int = references.MAX_DEPTH,
    ) -> Opened | None:
        """Like `load`, but to be read in parts."""
        document = await self.versions.find(key, version, whole=True)
        if document is None:
            return None
        part = _part(document)
        uri = reference_of(part)
        if uri is not None:
            referred, target = _target(key, session_id, uri, remaining)
            return await self.open(referred, target.session_id, target.version, remaining - 1)
        if "bytes" not in document:
            raise InputValidationError(
                "The artifact is a URI and has no bytes of its own: use load_artifact."
            )
        if "payload" not in document:
            data = await self.reading.payload(key, document) or b""
            absent = is_absent(filled(part, data))
            return None if absent else Opened(key, document, data, None)
        return Opened(key, document, None, extent_of(document))

    async def scopes(self) -> list[Scope]:
        """All scopes that have an artifact."""
        found = await self.container.query(WITH_VERSIONS, {})
        return [Scope(each["app_name"], each["user_id"], each.get("session_id")) for each in found]

    async def keys(self, scopes: list[Scope]) -> list[str]:
        found = await together(*(self.versions.names(scope) for scope in scopes))
        return sorted({name for names in found for name in names})

    async def list_versions(self, key: ArtifactKey) -> list[ArtifactVersion]:
        return [artifact_version(key, each) for each in await self.versions.all(key)]

    async def version(self, key: ArtifactKey, version: int | None) -> ArtifactVersion | None:
        found = await self.versions.find(key, version)
        return None if found is None else artifact_version(key, found)

    async def drain(self) -> None:
        """Does nothing: this store has nothing to hand over."""

    async def close(self) -> None:
        for bodies in self._bodies.values():
            closing = getattr(bodies, "close", None)
            if closing is not None:
                await closing()


def artifact_version(key: ArtifactKey, document: Document) -> ArtifactVersion:
    number = int(document["version"])
    fields: dict[str, Any] = {
        "version": number,
        "canonical_uri": key.canonical_uri(number),
        "custom_metadata": metadata_of(document),
        "create_time": created_at(document),
        "mime_type": document.get("mime_type"),
    }
    return ArtifactVersion(**fields)


def _target(
    key: ArtifactKey, session_id: str | None, uri: str, remaining: int
) -> tuple[ArtifactKey, ParsedArtifactUri]:
    scope = key.scope
    target = references.target_of(
        uri, scope.app_name, scope.user_id, session_id, remaining=remaining
    )
    referred = ArtifactKey.named(
        target.app_name, target.user_id, target.filename, target.session_id
    )
    return referred, target


def _part(document: Document) -> types.Part:
    try:
        return part_of(document["part"])
    except (KeyError, TypeError, ValueError):
        raise damaged(document, "its part cannot be read") from None
