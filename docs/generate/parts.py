"""All generated parts by name."""

from __future__ import annotations

from functools import partial

from cosmosservice import CosmosArtifactService, CosmosMemoryService, CosmosSessionService
from docs.generate import bills, charges, configuration, documents, figures
from docs.generate.pages import Parts

PARTS: Parts = {
    "settings": configuration.settings,
    "account-options": configuration.account_options,
    "session-options": partial(configuration.service_options, CosmosSessionService),
    "memory-options": partial(configuration.service_options, CosmosMemoryService),
    "artifact-options": partial(configuration.service_options, CosmosArtifactService),
    "events-container": documents.events_container,
    "sessions-container": documents.sessions_container,
    "charges": charges.charges,
    "bills": bills.bills,
    "figures": figures.figures,
    **{f"document-{name}": partial(documents.example, name) for name in documents.NAMES},
}
