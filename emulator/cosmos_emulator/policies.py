"""Vector, full-text and computed-property policies: what the service accepts in a definition."""

from __future__ import annotations

from typing import Any

from cosmos_emulator import query
from cosmos_emulator.documents import SYSTEM_PROPERTIES, path_parts
from cosmos_emulator.errors import BadRequest
from cosmos_emulator.messages import Document
from cosmos_emulator.query.words import LANGUAGES
from cosmos_emulator.rules import FULL_TEXT_SEARCH, VECTOR_SEARCH, Rules

DISTANCES = ("cosine", "dotproduct", "euclidean")
DATA_TYPES = ("float32", "float16", "int8", "uint8")
# The most dimensions of each type of index.
VECTOR_INDEXES = {"flat": 505, "quantizedFlat": 4096, "diskANN": 4096}
MAX_DIMENSIONS = 4096
MAX_SHARD_PATHS = 1
# Bounds of the options of quantized indexes.
_BOUNDS = {"quantizationByteSize": (1, 256), "indexingSearchListSize": (25, 500)}
_ENGLISH_BY_NUMBER = "1033"  # its number in Windows is taken too
MAX_COMPUTED = 20
_RESERVED = {"id", "ttl", "_lsn", *SYSTEM_PROPERTIES}


def check(definition: Document, rules: Rules, *, shared: bool) -> None:
    """Checks the policies of a definition. `shared`: the container uses the throughput of its
    database."""
    paths = _vector_policy(definition)
    indexes = _indexes(definition, "vectorIndexes")
    if paths or indexes:
        if VECTOR_SEARCH not in rules.capabilities:
            raise BadRequest(
                "A Container Vector Policy has been provided, but the capability has not been "
                "enabled on your account."
            )
        if shared:
            raise BadRequest("Vector Indexing is not supported for shared throughput offer.")
    _vector_indexes(indexes, paths)
    searched = _full_text_policy(definition)
    indexes = _indexes(definition, "fullTextIndexes")
    if (searched or indexes) and FULL_TEXT_SEARCH not in rules.capabilities:
        raise BadRequest(
            "A Container Full Text Policy has been provided, but the capability has not been "
            "enabled on your account."
        )
    for entry in indexes:
        if _path(entry, "Full Text Indexing Policy") not in searched:
            raise BadRequest(
                f"The path '{entry['path']}' of the full text index is not in the container's "
                "full text policy."
            )
    _computed_properties(definition)


def check_replacement(old: Document, new: Document) -> None:
    """Vector embeddings that exist cannot be changed or removed, and vector indexes not changed."""
    embeddings = _by_path((new.get("vectorEmbeddingPolicy") or {}).get("vectorEmbeddings"))
    before = _by_path((old.get("vectorEmbeddingPolicy") or {}).get("vectorEmbeddings"))
    if any(embeddings.get(path) != entry for path, entry in before.items()):
        raise BadRequest(
            "Paths in existing embedding policy cannot be modified in Collection Replace."
        )
    indexes = _by_path(new["indexingPolicy"].get("vectorIndexes"))
    before = _by_path(old["indexingPolicy"].get("vectorIndexes"))
    if any(indexes.get(path, entry) != entry for path, entry in before.items()):
        raise BadRequest(
            "Paths in existing vector indexing policy cannot be modified in Collection Replace."
        )


def _by_path(entries: list[Document] | None) -> dict[str, Document]:
    return {entry["path"]: entry for entry in entries or []}


def _vector_policy(definition: Document) -> dict[tuple[str, ...], Document]:
    policy = definition.get("vectorEmbeddingPolicy")
    if policy is None:
        definition.pop("vectorEmbeddingPolicy", None)
        return {}
    entries = policy.get("vectorEmbeddings") if isinstance(policy, dict) else None
    if not isinstance(entries, list):
        raise BadRequest("The vector embedding policy must hold a list of vector embeddings.")
    found: dict[tuple[str, ...], Document] = {}
    for entry in entries:
        path = _path(entry, "Vector Embedding Policy")
        if path in found:
            raise BadRequest(f"The path '{entry['path']}' has more than one vector embedding.")
        for name, known in (("distanceFunction", DISTANCES), ("dataType", DATA_TYPES)):
            if entry.get(name) not in known:
                raise BadRequest(
                    f"The Vector Embedding Policy has an invalid {name[0].upper()}{name[1:]}:"
                    f"{entry.get(name)}. It is one of {', '.join(known)}."
                )
        dimensions = entry.get("dimensions")
        if not _within(dimensions, 1, MAX_DIMENSIONS):
            more = isinstance(dimensions, int) and dimensions > MAX_DIMENSIONS
            raise BadRequest(
                f"The Vector Embedding Policy has Dimensions:{dimensions} which is "
                + (
                    f"more than the maximum supported value {MAX_DIMENSIONS}."
                    if more
                    else "invalid."
                )
            )
        found[path] = entry
    return found


