"""Copies artifacts from ADK's folders or from another store of this service."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from google.adk.artifacts.base_artifact_service import ArtifactVersion, BaseArtifactService
from google.genai import types

from cosmosservice import CosmosArtifactService
from cosmosservice.artifacts.keys import USER_PREFIX
from cosmosservice.cli.reports import TO_COPY, Copies
from cosmosservice.hosting.operation import Background

# What a rewind leaves, which every service loads as None.
REWOUND = types.Part(inline_data=types.Blob(mime_type="application/octet-stream", data=b""))
_IN_FOLDER = re.compile(r"apps/(.+?)/users/(.+?)(?:/sessions/(.+?))?/artifacts/.+")

Load = Callable[[int], Awaitable[types.Part | None]]  # of one artifact


class Scope(NamedTuple):
    """The scope of a session or, without one, of a user."""

    app_name: str
    user_id: str
    session_id: str | None


class ArtifactSource(Protocol):
    """Artifacts that can be copied."""

    @property
    def service(self) -> BaseArtifactService: ...

    async def scopes(self) -> list[Scope]: ...


class ArtifactFolder:
    """A folder of ADK's FileArtifactService."""

    def __init__(self, folder: Path) -> None:
        from google.adk.artifacts.file_artifact_service import FileArtifactService

        self._folder = folder
        self.service = FileArtifactService(root_dir=folder)

    async def scopes(self) -> list[Scope]:
        return sorted(await asyncio.to_thread(self._scopes), key=str)

    def _scopes(self) -> set[Scope]:
        found = set()
        for path, folders, _ in os.walk(self._folder):
            match = _IN_FOLDER.fullmatch(Path(path).relative_to(self._folder).as_posix())
            if match is not None and "versions" in folders:
                found.add(Scope(*match.groups()))
        return found


class CosmosArtifacts:
    """Another store of this service."""

    def __init__(self, service: CosmosArtifactService) -> None:
        self.service = service

    async def look(self) -> None:
        """Raises ContainerMismatchError if there is no container."""
        await self.service.list_artifact_keys(app_name="nobody", user_id="nobody")

    async def scopes(self) -> list[Scope]:
        found = await self.service.in_store(Background("migrate"), lambda store: store.scopes())
        return sorted(
            (Scope(each.app_name, each.user_id, each.session_id) for each in found), key=str
        )


async def copy_artifacts(
    source: ArtifactSource,
    target: CosmosArtifactService | None,
    apps: Sequence[str],
    copies: Copies,
) -> None:
    """Copies version by version. A version that exists in the target is compared."""
    for scope in await source.scopes():
        if apps and scope.app_name not in apps:
            continue
        for name in await source.service.list_artifact_keys(**scope._asdict()):
            artifact: dict[str, Any] = {**scope._asdict(), "filename": name}
            if scope.session_id is not None and name.startswith(USER_PREFIX):
                continue  # it belongs to the user's scope
            versions = await source.service.list_artifact_versions(**artifact)
            if versions:
                await Copy(_loading(source.service, artifact), target, artifact, copies).run(
                    versions
                )


def _loading(source: BaseArtifactService, artifact: dict[str, Any]) -> Load:
    return lambda version: source.load_artifact(**artifact, version=version)


class Copy:
    """Of one artifact."""

    def __init__(
        self,
        load: Load,
        target: CosmosArtifactService | None,
        artifact: dict[str, Any],
        copies: Copies,
    ) -> None:
        self._load = load
        self._target = target
        self._copies = copies
        name = artifact["filename"]
        # Without a session, ADK's services treat any name as the user's.
        bare = artifact["session_id"] is None and not name.startswith(USER_PREFIX)
        self._to = artifact | {"filename": f"{USER_PREFIX}{name}" if bare else name}

    async def run(self, versions: Sequence[ArtifactVersion]) -> None:
        if [each.version for each in versions] != list(range(len(versions))):
            self._problem("its versions are not numbered from 0 in the source; the copy's are")
        if self._target is None:
            self._copies.outcomes[TO_COPY] += len(versions)
            return
        there = len(await self._target.list_versions(**self._to))
        for number, version in enumerate(versions):
            part = await self._load(version.version)
            if number >= there:
                await self._target.save_artifact(
                    **self._to,
                    artifact=REWOUND if part is None else part,
                    custom_metadata=version.custom_metadata or None,
                )
            if not await self._is_alike(number, version, part):
                self._problem(f"version {number} is another in the target; it was left alone")
                return
            self._copies.outcomes["copied" if number >= there else "already there"] += 1
        if there > len(versions):
            self._problem(f"the target has {there - len(versions):,} more versions")

    async def _is_alike(
        self, number: int, version: ArtifactVersion, part: types.Part | None
    ) -> bool:
        assert self._target is not None
        stored_part = await self._target.load_artifact(**self._to, version=number)
        stored_version = await self._target.get_artifact_version(**self._to, version=number)
        return (
            stored_part == part
            and stored_version is not None
            and stored_version.custom_metadata == version.custom_metadata
        )

    def _problem(self, what: str) -> None:
        where = " / ".join(str(each) for each in self._to.values() if each is not None)
        self._copies.problems.append(f"artifact {where}: {what}")
