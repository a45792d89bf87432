"""Memories and artifacts: what a store may hold of users besides their sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from cosmosservice.artifacts.documents import ARTIFACTS_CONTAINER
from cosmosservice.cosmos_artifact_service import CosmosArtifactService
from cosmosservice.cosmos_memory_service import CosmosMemoryService
from cosmosservice.errors import ContainerMismatchError
from cosmosservice.explore.files import Files
from cosmosservice.memory.definition import MEMORIES_CONTAINER

if TYPE_CHECKING:
    from cosmosservice.account.account import CosmosAccount
    from cosmosservice.account.definitions import ContainerDefinition


@dataclass(frozen=True)
class Dependants:
    """The page has no section for a service that is None."""

    memory: CosmosMemoryService | None = None
    artifacts: CosmosArtifactService | None = None

    @property
    def files(self) -> Files | None:
        return None if self.artifacts is None else Files(self.artifacts)

    @classmethod
    async def on(cls, account: CosmosAccount) -> Self:
        return cls(
            CosmosMemoryService(account=account)
            if await _has(account, MEMORIES_CONTAINER)
            else None,
            CosmosArtifactService(account=account)
            if await _has(account, ARTIFACTS_CONTAINER)
            else None,
        )


async def _has(account: CosmosAccount, container: ContainerDefinition) -> bool:
    try:
        await account.open_containers([container])
    except ContainerMismatchError:
        return False
    return True
