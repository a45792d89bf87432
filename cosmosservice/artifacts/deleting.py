"""Deleting a name: a tombstone ends it, then everything before the tombstone is removed.

The tombstone takes the next sequence number of the name, as a version would. So a concurrent save
is either before it, and deleted too, or after it, and begins the name anew. Deleted versions become
stubs, because a save with stale knowledge could take a freed number.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from cosmosservice.account.container import Delete, Document, Put
from cosmosservice.account.failures import BatchRefused, Conflict, NotFound, PreconditionFailed
from cosmosservice.account.retries import CONTENTION
from cosmosservice.artifacts.collaborators import Collaborators
from cosmosservice.artifacts.documents import (
    HEADER,
    STUB,
    TOMBSTONE,
    is_version,
    stub_document,
    tombstone_document,
)
from cosmosservice.artifacts.keys import (
    ArtifactKey,
    Scope,
    entries_of,
    entry_id,
    name_digest_of,
    seq_of,
)
from cosmosservice.artifacts.versions import ALL
from cosmosservice.errors import UnavailableError
from cosmosservice.hosting.concurrency import together

_AT_ONCE = 8


class Deleted(NamedTuple):
    """What a deletion removed."""

    versions: int
    payloads: int  # those outside version documents


NOTHING = Deleted(0, 0)


class Deletion:
    """May be interrupted at any point: another call continues."""

    def __init__(self, shared: Collaborators) -> None:
        self._container = shared.container
        self._versions = shared.versions
        self._collecting = shared.collecting

    async def delete(self, key: ArtifactKey) -> Deleted:
        probed = False
        for attempt in CONTENTION:
            await CONTENTION.pause(attempt)
            self._versions.forget(key)
            found = await self._versions.entries(key)
            if not found or found[-1]["document_type"] == STUB:
                # Nothing to delete, as far as this replica shows.
                if probed or not await self._container.probe(key.entry_id(0), key.partition):
                    return NOTHING
                probed = True
                continue
            deleted = await self.end(key.scope, found)
            if deleted is not None:
                return deleted
        raise UnavailableError(
            "delete_artifact: others keep saving the artifact. It is not deleted."
        )

    async def end(self, scope: Scope, entries: list[Document]) -> Deleted | None:
        """Deletes a name with these entries, and nothing that is saved after them. None if another
        save or delete was faster, or our response was lost: read again."""
        head = entries[-1]
        if head["document_type"] == TOMBSTONE:
            return await self.finish(scope, entries)
        seq = seq_of(head["id"]) + 1
        document_id = entry_id(name_digest_of(head["id"]), seq)
        tombstone = tombstone_document(document_id, scope.partition)
        try:
            etag = await self._container.create(tombstone)
        except Conflict:
            return None
        return await self.finish(scope, [*entries, tombstone | {"_etag": etag}])

    async def finish(self, scope: Scope, entries: list[Document]) -> Deleted:
        """Does the work that a tombstone at the end announces."""
        tombstone = entries[-1]
        removed = await self.bury(scope.partition, entries)
        dead = {each["upload"]: each for each in entries[:-1] if "upload" in each}
        collected = await self._collecting.collect(scope, dead.values())
        if "ttl" not in tombstone:
            cleaned = tombstone_document(tombstone["id"], scope.partition, cleaned=True)
            # Another process may have done it, or saved a new version there.
            with contextlib.suppress(PreconditionFailed, NotFound):
                await self._container.replace(cleaned, tombstone["_etag"])
        return Deleted(removed, collected.payloads)

    async def bury(self, partition: str, entries: list[Document]) -> int:
        """Turns dead versions into stubs. Only then may anything replace the tombstone."""
        dead = [each for each in entries[:-1] if is_version(each)]

        async def replace(body: Document) -> None:
            stub, etag = stub_document(body, partition), body["_etag"]
            with contextlib.suppress(PreconditionFailed, NotFound, BatchRefused):  # it is one
                if body["document_type"] == HEADER:
                    # As long as the header has this etag, its version is there.
                    await self._container.batch(partition, [Delete(body["id"], etag), Put(stub)])
                else:
                    await self._container.replace(stub, etag)

        for start in range(0, len(dead), _AT_ONCE):
            await together(*map(replace, dead[start : start + _AT_ONCE]))
        return len(dead)

    async def forget_name(self, partition: str, name: str) -> bool:
        """Removes the stub with number 0 if nothing else is left of a deleted name. A concurrent
        save of the name replaces that stub, so that one of the two fails."""
        first = entry_id(name, 0)
        found = await self._container.query(ALL, entries_of(name), partition)
        if len(found) != 1 or found[0]["id"] != first or found[0]["document_type"] != STUB:
            return False
        try:
            await self._container.delete(first, partition, found[0]["_etag"])
        except (PreconditionFailed, NotFound):
            return False
        return True
