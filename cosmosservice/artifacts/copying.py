"""Forks: copies the artifacts of a session, as they were at a point.

Versions keep their numbers, because events name them, and the times at which they were saved. The
versions of each name are copied up to the last one that an event of the fork names or that was
saved before the point. Equal bytes are copied once, and blobs inside the storage account. A copied
version is recognised by its `save`, so a process that completes a fork copies only what is missing.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from google.adk.artifacts.artifact_util import get_artifact_uri, parse_artifact_uri
from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types

from cosmosservice.account.container import Document
from cosmosservice.account.dependants import Fork
from cosmosservice.account.failures import BatchRefused, Conflict, NotFound, PreconditionFailed
from cosmosservice.account.retries import CONTENTION
from cosmosservice.artifacts.bodies import MissingPiece
from cosmosservice.artifacts.collaborators import Collaborators
from cosmosservice.artifacts.documents import HEADER, TOMBSTONE, VERSION, version_document
from cosmosservice.artifacts.keys import ArtifactKey, Scope, name_digest_of, version_id
from cosmosservice.artifacts.parts import ABSENT, divided, part_of, reference_of
from cosmosservice.artifacts.payloads import PayloadGone, Upload
from cosmosservice.artifacts.reading import Extent, created_at, extent_of
from cosmosservice.artifacts.saving import Saving, inline_fields
from cosmosservice.data_converters import encode_value
from cosmosservice.errors import (
    AlreadyExistsError,
    DamagedArtifactError,
    StorageError,
    UnavailableError,
)
from cosmosservice.hosting.concurrency import together

Load = Callable[[ArtifactKey, int], Awaitable[types.Part | None]]

# The fields of a version that do not depend on where it is stored.
_FIELDS = (
    *("save", "created_at", "part", "mime_type", "custom_metadata"),
    *("bytes", "sha256", "data", "payload"),
)
_AT_ONCE = 4  # names

ENTRIES = (
    "SELECT c.id, c.document_type, c.filename, c.version, c.save, c.created_at, c.saved_at, c._ts,"
    " c.payload.store FROM c WHERE c.entry >= ''"
    f" AND c.document_type IN ('{VERSION}', '{HEADER}', '{TOMBSTONE}') ORDER BY c.entry"
)


class _Occupied(Exception):
    """Another version has that number."""


class _Source(NamedTuple):
    """A version to copy, and its destination."""

    fork: Fork
    scope: Scope
    key: ArtifactKey  # of the copy
    found: Document
    alone: asyncio.Lock  # for copying payloads


class Copying:
    """Copies artifacts into forks. May be interrupted at any moment: another call continues."""

    def __init__(self, shared: Collaborators, saving: Saving, load: Load) -> None:
        self._container = shared.container
        self._versions = shared.versions
        self._payloads = shared.payloads
        self._collecting = shared.collecting
        self._saving = saving
        self._load = load

    async def has_copies(self, fork: Fork, source: Scope, target: Scope) -> bool:
        """Raises AlreadyExistsError if an artifact to copy already exists in the target, and
        ConfigurationError if this service cannot reach a payload."""
        wanted = await self._wanted(fork, source)
        if not wanted:
            return False
        for versions in wanted.values():
            for each in versions:
                if "store" in each:
                    self._payloads.bodies_of(each["store"])
        if wanted.keys() & (await self._alive(target)).keys():
            raise AlreadyExistsError(
                "fork_session: there are artifacts of a session with the new id already. Nothing"
                " was stored."
            )
        return True

    async def copy(self, fork: Fork, source: Scope, target: Scope) -> None:
        wanted, there = await self._wanted(fork, source), await self._alive(target)
        alone = asyncio.Lock()

        async def copy(name: str) -> None:
            copied = {each["version"]: each["save"] for each in there.get(name, ())}
            with contextlib.suppress(_Occupied, NotFound):  # saved or deleted meanwhile
                for found in wanted[name]:
                    if copied.get(found["version"]) != found["save"]:
                        key = ArtifactKey(target, name)
                        await self._copy(_Source(fork, source, key, found, alone))

        names = list(wanted)
        for start in range(0, len(names), _AT_ONCE):
            await together(*map(copy, names[start : start + _AT_ONCE]))

    # --- which ones

    async def _alive(self, scope: Scope) -> dict[str, list[Document]]:
        """The versions of every name, in order, without payloads."""
        # After a probe, a read is at least as new as what was acknowledged before.
        await self._container.probe("p", scope.partition)
        entries: defaultdict[str, list[Document]] = defaultdict(list)
        for each in await self._container.query(ENTRIES, {}, scope.partition):
            name = name_digest_of(each["id"])
            if each["document_type"] == TOMBSTONE:
                entries[name].clear()
            else:
                entries[name].append(each)
        return {found[0]["filename"]: found for found in entries.values() if found}

    async def _wanted(self, fork: Fork, source: Scope) -> dict[str, list[Document]]:
        """The versions of every name that the fork copies."""
        alive = await self._alive(source)
        # Versions before one that an event names existed at the point, whatever the clocks say.
        until = max(
            (
                created_at(each)
                for name, versions in alive.items()
                for each in versions
                if each["version"] <= fork.artifacts.get(name, -1)
            ),
            default=fork.until,
        )
        until = max(until, fork.until)
        wanted = {}
        for name, versions in alive.items():
            last = max(
                (each["version"] for each in versions if created_at(each) <= until), default=-1
            )
            chosen = [each for each in versions if each["version"] <= last]
            if chosen:
                wanted[name] = chosen
        return wanted

    # --- one version

    async def _copy(self, source: _Source) -> None:
        """Raises NotFound if it has been deleted, and _Occupied."""
        original = version_id(source.found["id"])
        found: Any = await self._container.read(original, source.scope.partition)
        if found.get("save") != source.found["save"]:
            raise NotFound
        fields = {name: found[name] for name in _FIELDS if name in found}
        fields["saved_at"] = created_at(found)
        if "payload" in fields:
            async with source.alone:  # equal bytes are copied once
                await self._create_with_payload(source, fields, self._from_source)
        elif "bytes" in fields:
            await self._create(source, fields)
        else:
            await self._copy_reference(source, fields)

    async def _copy_reference(self, source: _Source, fields: Document) -> None:
        """Makes the reference point to the copies. If another user could not reach its target, the
        target's content replaces it."""
        fork = source.fork
        try:
            part = part_of(fields["part"])
        except (KeyError, TypeError, ValueError):  # damaged, like the original
            return await self._create(source, fields)
        uri = reference_of(part)
        target = None if uri is None else parse_artifact_uri(uri)
        own = target is not None and target.user_id == fork.source.user_id
        if target is None or not own or target.app_name != fork.source.app_name:
            return await self._create(source, fields)
        if target.session_id == fork.source.session_id:
            assert part.file_data is not None
            moved = get_artifact_uri(
                fork.target.app_name,
                fork.target.user_id,
                target.filename,
                target.version,
                fork.target.session_id,
            )
            data = part.file_data.model_copy(update={"file_uri": moved})
            fields["part"] = encode_value(part.model_copy(update={"file_data": data}))
        elif target.session_id is None and fork.target.user_id != fork.source.user_id:
            return await self._copy_content(source, fields, target.filename, target.version)
        return await self._create(source, fields)

    async def _copy_content(
        self, source: _Source, fields: Document, filename: str, version: int
    ) -> None:
        owner = source.fork.source
        shared = Scope(owner.app_name, owner.user_id, None)
        try:
            part = await self._load(ArtifactKey(shared, filename), version)
        except (DamagedArtifactError, InputValidationError):
            return await self._create(source, fields)
        rest, mime_type, payload = divided(ABSENT if part is None else part)
        fields |= {"part": rest} | ({} if mime_type is None else {"mime_type": mime_type})
        if payload is None:
            return await self._create(source, fields)
        fields["bytes"] = len(payload)
        if len(payload) <= self._saving.limits.inline:
            fields |= inline_fields(payload)
            return await self._create(source, fields)

        async def from_memory(source: _Source, fields: Document) -> Upload:
            digests = await self._payloads.digests(payload)
            described = self._payloads.describe(digests)
            same, _ = await self._saving.stored(source.key, len(payload), described)
            if same is not None:
                return same
            upload = await self._payloads.begin(source.key.scope, len(payload))
            return await self._saving.upload(upload, payload, digests)

        return await self._create_with_payload(source, fields, from_memory)

    async def _create_with_payload(
        self, source: _Source, fields: Document, store: Callable[..., Awaitable[Upload | None]]
    ) -> None:
        for attempt in CONTENTION:
            await CONTENTION.pause(attempt)
            upload = await store(source, fields)
            with contextlib.suppress(PayloadGone):
                return await self._create(source, fields, upload)
        raise UnavailableError(
            "copy_artifacts: others kept using or removing a payload. The fork is not"
            " complete; reading it continues."
        )

    async def _from_source(self, source: _Source, fields: Document) -> Upload | None:
        """A payload that belongs to the fork: erasing the original does not affect it. None if the
        original is damaged: then the copy is damaged too."""
        scope = source.key.scope
        try:
            extent = extent_of(fields)
        except DamagedArtifactError:
            fields["payload"] = _nothing()
            return None
        same, _ = await self._saving.stored(source.key, extent.bytes, fields["payload"])
        if same is not None:
            return same
        upload = await self._payloads.begin(scope, extent.bytes, extent.store)
        try:
            await self._fill(upload, source.scope, extent)
        except MissingPiece:
            await self._collecting.discard(upload)
            key = ArtifactKey(source.scope, source.key.filename)
            now = await self._versions.find(key, source.found["version"])
            if now is None or now["save"] != fields["save"]:
                raise NotFound from None
            fields["payload"] |= _nothing()
            return None
        except Exception:
            await self._collecting.discard(upload)
            raise
        upload.name_as(fields["payload"])
        return upload

    async def _fill(self, upload: Upload, source: Scope, extent: Extent) -> None:
        """Raises MissingPiece."""
        sizes = [extent.size_of(number) for number in range(extent.pieces)]
        await upload.bodies.copy(source, extent.upload, upload.scope, upload.name, sizes)

    async def _create(
        self, source: _Source, fields: Document, upload: Upload | None = None
    ) -> None:
        """Creates the version under its own number, unless it exists. Raises _Occupied and
        PayloadGone."""
        if upload is not None:
            fields = fields | {"payload": upload.named}
        try:
            made = await self._commit(source.key, source.found["version"], fields, upload)
        except (StorageError, PayloadGone, _Occupied):
            if upload is not None and upload.is_new:  # kept if a version names it
                await self._collecting.discard(upload)
            raise
        if not made and upload is not None and upload.is_new:
            await self._collecting.discard(upload)

    async def _commit(
        self, key: ArtifactKey, version: int, fields: Document, upload: Upload | None
    ) -> bool:
        """False if it already existed."""
        target = self._versions.guess(key)
        for attempt in CONTENTION:
            await CONTENTION.pause(attempt - 1)
            refused: Exception | None = None
            if target.version == version:
                document = version_document(key, target.seq, version, fields)
                try:
                    await self._saving.write(key, target, document, upload)
                except (Conflict, PreconditionFailed, NotFound, BatchRefused) as error:
                    refused = error
                else:
                    self._versions.seen(key, document)
                    return True
            self._versions.forget(key)
            there = await self._versions.find(key, version)
            if there is not None:
                if there["save"] != fields["save"]:
                    raise _Occupied
                self._versions.seen(key, there)
                return False
            following = await self._saving.next_target(key)
            if following.version > version:
                raise _Occupied
            if upload is not None and refused is not None:
                unchanged = following == target
                if await self._saving.is_gone(upload, refused, unchanged=unchanged):
                    raise PayloadGone
            target = following
        raise UnavailableError(
            "copy_artifacts: others keep saving or deleting the same name. The fork is not"
            " complete; reading it continues."
        )


def _nothing() -> Document:
    """The `payload` field of a version whose payload is missing."""
    return {"upload": secrets.token_hex(16), "use": 0, "digest": ""}
