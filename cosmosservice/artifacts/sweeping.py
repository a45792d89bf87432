"""Erases a scope for good, and removes what interrupted saves and deletes left behind."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from cosmosservice.account.container import Document
from cosmosservice.account.dependants import Stands, Superseded
from cosmosservice.account.failures import NotFound, PreconditionFailed
from cosmosservice.artifacts.bodies import BLOBS
from cosmosservice.artifacts.collaborators import Collaborators
from cosmosservice.artifacts.deleting import NOTHING, Deletion
from cosmosservice.artifacts.documents import (
    DESCRIBES_VERSION,
    HEADER,
    PIECE,
    REMOVED,
    STUB,
    TOMBSTONE,
    UPLOAD,
    VERSION,
)
from cosmosservice.artifacts.keys import Scope, entries_of, name_digest_of
from cosmosservice.artifacts.versions import ALL, OF_SCOPE
from cosmosservice.errors import UnavailableError

Progress = Callable[[int, int], None]  # (scopes done, total scopes)

_ROUNDS = 10
LEFT = (
    f"SELECT c.id, c._etag FROM c WHERE c.document_type IN ('{VERSION}', '{HEADER}', '{PIECE}')"
    f" OR (c.document_type = '{UPLOAD}' AND c.status != '{REMOVED}')"
    " OR NOT IS_DEFINED(c.document_type)"
)
OF_USER = (
    "SELECT DISTINCT c.session_id FROM c WHERE c.app_name = @app AND c.user_id = @user"
    " AND IS_DEFINED(c.session_id)"
)
WITH_VERSIONS = (
    f"SELECT DISTINCT c.app_name, c.user_id, c.session_id FROM c WHERE {DESCRIBES_VERSION}"
)
SWEPT = (
    "SELECT DISTINCT c.scope, c.app_name, c.user_id, c.session_id FROM c"
    f" WHERE c.document_type IN ('{UPLOAD}', '{PIECE}')"
)
UNFINISHED = (
    "SELECT c.id, c.scope, c.document_type FROM c WHERE"
    f" (c.document_type = '{TOMBSTONE}' AND NOT IS_DEFINED(c.ttl)) OR c.document_type = '{STUB}'"
)


@dataclass
class ArtifactPurgeReport:
    """What a purge erased."""

    artifacts: int = 0
    versions: int = 0
    payloads: int = 0  # those outside version documents

    def add(self, other: ArtifactPurgeReport) -> None:
        """Adds what another purge erased."""
        self.artifacts += other.artifacts
        self.versions += other.versions
        self.payloads += other.payloads


@dataclass
class SweepReport:
    """What a sweep removed. It removes nothing that is in use."""

    scopes: int = 0  # that were examined
    payloads: int = 0
    pieces: int = 0  # documents or blobs, of those payloads or without any
    deletions: int = 0  # that were finished
    names: int = 0  # whose last trace was removed


class Sweeping:
    """Erases scopes, and removes what interrupted saves and deletes left."""

    def __init__(self, shared: Collaborators, deletion: Deletion) -> None:
        self._container = shared.container
        self._bodies = shared.bodies
        self._collecting = shared.collecting
        self._deletion = deletion

    # --- erasing

    async def purge(
        self, scope: Scope, stands: Stands | None = None, *, saved_before: float | None = None
    ) -> ArtifactPurgeReport:
        """Deletes every name, then every payload. Ends when a scan finds nothing.

        Erases only what was found before `stands` was asked, and raises Superseded if the answer is
        no. With `saved_before`, only names to which nothing was saved since.
        """
        report = ArtifactPurgeReport()
        left: list[Document] = []
        for _ in range(_ROUNDS):
            # After a probe, a read is at least as new as what was acknowledged before.
            await self._container.probe("p", scope.partition)
            names = await self._names(scope, saved_before)
            uploads = [] if saved_before else await self._collecting.uploads_in(scope)
            if (names or uploads or left) and stands is not None and not await stands():
                raise Superseded
            for entries in names:
                removed = await self._deletion.end(scope, entries) or NOTHING
                report.versions += removed.versions
                report.artifacts += removed.versions > 0
                report.payloads += removed.payloads
            collected = await self._collecting.collect(scope, under_way=uploads)
            ownerless = await self._collecting.collect_ownerless(scope)
            report.payloads += collected.payloads
            if saved_before is not None:
                if not await self._names(scope, saved_before):
                    return report
                continue
            await self._remove_damaged(scope, left)
            left = await self._container.query(LEFT, {}, scope.partition)
            if not left and not ownerless.pieces:
                return report
        raise UnavailableError(
            "purge_artifacts: artifacts are saved while they are erased. Stop what saves them, and"
            " purge again."
        )

    async def _names(self, scope: Scope, saved_before: float | None) -> list[list[Document]]:
        """The entries of every name that is not deleted, or not completely. Raises
        ConfigurationError if this process cannot reach a payload: then nothing is erased."""
        names: defaultdict[str, list[Document]] = defaultdict(list)
        for each in await self._container.query(OF_SCOPE, {}, scope.partition):
            if "document_type" in each:
                names[name_digest_of(each["id"])].append(each)
        found = []
        for entries in names.values():
            head = entries[-1]
            erased = head["document_type"] == STUB
            erased |= head["document_type"] == TOMBSTONE and "ttl" in head
            if not erased and (saved_before is None or head["_ts"] < saved_before):
                found.append(entries)
                for each in entries:
                    if "store" in each:
                        self._collecting.check_reachable(each["store"])
        return found

    async def _remove_damaged(self, scope: Scope, left: list[Document]) -> None:
        """Removes the documents of which nothing has changed in a whole round: their fields are not
        as they should be."""
        for each in left:
            with contextlib.suppress(NotFound, PreconditionFailed):
                await self._container.delete(each["id"], scope.partition, each["_etag"])

    async def scopes_of_user(self, app_name: str, user_id: str) -> list[Scope]:
        """The user's own scope, and those of sessions with artifacts. Probes every range first, so
        that a lagging replica does not hide what other processes have saved."""
        await self._container.probe_everywhere()
        found = await self._container.query(OF_USER, {"app": app_name, "user": user_id})
        sessions = sorted({str(each["session_id"]) for each in found})
        return [Scope(app_name, user_id, session) for session in (None, *sessions)]

    # --- sweeping

    async def sweep(self, progress: Progress | None = None) -> SweepReport:
        """Examines every scope in which a save or a delete may have left something."""
        report = SweepReport()
        unfinished = await self._container.query(UNFINISHED, {})
        found = await self._container.query(SWEPT, {})
        scopes = {body["scope"]: _scope(body) for body in found}
        await self._add_scopes_of_blobs(scopes)
        report.scopes = len(scopes.keys() | {body["scope"] for body in unfinished})
        total = len(scopes) + len(unfinished)
        for done, scope in enumerate(scopes.values(), 1):
            removed = await self._collecting.collect(scope)
            ownerless = await self._collecting.collect_ownerless(scope)
            report.payloads += removed.payloads
            report.pieces += removed.pieces + ownerless.pieces
            if progress is not None:
                progress(done, total)
        for done, body in enumerate(unfinished, len(scopes) + 1):
            await self._finish(body, report)
            if progress is not None:
                progress(done, total)
        return report

    async def _finish(self, body: Document, report: SweepReport) -> None:
        partition, name = body["scope"], name_digest_of(body["id"])
        if body["document_type"] == STUB:
            report.names += await self._deletion.forget_name(partition, name)
            return
        entries = await self._container.query(ALL, entries_of(name), partition)
        if entries and entries[-1]["id"] == body["id"]:
            await self._deletion.finish(Scope.of_partition(partition), entries)
            report.deletions += 1

    async def _add_scopes_of_blobs(self, scopes: dict[str, Scope]) -> None:
        blobs = self._bodies.get(BLOBS)
        if blobs is None:
            return
        async for partition in blobs.partitions():  # type: ignore[attr-defined]
            scopes.setdefault(partition, Scope.of_partition(partition))


def _scope(body: Document) -> Scope:
    scope = Scope(body["app_name"], body["user_id"], body.get("session_id"))
    return scope if scope.partition == body["scope"] else Scope.of_partition(body["scope"])
