"""How a container is set up. Each service defines its own containers.

Creating and verifying containers, `cosmosservice init`, `doctor`, `deploy/containers.json` and the
Bicep files all follow these definitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cosmosservice.account.settings import Settings, variable

VECTORS = "vectorEmbeddingPolicy"


def dimensions_of(policy: Mapping[str, Any] | None) -> int | None:
    """How long the vectors of a policy are. None: it has none."""
    embeddings = (policy or {}).get("vectorEmbeddings") or []
    return int(embeddings[0]["dimensions"]) if embeddings else None


@dataclass(frozen=True)
class ContainerDefinition:
    """Partition key, policies and TTL setting of one container."""

    setting: str  # the field of Settings that holds its name
    partition_key: str
    indexing_policy: Mapping[str, Any] = field(hash=False)
    default_ttl: int = -1  # on, but nothing expires unless its document has a ttl
    optional: bool = False  # needed only if its service is used
    unique_key: str | None = None  # a path; fixed when the container is created
    # Both are fixed when the container is created, and need a capability of the account.
    vector_embedding_policy: Mapping[str, Any] | None = field(default=None, hash=False)

    @property
    def default_name(self) -> str:
        return str(Settings.model_fields[self.setting].default)

    @property
    def variable(self) -> str:
        """The environment variable that names the container."""
        return variable(self.setting)

    def name(self, settings: Settings) -> str:
        return str(getattr(settings, self.setting))

    @property
    def properties(self) -> dict[str, Any]:
        """The properties for the REST API and Azure Resource Manager, without the name."""
        found: dict[str, Any] = {
            "partitionKey": {"paths": [self.partition_key], "kind": "Hash", "version": 2},
            "indexingPolicy": self.indexing_policy,
            "defaultTtl": self.default_ttl,
        }
        if self.unique_key is not None:
            found["uniqueKeyPolicy"] = self.unique_key_policy
        if self.vector_embedding_policy is not None:
            found[VECTORS] = self.vector_embedding_policy
        return found

    @property
    def unique_key_policy(self) -> dict[str, Any]:
        return {"uniqueKeys": [{"paths": [self.unique_key]}]}

    def wrong_unique_key(self, properties: Mapping[str, Any]) -> bool:
        """Whether a container cannot be used because it lacks the unique key."""
        rules = properties.get("uniqueKeyPolicy", {}).get("uniqueKeys", [])
        paths = [list(rule.get("paths", [])) for rule in rules]
        return self.unique_key is not None and [self.unique_key] not in paths

    def wrong_vectors(self, properties: Mapping[str, Any]) -> bool:
        """Whether a container cannot hold the vectors of this definition."""
        wanted = dimensions_of(self.vector_embedding_policy)
        return wanted is not None and wanted != dimensions_of(properties.get(VECTORS))

    def wrong_partition_key(self, properties: Mapping[str, Any]) -> str | None:
        """The partition key of a container that cannot be used, as text."""
        key = properties.get("partitionKey", {})
        paths = list(key.get("paths", []))
        if paths != [self.partition_key]:
            return ", ".join(paths) or "(none)"
        # Version 1 tells values apart by their first 101 bytes only. Cosmos DB does not write it.
        return f"{paths[0]} of version 1" if key.get("version", 1) == 1 else None

    def advice(self, properties: Mapping[str, Any]) -> list[str]:
        """The differences from this definition with which the service still works: one sentence
        each."""
        advice = []
        if properties.get("defaultTtl") is None:
            advice.append(
                "time to live is switched off, so that nothing that should expire is ever removed;"
                " set its default TTL to -1 (on, no default)."
            )
        elif properties["defaultTtl"] != self.default_ttl:
            advice.append(
                f"its default TTL removes everything after {properties['defaultTtl']} seconds;"
                " set it to -1 (on, no default)."
            )
        policy = properties.get("indexingPolicy", {})
        wanted = self.indexing_policy
        included = {path["path"] for path in policy.get("includedPaths", [])}
        needed = {path["path"] for path in wanted["includedPaths"]} - {"/id/?"}  # always indexed
        if not included >= needed and "/*" not in included:
            advice.append("its indexing policy leaves out paths that queries use.")
        elif "/*" in included:
            advice.append("it indexes every path, which makes each write cost more than it needs.")
        there = policy.get("compositeIndexes") or []
        if any(each not in there for each in wanted.get("compositeIndexes", [])):
            advice.append("a composite index, which sorted lists need, is missing.")
        return advice

    def repaired(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """The container's properties with what this definition needs. Other indexed paths stay,
        except for the one that indexes everything."""
        there, wanted = properties.get("indexingPolicy", {}), self.indexing_policy
        policy = {**there, **wanted}
        for name in ("includedPaths", "excludedPaths", "compositeIndexes"):
            both = [*wanted.get(name, []), *there.get(name, [])]
            every = name == "includedPaths"
            kept = [each for each in both if not (every and each["path"] == "/*")]
            if kept:
                policy[name] = [each for at, each in enumerate(kept) if each not in kept[:at]]
        kept_as_it_is = {name: v for name, v in properties.items() if not name.startswith("_")}
        return kept_as_it_is | {"indexingPolicy": policy, "defaultTtl": self.default_ttl}
