"""What the pages that only read have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cosmosservice.cosmos_session_service import CosmosSessionService
    from cosmosservice.explore.catalogue import Catalogue
    from cosmosservice.explore.dependants import Dependants
    from cosmosservice.explore.rendering import Rendering


class Reads:
    def __init__(
        self,
        service: CosmosSessionService,
        catalogue: Catalogue,
        dependants: Dependants,
        rendering: Rendering,
    ) -> None:
        self._service = service
        self._catalogue = catalogue
        self._dependants = dependants
        self._rendering = rendering
