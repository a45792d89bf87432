"""What is stored: keys, document ids, shapes, and how the containers index them.

Events container, partition key /session_id. Created, never changed.

    id             tenant . seq . incarnation     the place in the log: creating it twice fails
    document_type  adk_event | tombstone | restored | stub | chunk
    session_id, user_id, app_name, incarnation, seq, stamp, schema_version
    event_id, timestamp, author, content, actions …            (data_converters)

Sessions container, partition key /user_id.

    session      session_id, user_id, app_name, status, incarnation, first_seq, revision, state,
                 last_update_time, created_at, updated_at, pending?, unmerged?, replaced?, ttl?
    user_state   user_id, app_name, state, stamps
    app_state    the same, in a partition of its own
"""

from __future__ import annotations

import datetime
from typing import Final

from cosmosservice.account.container import Document
from cosmosservice.account.definitions import ContainerDefinition
from cosmosservice.sessions.store.keys import SESSION, SessionKey, StateKey, session_ttl

SCHEMA_VERSION: Final = 1

# An item may have 2 MB; the rest is for system properties and what the service adds.
ITEM_LIMIT: Final = 2_000_000

EVENT: Final = "adk_event"
TOMBSTONE: Final = "tombstone"
RESTORED: Final = "restored"
STUB: Final = "stub"
CHUNK: Final = "chunk"

ACTIVE: Final = "active"
DELETED: Final = "deleted"
RESTORING: Final = "restoring"
PURGING: Final = "purging"
PURGED: Final = "purged"
STATUSES: Final = frozenset({ACTIVE, DELETED, RESTORING, PURGING, PURGED})

# What is left of a purged session keeps old session objects from writing into its place. It goes
# once none can be alive any more.
PURGED_TTL: Final = 30 * 24 * 3600


# Events are found by their id alone: a range of ids is a range of the log. Nothing else is
# indexed, which is what keeps an append cheap.
EVENTS_CONTAINER: Final = ContainerDefinition(
    setting="conversation_container",
    partition_key="/session_id",
    indexing_policy={
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [{"path": "/id/?"}],
        "excludedPaths": [{"path": "/*"}],
    },
)

SESSIONS_CONTAINER: Final = ContainerDefinition(
    setting="session_container",
    partition_key="/user_id",
    indexing_policy={
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [
            {"path": "/app_name/?"},
            {"path": "/status/?"},
            {"path": "/last_update_time/?"},
            {"path": "/user_id/?"},
            {"path": "/session_id/?"},
            # Only sessions that were created anew have it, until their predecessors are purged.
            {"path": "/replaced/deleted_at/?"},
        ],
        "excludedPaths": [{"path": "/*"}],
        "compositeIndexes": [
            [
                {"path": "/last_update_time", "order": "ascending"},
                {"path": "/user_id", "order": "ascending"},
                {"path": "/session_id", "order": "ascending"},
            ]
        ],
    },
)


def iso(timestamp: float) -> str:
    moment = datetime.datetime.fromtimestamp(timestamp, datetime.UTC)
    return moment.isoformat().replace("+00:00", "Z")


def session_document(
    key: SessionKey,
    *,
    incarnation: str,
    first_seq: int,
    state: Document,
    now: float,
    pending: Document | None = None,
    replaced: Document | None = None,
) -> Document:
    document: Document = {
        "id": key.document_id,
        "document_type": SESSION,
        "session_id": key.session_id,
        "user_id": key.user_id,
        "app_name": key.app_name,
        "status": ACTIVE,
        "incarnation": incarnation,
        "first_seq": first_seq,
        "revision": first_seq - 1,
        "state": state,
        "last_update_time": now,
        "created_at": iso(now),
        "updated_at": iso(now),
        "schema_version": SCHEMA_VERSION,
    }
    ttl = session_ttl(incarnation)
    if ttl is not None:
        document |= {"ttl": ttl, "renewed_at": now, "events_renewed_at": now}
    if pending:
        document["pending"] = pending
    if replaced:
        document["replaced"] = replaced
    return document


def state_document(key: StateKey, state: Document, stamps: Document) -> Document:
    return {
        "id": key.document_id,
        "document_type": key.kind,
        "user_id": key.user_id,
        "app_name": key.app_name,
        "state": state,
        "stamps": stamps,
        "schema_version": SCHEMA_VERSION,
    }


def log_document(
    key: SessionKey, *, kind: str, incarnation: str, seq: int, stamp: int, fields: Document
) -> Document:
    return {
        "id": key.event_id(seq, incarnation),
        "document_type": kind,
        "session_id": key.session_id,
        "user_id": key.user_id,
        "app_name": key.app_name,
        "incarnation": incarnation,
        "seq": seq,
        "stamp": stamp,
        **fields,
        "schema_version": SCHEMA_VERSION,
    }
