"""How a container is set up. Each service defines its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ContainerDefinition:
    """Partition key, indexing policy and TTL setting of one container."""

    partition_key: str
    indexing_policy: dict[str, Any]
    default_ttl: int = -1  # on, and nothing expires unless its document says so
