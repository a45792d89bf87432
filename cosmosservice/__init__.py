"""Durable sessions for Google ADK agents on Azure Cosmos DB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cosmosservice.version import __version__

if TYPE_CHECKING:
    from cosmosservice.account.charges import RequestCharge
    from cosmosservice.cosmos_session_service import CosmosSessionService, SessionPage

__all__ = ["CosmosSessionService", "RequestCharge", "SessionPage", "__version__"]


def __getattr__(name: str) -> Any:
    # ADK takes a moment to import; whoever only wants the version or the settings need not wait.
    if name == "RequestCharge":
        from cosmosservice.account.charges import RequestCharge

        return RequestCharge
    if name in __all__:
        from cosmosservice import cosmos_session_service

        return getattr(cosmos_session_service, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
