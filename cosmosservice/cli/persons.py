"""What a store has of one person, app by app."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from cosmosservice import (
    ContainerMismatchError,
    CosmosArtifactService,
    CosmosMemoryService,
    CosmosSessionService,
)
from cosmosservice.artifacts.keys import Scope
from cosmosservice.cli.console import counted
from cosmosservice.hosting.operation import Background
from cosmosservice.memory import copying
from cosmosservice.memory.documents import Owner


class Found(NamedTuple):
    """What there is of a user in one app. State is not counted."""

    app_name: str
    sessions: int
    deleted: int
    memories: int
    artifacts: int

    @property
    def text(self) -> str:
        if not any(self[1:]):
            return f"app {self.app_name!r}: state, or documents of what was erased"
        also = f" and {self.deleted:,} deleted" if self.deleted else ""
        return (
            f"app {self.app_name!r}: {counted(self.sessions, 'session')}{also},"
            f" {counted(self.memories, 'memory', 'memories')},"
            f" {counted(self.artifacts, 'artifact')}"
        )


async def found_of(service: CosmosSessionService, user_id: str) -> list[Found]:
    """The apps that have anything of the user. It reads indexes of the whole store."""
    await service.catch_up()
    memories = await _memories(CosmosMemoryService(account=service.account), user_id)
    artifacts = await _artifacts(CosmosArtifactService(account=service.account), user_id)
    apps = {*await service.list_apps(user_id=user_id), *memories, *artifacts}
    return [
        Found(
            app_name,
            await service.count_sessions(app_name=app_name, user_id=user_id),
            await service.count_sessions(app_name=app_name, user_id=user_id, deleted=True),
            memories[app_name],
            artifacts[app_name],
        )
        for app_name in sorted(apps)
    ]


async def _memories(service: CosmosMemoryService, user_id: str) -> Counter[str]:
    """How many memories by app. An app of which only remains are left is there with none."""
    found: Counter[str] = Counter()
    try:
        apps = await service.in_store(
            Background("purge_user"), lambda store: copying.apps_in(store.container)
        )
    except ContainerMismatchError:  # not used here
        return found
    for app_name, owner in apps:
        if owner == Owner.of(app_name, user_id).key:
            found[app_name] = 0
            async for _ in service.iter_memories(app_name=app_name, user_id=user_id):
                found[app_name] += 1
    return found


async def _artifacts(service: CosmosArtifactService, user_id: str) -> Counter[str]:
    """How many artifacts by app."""
    found: Counter[str] = Counter()
    try:
        scopes = await service.in_store(Background("purge_user"), lambda store: store.scopes())
    except ContainerMismatchError:
        return found
    for scope in scopes:
        if scope.user_id == user_id:
            found[scope.app_name] += len(await _names(service, scope))
    return found


async def _names(service: CosmosArtifactService, scope: Scope) -> list[str]:
    return await service.in_store(Background("purge_user"), lambda store: store.keys([scope]))
