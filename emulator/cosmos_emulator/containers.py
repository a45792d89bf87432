"""One container: its definition, validated and completed with defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cosmos_emulator.charges import IndexedTerms
from cosmos_emulator.documents import path_parts
from cosmos_emulator.errors import BadRequest, RangeGone
from cosmos_emulator.messages import Document
from cosmos_emulator.partition_keys import PartitionKeys
from cosmos_emulator.query.policies import Policies
from cosmos_emulator.query.words import DEFAULT_LANGUAGE
from cosmos_emulator.ranges import Range, overlapping, split

MAX_UNIQUE_KEYS = 10
MAX_UNIQUE_PATHS = 16
MAX_COMPOSITE_INDEXES = 100
_COMPOSITE_PATHS = (2, 8)
_INDEXING_MODES = {"consistent", "lazy", "none"}
_SPATIAL_TYPES = {"point", "linestring", "polygon", "multipolygon"}


@dataclass(slots=True)
class Container:
    """What the other modules need to know of a container, derived from its definition."""

    number: int
    rid: str
    database_rid: str
    database: str
    name: str
    definition: Document
    keys: PartitionKeys
    terms: IndexedTerms
    unique_keys: list[list[tuple[str, ...]]]
    default_ttl: int | None
    link: str
    self_prefix: str
    ranges: tuple[Range, ...]
    policies: Policies
    computed_properties: tuple[tuple[str, str], ...]
    retention: int | None  # seconds for which all versions and deletes are kept; None: they are not
    grace: int = 0  # seconds that an expired item stays visible

    @classmethod
    def load(
        cls,
        number: int,
        rid: str,
        database_rid: str,
        database: str,
        definition: Document,
        ranges: int,
    ) -> Container:
        name = definition["id"]
        keys = PartitionKeys.parse(definition["partitionKey"])
        return cls(
            number=number,
            rid=rid,
            database_rid=database_rid,
            database=database,
            name=name,
            definition=definition,
            keys=keys,
            terms=IndexedTerms(definition["indexingPolicy"]),
            unique_keys=[
                [path_parts(path) for path in rule["paths"]]
                for rule in definition.get("uniqueKeyPolicy", {}).get("uniqueKeys", [])
            ],
            default_ttl=definition.get("defaultTtl"),
            link=f"dbs/{database}/colls/{name}",
            self_prefix=f"dbs/{database_rid}/colls/{rid}/docs/",
            policies=_policies(definition),
            computed_properties=tuple(
                (entry["name"], entry["query"])
                for entry in definition.get("computedProperties") or []
            ),
            retention=retention_of(definition),
            ranges=split(ranges, 2 if keys.kind == "MultiHash" else keys.version),
        )

    @property
    def table(self) -> str:
        return f"items_{self.number}"

    def ranges_of(
        self, key: str | None = None, epk_range: tuple[str, str] | None = None
    ) -> tuple[Range, ...]:
        """The ranges that hold a key, or a range of keys, or all."""
        ranges = self.ranges
        if len(ranges) > 1 and key is not None:
            epk = self.keys.epk(key)
            epk_range = (epk, epk + "0")
        return ranges if epk_range is None else overlapping(ranges, *epk_range)

    def range_named(self, name: str) -> Range:
        """The range that a request names, by its id or by the container's rid and its id."""
        for found in self.ranges:
            if name in (found.id, f"{self.rid},{found.id}"):
                return found
        raise RangeGone(name)

    def session_headers(
        self,
        lsn: int,
        key: str | None = None,
        epk_range: tuple[str, str] | None = None,
        lsns: dict[str, int] | None = None,
        *,
        refused: bool = False,
    ) -> dict[str, str]:
        """Headers that tell the SDK how far it has read the container, or the requested part.
        `lsns` is by range, for those that have not reached `lsn`. A refusal does not name the
        container, so the SDK ignores its token."""
        ranges = self.ranges_of(key, epk_range)
        if lsns is None:
            token = ",".join([f"{found.id}:-1#{lsn}" for found in ranges])
        else:
            token = ",".join([f"{found.id}:-1#{lsns.get(found.id, lsn)}" for found in ranges])
        headers = {
            "x-ms-session-token": token,
            "x-ms-documentdb-partitionkeyrangeid": ranges[0].id,
            "lsn": str(lsn),
        }
        if not refused:
            headers["x-ms-alt-content-path"] = self.link
            headers["x-ms-content-path"] = self.rid
        return headers

    def is_alive(self, ts: int, ttl: int | None, now: int) -> bool:
        if self.default_ttl is None:
            return True
        lifetime = self.default_ttl if ttl is None else ttl
        return lifetime == -1 or ts + lifetime + self.grace > now

    def alive_sql(self, now: int) -> str | None:
        """The condition under which a row has not expired; None when none can."""
        if self.default_ttl is None:
            return None
        now -= self.grace
        if self.default_ttl == -1:
            return f"(ttl IS NULL OR ttl = -1 OR ts + ttl > {now})"
        return f"(ttl = -1 OR ts + coalesce(ttl, {self.default_ttl}) > {now})"


