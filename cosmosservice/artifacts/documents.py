"""The stored documents, and how the container indexes them. Partition key /scope.

The saves of a name have the sequence numbers 0, 1, 2 … Creating a second document with a number
fails: this decides between concurrent saves and deletes.

    version    v<name>.<seq>     one version: who, when, mime type, part, metadata, and its payload,
                                 either `data` in it or `payload`, which names an upload
    header     h<name>.<seq>     the same without the payload, if the version's document is large
    tombstone  v<name>.<seq>     everything before it is deleted
    stub       v<name>.<seq>     where a deleted version was: blocks saves with stale knowledge

    upload     u<upload>         an upload that is under way (`uploading`), or that was taken out of
                                 use: `removing`, and `removed` once its bytes are gone
    piece      c<upload>.<n>     a piece of an upload that is kept in Cosmos DB

A query is charged for the documents that it reads. So every number is described by one small
document, which has the field `entry`: the version, tombstone or stub itself, or a header, which is
created and removed in one transaction with its version. Only loading reads the other versions.

An upload has uses 0, 1, 2 …, one for each version that names it, whatever its name. A use is the
`claim` of its version, and no two documents of a partition have the same claim: it is the
container's unique key. To take an upload out of use, a process claims its next use. So a process
that wants to use it and one that wants to remove it make the same claim, and one is refused.
"""

from __future__ import annotations

from typing import Any, Final

from cosmosservice.account.container import Document
from cosmosservice.account.definitions import ContainerDefinition
from cosmosservice.artifacts.keys import (
    ArtifactKey,
    Scope,
    entry_name,
    header_id,
    piece_id,
    seq_of,
    upload_id,
    version_id,
)

SCHEMA_VERSION: Final = 1

VERSION: Final = "version"
HEADER: Final = "header"
TOMBSTONE: Final = "tombstone"
STUB: Final = "stub"
UPLOAD: Final = "upload"
PIECE: Final = "piece"

UPLOADING: Final = "uploading"
REMOVING: Final = "removing"
REMOVED: Final = "removed"

# How long a freed number stays blocked, in seconds. A process caches what it knows of a name for a
# much shorter time (versions.py).
BLOCKED_TTL: Final = 30 * 24 * 3600

# The condition of queries for the descriptions of versions.
DESCRIBES_VERSION: Final = f"c.entry >= '' AND c.document_type IN ('{VERSION}', '{HEADER}')"

_PAYLOAD_FIELDS: Final = ("part", "data", "sha256")

ARTIFACTS_CONTAINER: Final = ContainerDefinition(
    setting="artifact_container",
    partition_key="/scope",
    optional=True,
    unique_key="/claim",
    indexing_policy={
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [
            {"path": "/document_type/?"},
            {"path": "/entry/?"},
            {"path": "/version/?"},
            {"path": "/app_name/?"},
            {"path": "/user_id/?"},
            {"path": "/payload/upload/?"},
            {"path": "/payload/digest/?"},
        ],
        "excludedPaths": [{"path": "/*"}],
    },
)


def version_document(key: ArtifactKey, seq: int, version: int, fields: Document) -> Document:
    entry_id, payload = key.entry_id(seq), fields.get("payload")
    return {
        "id": entry_id,
        "document_type": VERSION,
        "entry": entry_name(entry_id),
        "scope": key.partition,
        "claim": entry_id if payload is None else claim(payload["upload"], payload["use"]),
        **key.scope.owner,
        "filename": key.filename,
        "version": version,
        **fields,
        "schema_version": SCHEMA_VERSION,
    }


def with_header(version: Document) -> tuple[Document, Document]:
    """The header of a large version, and the version, of which the header now is the description.
    They are created in one transaction."""
    made = header_id(version["id"])
    header = {name: value for name, value in version.items() if name not in _PAYLOAD_FIELDS}
    body = {name: value for name, value in version.items() if name != "entry"}
    return header | {"id": made, "document_type": HEADER, "claim": made}, body


def is_version(description: Document) -> bool:
    return description["document_type"] in (VERSION, HEADER)


def claim(upload: str, use: int) -> str:
    """The claim of a use. Other documents claim their own ids, which have no slash."""
    return f"{upload}/{use}"


def tombstone_document(key_id: str, partition: str, *, cleaned: bool = False) -> Document:
    """It expires once there are no earlier versions left that it must keep deleted."""
    return _blocked(key_id, partition, TOMBSTONE, expires=cleaned)


def stub_document(version: Document, partition: str) -> Document:
    """Keeps the claim, because a past use still counts. Number 0 does not expire: a save that
    knows nothing of a name tries that number."""
    key_id = version_id(version["id"])
    stub = _blocked(key_id, partition, STUB, expires=seq_of(key_id) > 0)
    if "upload" not in version:
        return stub
    used = {name: version.get(name) for name in ("upload", "use", "store", "pieces")}
    return stub | {"claim": claim(version["upload"], version["use"]), "payload": used}


def _blocked(key_id: str, partition: str, kind: str, *, expires: bool) -> Document:
    document: Document = {
        "id": key_id,
        "document_type": kind,
        "entry": entry_name(key_id),
        "scope": partition,
        "claim": key_id,
        "schema_version": SCHEMA_VERSION,
    }
    return document | {"ttl": BLOCKED_TTL} if expires else document


def upload_document(
    scope: Scope, upload: str, *, store: str, status: str, **fields: Any
) -> Document:
    return {
        "id": upload_id(upload),
        "document_type": UPLOAD,
        "scope": scope.partition,
        "claim": upload_id(upload),
        **scope.owner,
        "upload": upload,
        "store": store,
        "status": status,
        **fields,
        "schema_version": SCHEMA_VERSION,
    }


def piece_document(scope: Scope, upload: str, number: int, data: str) -> Document:
    return {
        "id": piece_id(upload, number),
        "document_type": PIECE,
        "scope": scope.partition,
        "claim": piece_id(upload, number),
        **scope.owner,
        "upload": upload,
        "data": data,
        "schema_version": SCHEMA_VERSION,
    }
