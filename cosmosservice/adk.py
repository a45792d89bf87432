"""Registers the scheme `cosmosdb://` with ADK's command line: importing this module is enough.

    adk web --session_service_uri="cosmosdb://<account>.documents.azure.com/<database>" agents
    adk web --session_service_uri="cosmosdb://embedded/sessions.db?remember=true" agents
    adk web --memory_service_uri="cosmosdb://embedded/sessions.db" agents
    adk web --artifact_service_uri="cosmosdb://embedded/sessions.db" agents

ADK looks for `services.py` or `services.yaml` in the agents folder (`adk run`: in the agent's own).
`services.py` imports this module, `services.yaml` names the three functions below. `cosmosservice
init-agent` writes either.

ADK takes a ModuleNotFoundError in `services.py` for "there is no services.py" and goes on, to fail
later with "Invalid database URL format". So nothing is imported here that could be missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.adk.cli.service_registry import get_service_registry

if TYPE_CHECKING:
    from google.adk.artifacts.base_artifact_service import BaseArtifactService
    from google.adk.memory.base_memory_service import BaseMemoryService
    from google.adk.sessions.base_session_service import BaseSessionService

SCHEME = "cosmosdb"


def session_service(uri: str, agents_dir: str | None = None, **options: Any) -> BaseSessionService:
    """The service for `--session_service_uri`. ADK passes `agents_dir` to every factory. With
    `?remember=true`, what is said becomes memories of the same account by itself."""
    from cosmosservice import CosmosMemoryService, CosmosSessionService
    from cosmosservice.account.settings import remembers

    if "memory" not in options and remembers(uri):
        options["memory"] = CosmosMemoryService(uri=uri)
    return CosmosSessionService(uri=uri, **options)


def artifact_service(
    uri: str, agents_dir: str | None = None, **options: Any
) -> BaseArtifactService:
    """The service for `--artifact_service_uri`."""
    from cosmosservice import CosmosArtifactService

    return CosmosArtifactService(uri=uri, **options)


def memory_service(uri: str, agents_dir: str | None = None, **options: Any) -> BaseMemoryService:
    """The service for `--memory_service_uri`."""
    from cosmosservice import CosmosMemoryService

    return CosmosMemoryService(uri=uri, **options)


get_service_registry().register_memory_service(SCHEME, memory_service)
get_service_registry().register_session_service(SCHEME, session_service)
get_service_registry().register_artifact_service(SCHEME, artifact_service)