def _vector_indexes(indexes: list[Document], embeddings: dict[tuple[str, ...], Document]) -> None:
    for entry in indexes:
        path = _path(entry, "Vector Indexing Policy")
        if path not in embeddings:
            raise BadRequest(
                f"The Vector Indexing Policy's path::{entry['path']} not matching in Embedding's "
                "path."
            )
        kind = entry.get("type")
        if kind not in VECTOR_INDEXES:
            raise BadRequest(
                f"The Vector Indexing Policy's Index Type::{kind} is invalid. It is one of "
                f"{', '.join(VECTOR_INDEXES)}."
            )
        dimensions, most = embeddings[path]["dimensions"], VECTOR_INDEXES[kind]
        if dimensions > most:
            raise BadRequest(
                f"The Vector Indexing Policy's Index Type::{kind} has been provided with "
                f"{dimensions} dimensions; it takes at most {most}."
            )
        for name, (low, high) in _BOUNDS.items():
            if name not in entry:
                continue
            if kind == "flat" or (name == "indexingSearchListSize" and kind != "diskANN"):
                raise BadRequest(f"{name} does not apply to a vector index of type {kind}.")
            if not _within(entry[name], low, high):
                raise BadRequest(
                    f"The Vector Indexing Policy parameter {name[0].upper()}{name[1:]} value :: "
                    f"{entry[name]} is out of range. The allowed range is between {low} and {high}."
                )
        _shard_key(entry)


def _shard_key(index: Document) -> None:
    paths = index.get("vectorIndexShardKey", [])
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise BadRequest(
            "One of the specified inputs is invalid: the vectorIndexShardKey is a list of paths."
        )
    if len(paths) > MAX_SHARD_PATHS:
        raise BadRequest(
            f"The number of shard paths defined in the Vector Indexing Policy: {len(paths)} "
            f"exceeds the maximum: {MAX_SHARD_PATHS}."
        )
    for path in paths:
        if not path.startswith("/"):
            raise BadRequest(f"The Vector Indexing Policy has an invalid Shard Path: {path}.")


def _full_text_policy(definition: Document) -> set[tuple[str, ...]]:
    policy = definition.get("fullTextPolicy")
    if policy is None:
        definition.pop("fullTextPolicy", None)
        return set()
    entries = policy.get("fullTextPaths", []) if isinstance(policy, dict) else None
    if not isinstance(entries, list):
        raise BadRequest("The full text policy must hold a list of full text paths.")
    _language(policy.get("defaultLanguage"))
    found: set[tuple[str, ...]] = set()
    for entry in entries:
        path = _path(entry, "Full Text Policy")
        if path in found:
            raise BadRequest(f"The full text policy names the path '{entry['path']}' twice.")
        _language(entry.get("language"))
        found.add(path)
    return found


def _language(value: Any) -> None:
    if value is not None and str(value).lower() not in (*LANGUAGES, _ENGLISH_BY_NUMBER):
        raise BadRequest(
            f"The Full Text Policy contains an unsupported language {value}. Supported languages "
            f"are: {', '.join(LANGUAGES)}."
        )


def _computed_properties(definition: Document) -> None:
    entries = definition.get("computedProperties")
    if entries is None:
        return
    if not isinstance(entries, list):
        raise BadRequest("The computed properties must be a list.")
    if len(entries) > MAX_COMPUTED:
        raise BadRequest(
            f"A container takes at most {MAX_COMPUTED} computed properties, not {len(entries)}."
        )
    names: set[str] = set()
    for entry in entries:
        name = entry.get("name") if isinstance(entry, dict) else None
        text = entry.get("query") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not name or not isinstance(text, str):
            raise BadRequest("A computed property needs a name and a query.")
        if name in _RESERVED or name in names:
            raise BadRequest(f"The computed property name '{name}' is reserved or used twice.")
        names.add(name)
        try:
            query.check_computed(text)
        except query.QueryError as error:
            raise BadRequest(f"The computed property '{name}' is invalid: {error}") from None


def _indexes(definition: Document, name: str) -> list[Document]:
    entries = definition["indexingPolicy"].get(name) or []
    if not isinstance(entries, list):
        raise BadRequest(f"The {name} of an indexing policy must be a list.")
    return entries


def _path(entry: Any, what: str) -> tuple[str, ...]:
    path = entry.get("path") if isinstance(entry, dict) else None
    try:
        parts = path_parts(path) if isinstance(path, str) else ()
    except BadRequest:
        parts = ()
    if not parts or parts[-1] in ("?", "*") or "[]" in parts:
        raise BadRequest(f"The {what} contains an invalid Path: {path}. It must name a property.")
    return parts


def _within(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
