"""How the container of memories is set up."""

from __future__ import annotations

import dataclasses
from typing import Final

from cosmosservice.account.definitions import ContainerDefinition

MEMORIES_CONTAINER: Final = ContainerDefinition(
    setting="memory_container",
    partition_key="/owner",
    indexing_policy={
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [
            {"path": "/tokens/[]/?"},
            {"path": "/at/?"},
            {"path": "/time/?"},
            {"path": "/session_id/?"},
            {"path": "/also_in/[]/?"},
        ],
        "excludedPaths": [{"path": "/*"}],
        # A search that cannot read all matches reads the shortest first, which score highest.
        "compositeIndexes": [
            [{"path": "/length", "order": "ascending"}, {"path": "/time", "order": "descending"}]
        ],
    },
    optional=True,
)


def with_vectors(dimensions: int) -> ContainerDefinition:
    """The container, with the policies that a search by vectors needs."""
    policy = MEMORIES_CONTAINER.indexing_policy
    return dataclasses.replace(
        MEMORIES_CONTAINER,
        indexing_policy={
            **policy,
            "includedPaths": [*policy["includedPaths"], {"path": "/made/?"}],
            "excludedPaths": [*policy["excludedPaths"], {"path": "/embedding/*"}],
            "vectorIndexes": [{"path": "/embedding", "type": "quantizedFlat"}],
        },
        vector_embedding_policy={
            "vectorEmbeddings": [
                {
                    "path": "/embedding",
                    "dataType": "float32",
                    "distanceFunction": "cosine",
                    "dimensions": dimensions,
                }
            ]
        },
    )
