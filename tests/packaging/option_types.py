"""Wrong options that a type checker finds. `make types` fails if one is no longer an error."""

from cosmosservice import (
    CosmosAccount,
    CosmosArtifactService,
    CosmosMemoryService,
    CosmosSessionService,
)


def misspelled() -> None:
    CosmosAccount(tiemout=3)  # type: ignore[call-arg]
    CosmosSessionService(tiemout=3)  # type: ignore[call-arg]
    CosmosSessionService.embedded(on_conflct="rebase")  # type: ignore[call-arg]
    CosmosMemoryService.embedded(reslts=3)  # type: ignore[call-arg]
    CosmosArtifactService.embedded(blbs="embedded")  # type: ignore[call-arg]
    CosmosAccount.embedded(ensur="create")  # type: ignore[call-arg]


def of_another_value() -> None:
    CosmosSessionService.embedded(on_conflict="merge")  # type: ignore[arg-type]
    CosmosSessionService(on_conflict="merge")  # type: ignore[arg-type]
    CosmosAccount(ensure="sometimes")  # type: ignore[arg-type]


def as_they_should_be() -> None:
    CosmosSessionService.embedded("agent.db", on_conflict="rebase", ttl=3600)
    CosmosAccount(preferred_regions=["West Europe"], client_options={"user_agent_suffix": "mine"})
