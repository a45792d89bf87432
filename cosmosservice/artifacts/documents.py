"""What is stored, and how the container indexes it. Partition key /scope.

A name has places 0, 1, 2 … in the order of its saves. Creating a document at a place twice fails:
that is how savers and deleters agree.

    version    v<name>.<place>   one version: who, when, mime type, part, metadata, and its payload,
                                 either `data` in it or `payload`, which names an upload
    tombstone  v<name>.<place>   everything at earlier places is deleted
    stub       v<name>.<place>   where a deleted version was: keeps savers with old knowledge out

    payload    p<upload>         an upload of bytes: `uploading`, `ready` or `removing`
    piece      c<upload>.<n>     a piece of an upload that is kept in Cosmos DB

A save with an upload makes the payload `ready` and creates the version in one transaction. So a
`ready` payload without a version that names it is garbage, and whoever removes one does it with
the etag that it had before the versions were looked at: a saver that uses it again changes that.
"""

from __future__ import annotations

from typing import Any, Final

from cosmosservice.account.container import Document
from cosmosservice.account.definitions import ContainerDefinition
from cosmosservice.artifacts.keys import ArtifactKey, Scope, payload_id, piece_id, place_of

SCHEMA_VERSION: Final = 1

VERSION: Final = "version"
TOMBSTONE: Final = "tombstone"
STUB: Final = "stub"
PAYLOAD: Final = "payload"
PIECE: Final = "piece"

UPLOADING: Final = "uploading"
READY: Final = "ready"
REMOVING: Final = "removing"
REMOVED: Final = "removed"  # keeps the name of an upload from being used

# How long a freed place stays blocked, in seconds. What a process knows of places is used for much
# shorter (versions.py).
BLOCKED_TTL: Final = 30 * 24 * 3600

ARTIFACTS_CONTAINER: Final = ContainerDefinition(
    setting="artifact_container",
    partition_key="/scope",
    optional=True,
    indexing_policy={
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [
            {"path": "/document_type/?"},
            {"path": "/version/?"},
            {"path": "/app_name/?"},
            {"path": "/user_id/?"},
            {"path": "/payload/upload/?"},
            {"path": "/digest/?"},
        ],
        "excludedPaths": [{"path": "/*"}],
    },
)


def version_document(key: ArtifactKey, place: int, version: int, fields: Document) -> Document:
    return {
        "id": key.place_id(place),
        "document_type": VERSION,
        "scope": key.partition,
        **key.scope.owner,
        "filename": key.filename,
        "version": version,
        **fields,
        "schema_version": SCHEMA_VERSION,
    }


def tombstone_document(key_id: str, partition: str, *, cleaned: bool = False) -> Document:
    """Expires once nothing is left below it that it must keep deleted."""
    return _blocked(key_id, partition, TOMBSTONE, expires=cleaned)


def stub_document(key_id: str, partition: str) -> Document:
    """The one at place 0 does not expire: savers that know nothing of a name try that place."""
    return _blocked(key_id, partition, STUB, expires=place_of(key_id) > 0)


def _blocked(key_id: str, partition: str, kind: str, *, expires: bool) -> Document:
    document: Document = {
        "id": key_id,
        "document_type": kind,
        "scope": partition,
        "schema_version": SCHEMA_VERSION,
    }
    return document | {"ttl": BLOCKED_TTL} if expires else document


def payload_document(
    scope: Scope, upload: str, *, store: str, status: str, **fields: Any
) -> Document:
    return {
        "id": payload_id(upload),
        "document_type": PAYLOAD,
        "scope": scope.partition,
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
        **scope.owner,
        "upload": upload,
        "data": data,
        "schema_version": SCHEMA_VERSION,
    }