def _policies(definition: Document) -> Policies:
    vectors = (definition.get("vectorEmbeddingPolicy") or {}).get("vectorEmbeddings", [])
    texts = definition.get("fullTextPolicy") or {}
    default = texts.get("defaultLanguage") or DEFAULT_LANGUAGE
    return Policies(
        distances={path_parts(entry["path"]): entry["distanceFunction"] for entry in vectors},
        languages={
            path_parts(entry["path"]): entry.get("language") or default
            for entry in texts.get("fullTextPaths", [])
        },
        default_language=default,
    )


def retention_of(definition: Document) -> int | None:
    """For how many seconds all changes are kept. The policy names minutes; 0 is none."""
    policy = definition.get("changeFeedPolicy")
    minutes = policy.get("retentionDuration", 0) if isinstance(policy, dict) else 0
    if not isinstance(minutes, int) or isinstance(minutes, bool) or minutes < 0:
        raise BadRequest("The retention duration of the change feed must be a number of minutes.")
    return minutes * 60 or None


# What a definition can hold, in the service's order. It drops the rest silently.
_MEMBERS = (
    "id", "indexingPolicy", "partitionKey", "defaultTtl", "uniqueKeyPolicy",
    "conflictResolutionPolicy", "geospatialConfig", "analyticalStorageTtl", "computedProperties",
    "vectorEmbeddingPolicy", "fullTextPolicy", "changeFeedPolicy", "clientEncryptionPolicy",
    "materializedViewDefinition",
)  # fmt: skip


def complete(definition: Document) -> Document:
    """Checks a definition as it comes from a client, and adds the service's defaults."""
    done = dict(definition)
    if "partitionKey" not in done:
        raise BadRequest("Shared throughput collection should have a partition key", plain=True)
    done["indexingPolicy"] = _indexing_policy(done.get("indexingPolicy"))
    done.setdefault(
        "conflictResolutionPolicy",
        {
            "mode": "LastWriterWins",
            "conflictResolutionPath": "/_ts",
            "conflictResolutionProcedure": "",
        },
    )
    geospatial = done.setdefault("geospatialConfig", {"type": "Geography"})
    kind = geospatial.get("type") if isinstance(geospatial, dict) else None
    if kind not in ("Geography", "Geometry"):
        raise BadRequest("The geospatial type must be 'Geography' or 'Geometry'.")
    _check_spatial_indexes(done["indexingPolicy"].get("spatialIndexes") or [], kind)
    policy = done["conflictResolutionPolicy"]
    if not isinstance(policy, dict) or policy.get("mode") not in ("LastWriterWins", "Custom"):
        raise BadRequest("The conflict resolution mode must be 'LastWriterWins' or 'Custom'.")
    PartitionKeys.parse(done["partitionKey"])
    _check_ttl(done)
    _check_unique_keys(done)
    retention_of(done)
    return {name: done[name] for name in _MEMBERS if name in done}


def _indexing_policy(policy: Any) -> Document:
    if policy is None:
        policy = {}
    if not isinstance(policy, dict):
        raise BadRequest("The indexing policy must be an object.")
    done = dict(policy)
    mode = str(done.get("indexingMode", "consistent")).lower()
    if mode not in _INDEXING_MODES:
        raise BadRequest(f"The indexing mode '{mode}' is unknown.")
    done["indexingMode"] = mode
    done.setdefault("automatic", mode != "none")
    if mode != "none":
        done.setdefault("includedPaths", [] if done.get("excludedPaths") else [{"path": "/*"}])
        done.setdefault("excludedPaths", [])
        for name in ("includedPaths", "excludedPaths"):
            _check_paths(done[name], name)
        _complete_paths(done)
        _check_composite_indexes(done.get("compositeIndexes") or [])
    return done


