"""What a file of sessions may have beside them: deleted sessions, memories, artifacts.

{"session": {…, "deleted": true}}, followed by its events
{"memory": {…}}      a document of the memory service, without its vector
{"artifact": {"app_name", "user_id", "session_id", "filename", "version", "metadata", "part"}}
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, NamedTuple

from google.adk.artifacts.base_artifact_service import ArtifactVersion
from google.adk.sessions import Session
from google.genai import types

from cosmosservice import (
    ContainerMismatchError,
    CosmosArtifactService,
    CosmosMemoryService,
    CosmosSessionService,
    SessionNotFoundError,
)
from cosmosservice.account.container import Document
from cosmosservice.artifacts.keys import USER_PREFIX
from cosmosservice.cli.artifact_copies import Copy, Scope
from cosmosservice.cli.memory_copies import documents_of
from cosmosservice.cli.reports import TO_COPY, Copies
from cosmosservice.data_converters import to_json
from cosmosservice.explore.session_log import SessionLog
from cosmosservice.hosting.operation import Background
from cosmosservice.memory import copying
from cosmosservice.memory.documents import MEMORY, Owner
from cosmosservice.memory.sources import INCARNATIONS
from cosmosservice.sessions.store.keys import SessionKey

DELETED, MEMORIES, ARTIFACTS = KINDS = ("deleted", "memories", "artifacts")
_AT_ONCE = 500  # events, documents


class Chosen(NamedTuple):
    """Whose are exported. None: all."""

    app_name: str | None
    user_id: str | None
    session_id: str | None

    def has(self, app_name: str, user_id: str, session_id: str | None) -> bool:
        given = (app_name, user_id, session_id)
        return all(
            wanted is None or wanted == each for wanted, each in zip(self, given, strict=True)
        )


async def deleted_sessions(
    service: CosmosSessionService, apps: Iterable[str], chosen: Chosen
) -> AsyncIterator[Session]:
    """With their events. Those that were restored or purged since are left out."""
    for app_name in apps:
        continuation = None
        while True:
            page = await service.list_sessions_page(
                app_name=app_name,
                user_id=chosen.user_id,
                limit=_AT_ONCE,
                deleted=True,
                by_id=True,
                continuation=continuation,
            )
            for each in page.sessions:
                if chosen.session_id in (None, each.id):
                    session = await _deleted(service, each)
                    if session is not None:
                        yield session
            continuation = page.continuation
            if continuation is None:
                break


async def _deleted(service: CosmosSessionService, session: Session) -> Session | None:
    key = SessionKey.of(session.app_name, session.user_id, session.id)
    log = SessionLog(service, key)
    try:
        head = await log.head()
    except SessionNotFoundError:
        return None
    if not head.deleted:
        return None
    events, end = [], head.first
    while end < head.last:
        page = await log.page(head, after=end, count=_AT_ONCE)
        events += [each.event for each in page.entries if each.event is not None]
        end += _AT_ONCE
    # Deleting counts as use; the session came to its end with its last event.
    used = events[-1].timestamp if events else head.last_update_time
    state = {"state": head.state, "events": events, "last_update_time": used}
    return session.model_copy(update=state)


async def memory_lines(service: CosmosMemoryService, chosen: Chosen) -> AsyncIterator[Document]:
    try:
        apps = await service.in_store(
            Background("migrate"), lambda store: copying.apps_in(store.container)
        )
    except ContainerMismatchError:  # not used here
        return
    for app_name, owner in sorted(apps):
        if chosen.app_name not in (None, app_name):
            continue
        if chosen.user_id is not None and owner != Owner.of(app_name, chosen.user_id).key:
            continue
        found = await service.in_store(Background("migrate"), _reading(owner))
        for document in sorted(found, key=lambda each: (each.get("kind") == MEMORY, each["id"])):
            if chosen.session_id in (None, document.get("session_id")):
                yield {"memory": _lasting(document)}


def _reading(owner: str) -> Callable[..., Any]:
    return lambda store: copying.documents_in(store.container, owner)


def _lasting(document: Document) -> Document:
    """Without what belongs to this store alone. An expiry is counted from `_ts`."""
    ttl = "ttl" in document
    return {
        name: value
        for name, value in document.items()
        if name not in INCARNATIONS and (name[0] != "_" or (ttl and name == "_ts"))
    }


async def artifact_lines(service: CosmosArtifactService, chosen: Chosen) -> AsyncIterator[Document]:
    """Version by version."""
    try:
        found = await service.in_store(Background("migrate"), lambda store: store.scopes())
    except ContainerMismatchError:
        return
    scopes = [Scope(each.app_name, each.user_id, each.session_id) for each in found]
    for scope in sorted(scopes, key=str):
        if not chosen.has(*scope):
            continue
        for filename in await service.list_artifact_keys(**scope._asdict()):
            if scope.session_id is not None and filename.startswith(USER_PREFIX):
                continue  # it belongs to the user's scope
            name: dict[str, Any] = {**scope._asdict(), "filename": filename}
            for each in await service.list_artifact_versions(**name):
                part = await service.load_artifact(**name, version=each.version)
                yield {
                    "artifact": {
                        **name,
                        "version": each.version,
                        "metadata": each.custom_metadata,
                        "part": part and part.model_dump(mode="json", exclude_none=True),
                    }
                }


def is_memory(line: Document) -> bool:
    return bool(line["memory"].get("kind") == MEMORY)


async def put_memories(
    found: Iterable[Document], target: CosmosMemoryService | None, copies: Copies
) -> None:
    """The documents are in the order in which they may be written."""
    waiting: list[Document] = []

    async def put() -> None:
        if target is None:
            copies.outcomes[TO_COPY] += sum(each.get("kind") == MEMORY for each in waiting)
        else:
            work = documents_of(tuple(waiting))
            copies.outcomes.update(await target.in_store(Background("migrate"), work))
        waiting.clear()

    for document in found:
        waiting.append(document)
        if len(waiting) == _AT_ONCE:
            await put()
    await put()
    for wrong in (copying.DIFFERENT, copying.LOST):
        if copies.outcomes[wrong]:
            copies.problems.append(f"memories: {copies.outcomes[wrong]:,} are {wrong}")


class Memory(NamedTuple):
    """A document of the memory service in a file."""

    document: Document


class Version(NamedTuple):
    """A version of an artifact in a file."""

    name: dict[str, Any]
    version: int
    metadata: dict[str, Any]
    part: types.Part | None


def version_of(body: Document) -> Version:
    """Raises ValueError or KeyError if it is none."""
    name = {each: body[each] for each in ("app_name", "user_id", "session_id", "filename")}
    part = body["part"]
    return Version(
        name,
        int(body["version"]),
        dict(body["metadata"] or {}),
        None if part is None else types.Part.model_validate_json(to_json(part)),
    )


async def put_artifact(
    versions: Iterable[Version], target: CosmosArtifactService | None, copies: Copies
) -> None:
    """All versions of one artifact."""
    found = {each.version: each for each in versions}
    name = next(iter(found.values())).name

    async def load(version: int) -> types.Part | None:
        return found[version].part

    await Copy(load, target, name, copies).run(
        [
            ArtifactVersion(version=each.version, canonical_uri="", custom_metadata=each.metadata)
            for each in found.values()
        ]
    )
