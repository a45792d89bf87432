"""Session, memory and artifact services of Google ADK on Azure Cosmos DB."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cosmosservice.version import __version__

if TYPE_CHECKING:
    from cosmosservice.account.account import CosmosAccount
    from cosmosservice.account.charges import RequestCharge
    from cosmosservice.artifacts.sweeping import ArtifactPurgeReport, SweepReport
    from cosmosservice.cosmos_artifact_service import ArtifactReader, CosmosArtifactService
    from cosmosservice.cosmos_memory_service import CosmosMemoryService
    from cosmosservice.cosmos_session_service import CosmosSessionService
    from cosmosservice.data_converters import register_classes
    from cosmosservice.errors import (
        AlreadyExistsError,
        AuthenticationError,
        ConfigurationError,
        ContainerMismatchError,
        CosmosServiceError,
        DamagedArtifactError,
        EventIdReusedError,
        InvalidIdError,
        InvalidStateError,
        MultipleWriteRegionsError,
        SessionNotFoundError,
        StaleSessionError,
        StateUpdatePendingError,
        StorageError,
        ThrottledError,
        TooLargeError,
        UnavailableError,
    )
    from cosmosservice.memory.backfill import EmbedReport
    from cosmosservice.memory.forgetting import MemoryPurgeReport
    from cosmosservice.sessions.administration import PurgeReport
    from cosmosservice.sessions.browsing import SessionPage
    from cosmosservice.sessions.importing import ImportOutcome
    from cosmosservice.sessions.store.repair import RepairReport
    from cosmosservice.sessions.store.usage import SessionUsage, Usage, UsageReport
    from cosmosservice.sessions.watching import SessionChange, SessionWatch

__all__ = [
    "AlreadyExistsError",
    "ArtifactPurgeReport",
    "ArtifactReader",
    "AuthenticationError",
    "ConfigurationError",
    "ContainerMismatchError",
    "CosmosAccount",
    "CosmosArtifactService",
    "CosmosMemoryService",
    "CosmosServiceError",
    "CosmosSessionService",
    "DamagedArtifactError",
    "EmbedReport",
    "EventIdReusedError",
    "ImportOutcome",
    "InvalidIdError",
    "InvalidStateError",
    "MemoryPurgeReport",
    "MultipleWriteRegionsError",
    "PurgeReport",
    "RepairReport",
    "RequestCharge",
    "SessionChange",
    "SessionNotFoundError",
    "SessionPage",
    "SessionUsage",
    "SessionWatch",
    "StaleSessionError",
    "StateUpdatePendingError",
    "StorageError",
    "SweepReport",
    "ThrottledError",
    "TooLargeError",
    "UnavailableError",
    "Usage",
    "UsageReport",
    "__version__",
    "register_classes",
]

_MODULES = {
    "ArtifactPurgeReport": "artifacts.sweeping",
    "ArtifactReader": "cosmos_artifact_service",
    "CosmosAccount": "account.account",
    "CosmosArtifactService": "cosmos_artifact_service",
    "CosmosMemoryService": "cosmos_memory_service",
    "CosmosSessionService": "cosmos_session_service",
    "EmbedReport": "memory.backfill",
    "ImportOutcome": "sessions.importing",
    "MemoryPurgeReport": "memory.forgetting",
    "PurgeReport": "sessions.administration",
    "RepairReport": "sessions.store.repair",
    "RequestCharge": "account.charges",
    "SessionChange": "sessions.watching",
    "SessionPage": "sessions.browsing",
    "SessionUsage": "sessions.store.usage",
    "SessionWatch": "sessions.watching",
    "Usage": "sessions.store.usage",
    "UsageReport": "sessions.store.usage",
    "register_classes": "data_converters",
    "SweepReport": "artifacts.sweeping",
}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    # ADK takes a moment to import. Code that needs only the version or the settings need not wait.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_MODULES.get(name, 'errors')}")
    return getattr(module, name)