def _check_composite_indexes(indexes: Any) -> None:
    if not isinstance(indexes, list) or not all(isinstance(index, list) for index in indexes):
        raise BadRequest("The composite indexes must be a list of lists of paths.")
    if len(indexes) > MAX_COMPOSITE_INDEXES:
        raise BadRequest(f"A container takes at most {MAX_COMPOSITE_INDEXES} composite indexes.")
    fewest, most = _COMPOSITE_PATHS
    for index in indexes:
        if not fewest <= len(index) <= most:
            raise BadRequest(f"A composite index has {fewest} to {most} paths, not {len(index)}.")
        seen: set[tuple[str, ...]] = set()
        for entry in index:
            path = entry.get("path") if isinstance(entry, dict) else None
            if not isinstance(path, str):
                raise BadRequest("An entry of a composite index has no path.")
            parts = path_parts(path)
            if "*" in parts or parts in seen:
                raise BadRequest(
                    f"The composite index path '{path}' has a wildcard or is there twice."
                )
            seen.add(parts)
            if str(entry.get("order", "ascending")).lower() not in ("ascending", "descending"):
                raise BadRequest("The order of a composite index is 'ascending' or 'descending'.")


def _check_spatial_indexes(indexes: Any, geospatial: str) -> None:
    """An index of a plane needs its bounds; the globe has none."""
    if not isinstance(indexes, list):
        raise BadRequest("The spatial indexes must be a list.")
    for entry in indexes:
        path = entry.get("path") if isinstance(entry, dict) else None
        if not isinstance(path, str):
            raise BadRequest("A spatial index needs a path.")
        path_parts(path)
        types = entry.get("types") or []
        if not isinstance(types, list) or {str(kind).lower() for kind in types} - _SPATIAL_TYPES:
            raise BadRequest(f"The spatial index of '{path}' has an unknown type.")
        if ("boundingBox" in entry) != (geospatial == "Geometry"):
            raise BadRequest(
                f"The spatial index of '{path}' needs a boundingBox if the geospatial type is "
                f"Geometry, and takes none if it is Geography. It is {geospatial}."
            )


def _check_paths(entries: Any, name: str) -> None:
    if not isinstance(entries, list):
        raise BadRequest(f"The {name} of an indexing policy must be a list.")
    for entry in entries:
        path = entry.get("path") if isinstance(entry, dict) else None
        if not isinstance(path, str):
            raise BadRequest(f"An entry of {name} has no path.")
        entry.pop("indexes", None)  # An old form of the policy; the service drops it too.
        if path == "/":
            continue
        if path_parts(path)[-1] not in ("?", "*"):
            raise BadRequest(
                f"The indexing path '{path}' could not be accepted, failed near position "
                f"'{len(path)}'. Please ensure that the path ends with '/?' or '/*'."
            )


def _complete_paths(policy: Document) -> None:
    """The root must be included or excluded; `_etag` is never indexed."""
    paths = {entry["path"] for name in ("includedPaths", "excludedPaths") for entry in policy[name]}
    if "/*" not in paths and "/" not in paths:
        raise BadRequest(
            'The special mandatory indexing path "/" is not provided in any of the path type '
            "sets. Please provide this path in one of the sets."
        )
    if '/"_etag"/?' not in paths:
        policy["excludedPaths"] = [*policy["excludedPaths"], {"path": '/"_etag"/?'}]


def _check_ttl(definition: Document) -> None:
    ttl = definition.get("defaultTtl")
    if ttl is None:
        definition.pop("defaultTtl", None)
        return
    check_ttl(ttl)


def check_ttl(ttl: Any) -> int:
    if not isinstance(ttl, int) or isinstance(ttl, bool) or (ttl < 1 and ttl != -1):
        raise BadRequest(
            f"The input ttl '{ttl}' is invalid. Ensure to provide a nonzero positive integer "
            "less than or equal to '2147483647', or '-1' which means never expire."
        )
    if ttl > 2147483647:
        raise BadRequest(f"The input ttl '{ttl}' is invalid: it is above 2147483647.")
    return ttl


def _check_unique_keys(definition: Document) -> None:
    policy = definition.get("uniqueKeyPolicy")
    if policy is None:
        definition.pop("uniqueKeyPolicy", None)
        return
    rules = policy.get("uniqueKeys") if isinstance(policy, dict) else None
    if not isinstance(rules, list):
        raise BadRequest("The unique key policy must hold a list of unique keys.")
    if len(rules) > MAX_UNIQUE_KEYS:
        raise BadRequest(
            f"The number of unique keys '{len(rules)}' exceeds the maximum of "
            f"'{MAX_UNIQUE_KEYS}' for a container."
        )
    for rule in rules:
        paths = rule.get("paths") if isinstance(rule, dict) else None
        if not isinstance(paths, list) or not paths:
            raise BadRequest("A unique key needs a list of paths.")
        if len(paths) > MAX_UNIQUE_PATHS:
            raise BadRequest(f"A unique key has at most {MAX_UNIQUE_PATHS} paths.")
        for path in paths:
            path_parts(path)
