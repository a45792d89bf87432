"""All generated parts by name."""

from __future__ import annotations

from functools import partial

from cosmosservice import CosmosArtifactService, CosmosMemoryService, CosmosSessionService
from docs.generate import bills, charges, configuration, documents, figures, memory
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
    "memory-set-figures": memory.sets,
    "memory-own-figures": partial(memory.own, "own"),
    "memory-language-figures": partial(memory.parts_of, "own", "held out, by language"),
    "memory-kind-figures": partial(memory.parts_of, "own", "held out, by kind"),
    "memory-long-figures": partial(memory.own, "long"),
    "memory-long-kind-figures": partial(memory.parts_of, "long", "held out, by category"),
    "memory-long-language-figures": partial(memory.parts_of, "long", "held out, by language"),
    "memory-without-figures": memory.without,
    "memory-public-figures": memory.public,
    "memory-ranking-figures": memory.ranking,
    "memory-locomo-figures": memory.depths,
    "memory-category-figures": partial(memory.parts_of, "locomo", "by category"),
    "memory-evidence-figures": memory.whole,
    "memory-published-figures": memory.published,
    "memory-price-figures": memory.prices,
    "memory-cost-figures": memory.costs,
    **{f"document-{name}": partial(documents.example, name) for name in documents.NAMES},
}
