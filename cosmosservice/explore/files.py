"""Artifacts as the page shows them: names with their versions, and the content of a version."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from google.adk.errors.input_validation_error import InputValidationError

from cosmosservice.artifacts.keys import Scope
from cosmosservice.artifacts.reading import created_at
from cosmosservice.explore.conversation import IMAGES, Block, ImageBudget, part_blocks
from cosmosservice.explore.queries import FILES_OF_SCOPE, FILES_OF_USER
from cosmosservice.explore.session_log import Entry, LogPage
from cosmosservice.explore.texts import LONGEST, natural, visible
from cosmosservice.hosting.operation import Bounded
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.records import number

if TYPE_CHECKING:
    from cosmosservice.account.container import Document
    from cosmosservice.artifacts.streams import ArtifactReader
    from cosmosservice.cosmos_artifact_service import CosmosArtifactService

_MOST: Final = 200  # versions that a list reads
_TEXTS: Final = ("application/json", "application/xml", "application/yaml", "application/x-yaml")


@dataclass(frozen=True)
class FileVersion:
    number: int
    mime_type: str
    size: int
    saved_at: float
    since: int = 0  # the first event of the shown page that can know of it


@dataclass
class File:
    """One artifact, the newest version first. Without a session, all sessions of the user share
    it."""

    key: SessionKey
    name: str
    versions: list[FileVersion] = field(default_factory=list)


class Files:
    """The page's requests to the artifact service."""

    def __init__(self, service: CosmosArtifactService) -> None:
        self._service = service

    async def of_user(self, key: SessionKey) -> list[File]:
        """The artifacts of all sessions of the user, and those that the sessions share."""
        parameters = {"app": key.app_name, "user": key.user_id, "limit": _MOST}
        found: list[Document] = await self._service.in_store(
            Bounded("list_artifact_keys"),
            lambda store: store.container.query(FILES_OF_USER, parameters),
        )
        return _files(key, found)

    async def of_session(self, key: SessionKey) -> list[File]:
        """The artifacts of the session, and those that all sessions of its user share."""
        found: list[Document] = []
        for session in (key.session_id, None):
            partition = Scope(key.app_name, key.user_id, session).partition
            found += await self._in(partition)
        return _files(key, found)

    async def _in(self, partition: str) -> list[Document]:
        parameters = {"limit": _MOST}
        found: list[Document] = await self._service.in_store(
            Bounded("list_artifact_keys"),
            lambda store: store.container.query(FILES_OF_SCOPE, parameters, partition),
        )
        return found

    async def versions(self, key: SessionKey, name: str) -> list[FileVersion]:
        """The newest first."""
        found = await self._service.list_artifact_versions(**_names(key), filename=name)
        return [
            FileVersion(each.version, each.mime_type or "", -1, each.create_time)
            for each in reversed(found)
        ]

    async def open(self, key: SessionKey, name: str, version: int | None) -> ArtifactReader | None:
        """Opens it to read it in parts. Raises InputValidationError if it has no bytes itself."""
        return await self._service.open_artifact(**_names(key), filename=name, version=version)

    async def blocks(self, key: SessionKey, name: str, version: int | None) -> list[Block]:
        """The part of a version that can be shown, without reading more; empty if there is none."""
        try:
            reader = await self.open(key, name, version)
        except InputValidationError:  # it refers to data elsewhere
            part = await self._service.load_artifact(**_names(key), filename=name, version=version)
            return [] if part is None else list(part_blocks(part, ImageBudget()))
        if reader is None:
            return []
        kind = (reader.mime_type or "").lower()
        if kind in IMAGES:
            return [Block("artifact", name, version=reader.version, is_image=True)]
        caption = Block("note", f"{kind or 'data'}, {reader.size:,} bytes")
        if kind.startswith("text/") or kind in _TEXTS or kind.endswith(("+json", "+xml")):
            begin = await reader.read(0, LONGEST)
            text = begin.decode("utf-8", "replace")
            more = f" … ({reader.size - len(begin):,} more bytes)" if reader.size > LONGEST else ""
            return [Block("text", text + more), caption]
        return [caption]


def _names(key: SessionKey) -> dict[str, Any]:
    return {
        "app_name": key.app_name,
        "user_id": key.user_id,
        "session_id": key.session_id or None,
    }


def _files(key: SessionKey, found: Iterable[Document]) -> list[File]:
    files: dict[tuple[str, str], File] = {}
    for body in found:
        session, name = str(body.get("session_id") or ""), str(body.get("filename"))
        owner = SessionKey(key.app_name, key.user_id, session)
        file = files.setdefault((session, name), File(owner, name))
        file.versions.append(
            FileVersion(
                int(number(body.get("version"))),
                str(body.get("mime_type") or ""),
                int(number(body.get("bytes"))),
                created_at(body),
            )
        )
    for file in files.values():
        file.versions.sort(key=lambda each: -each.number)
    return [
        files[each] for each in sorted(files, key=lambda names: [natural(each) for each in names])
    ]


def saved_as(name: str) -> str:
    """The header that saves a file under this name: without folders and without characters that
    hide its end."""
    last = visible(re.split(r"[/\\]", name)[-1]).replace("\\", "_")
    last = last.removeprefix("user:").lstrip(".") or "artifact"
    return f"attachment; filename*=UTF-8''{quote(last, safe='')}"


def with_events(files: list[File], page: LogPage) -> list[File]:
    """The same, with the event that each version belongs to: the one that names it or, if none on
    the page does, the first one after it was saved."""
    named: dict[tuple[str, int], int] = {}
    for entry in page.entries:
        delta = entry.event.actions.artifact_delta if entry.event else {}
        for name, version in (delta or {}).items():
            named.setdefault((name, version), entry.revision)
    return [
        replace(file, versions=[_dated(file.name, each, named, page) for each in file.versions])
        for file in files
    ]


def _dated(
    name: str, version: FileVersion, named: dict[tuple[str, int], int], page: LogPage
) -> FileVersion:
    since = named.get((name, version.number))
    if since is None:
        later = (each.revision for each in page.entries if _time(each) >= version.saved_at)
        since = next(later, page.head.last + 1 if page.later is None else page.later + 1)
        if page.entries and since == page.entries[0].revision:
            since = 0  # it may be older than the page
    return replace(version, since=since)


def _time(entry: Entry) -> float:
    return entry.event.timestamp if entry.event else entry.timestamp
