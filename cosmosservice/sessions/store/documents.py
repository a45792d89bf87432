"""The shapes of all stored documents, and how the containers index them.

Events container, partition key /session_id. Created, never changed.

    id             hash . seq . incarnation       where it is in the log: creating it twice fails
    document_type  adk_event | tombstone | restored | stub | lost | chunk
    session_id, user_id, app_name, incarnation, seq, stamp, schema_version, ttl?, appended_at?
    initial_state?  in the first event: the session's state before it
    copied?         by a fork: its changes of user and app state belong to the source
    event_id, timestamp, author, content, actions …            (data_converters)

    chunk          a part of the body of a large event

Sessions container, partition key /user_id.

    session      session_id, user_id, app_name, status, incarnation, first_seq, revision,
                 state, large?, title, last_update_time, created_at, updated_at, initial?,
                 replaced?, load?, ttl?, expires_at?, events_renewed_at?,
                 usage?         the sums of its events: turns, tokens, request units
                 forked_from?   of a fork: the session and the sequence number
    user_state   user_id, app_name, state, large?, stamps, erased?
    app_state    the same, in a partition of its own
    state_value  a part of a large value of one of these
"""

from __future__ import annotations

import datetime
from typing import Final

from cosmosservice.account.container import Document
from cosmosservice.account.definitions import ContainerDefinition
from cosmosservice.sessions.store.keys import (
    EXPIRY,
    SESSION,
    SessionKey,
    StateKey,
    ValuesKey,
    document_ttl,
)
from cosmosservice.sessions.store.state import State

SCHEMA_VERSION: Final = 1

# An item may have 2 MB. The remainder is reserved for system properties and added fields.
ITEM_LIMIT: Final = 2_000_000
ENVELOPE_BYTES: Final = 4_000  # of a log document: its fields besides those of the event

# Types of the documents in the events container.
EVENT: Final = "adk_event"
TOMBSTONE: Final = "tombstone"
RESTORED: Final = "restored"
STUB: Final = "stub"
LOST: Final = "lost"  # instead of a record that somebody else removed
CHUNK: Final = "chunk"

# In a record that was written again to renew its TTL: its first `_ts`.
APPENDED_AT: Final = "appended_at"

# Documents beside a session, user state or app state document.
STATE_VALUE: Final = "state_value"

# Statuses of a session document.
ACTIVE: Final = "active"
DELETED: Final = "deleted"
RESTORING: Final = "restoring"
FORKING: Final = "forking"
CLEARING: Final = "clearing"  # deleted; its artifacts are being erased for a new session
PURGING: Final = "purging"
PURGED: Final = "purged"
STATUSES: Final = frozenset({ACTIVE, DELETED, RESTORING, FORKING, CLEARING, PURGING, PURGED})

# The fields that stay of the document of a session that is erased. They name the session and its
# revisions, and nothing of its content.
REMAINING: Final = (
    "id", "document_type", "session_id", "user_id", "app_name", "incarnation", "first_seq",
    "revision", "schema_version",
)  # fmt: skip

MEMORIES: Final = "memories"  # what the erasure of an expired session spares

# The fields that a stub keeps of a purged record, besides its type and the event's id.
STUB_FIELDS: Final = (
    "id", "session_id", "user_id", "app_name", "incarnation", "seq", "schema_version",
)  # fmt: skip

# Seconds after which no writer will still name a chunk or value that nothing names yet.
DAY: Final = 24 * 3600.0

# The stubs of a purged session keep old session objects from appending there. They expire when no
# such object can be in use any more.
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
            {"path": "/expires_at/?"},  # only sessions with a ttl have it
            # Only sessions that were created again have it, until their predecessors are purged.
            {"path": "/replaced/deleted_at/?"},
        ],
        "excludedPaths": [{"path": "/*"}],
        "compositeIndexes": [  # each serves an order and its reverse
            [
                {"path": "/last_update_time", "order": "ascending"},
                {"path": "/user_id", "order": "ascending"},
                {"path": "/session_id", "order": "ascending"},
            ],
            [
                {"path": "/user_id", "order": "ascending"},
                {"path": "/session_id", "order": "ascending"},
            ],
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
    state: State,
    now: float,
    title: str,
    initial: Document | None = None,
    replaced: Document | None = None,
) -> Document:
    """`title` is empty if there is none yet."""
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
        **state.fields,
        "title": title,
        "last_update_time": now,
        "created_at": iso(now),
        "updated_at": iso(now),
        "schema_version": SCHEMA_VERSION,
    }
    if document_ttl(incarnation) is not None:
        document["events_renewed_at"] = now
    if initial:
        document["initial"] = initial
    if replaced:
        document["replaced"] = replaced
    return document


def expiry_document(key: SessionKey, expires_at: float) -> Document:
    """Says that the session has a ttl. Its own document expires by itself, its artifacts do not.
    This one stays until those are erased."""
    return {
        "id": key.expiry_id,
        "document_type": EXPIRY,
        "session_id": key.session_id,
        "user_id": key.user_id,
        "app_name": key.app_name,
        "expires_at": expires_at,
        "schema_version": SCHEMA_VERSION,
    }


def state_document(key: StateKey, state: State, stamps: Document, erased: int) -> Document:
    """`erased` is the stamp of the last erasure: older values never come back."""
    document: Document = {
        "id": key.document_id,
        "document_type": key.document_type,
        "user_id": key.user_id,
        "app_name": key.app_name,
        **state.fields,
        "stamps": stamps,
        "schema_version": SCHEMA_VERSION,
    }
    if erased:
        document["erased"] = erased
        if not stamps:
            document["ttl"] = PURGED_TTL
    return document


def stub_document(body: Document) -> Document:
    """The stub of a purged record: it keeps the id, and none of the content."""
    kind = body.get("document_type")
    return {name: body[name] for name in STUB_FIELDS if name in body} | {
        "document_type": kind if kind in (TOMBSTONE, RESTORED, LOST) else STUB,
        "event_id": body.get("event_id", ""),
        "stamp": body.get("stamp", 0),
        "ttl": PURGED_TTL,
    }


def chunk_document(
    key: SessionKey, *, incarnation: str, upload: str, number: int, event_id: str, data: str
) -> Document:
    """A part of the body of a large event."""
    return {
        "id": key.chunk_id(incarnation, upload, number),
        "document_type": CHUNK,
        "session_id": key.session_id,
        "user_id": key.user_id,
        "app_name": key.app_name,
        "incarnation": incarnation,
        "event_id": event_id,
        "data": data,
    }


def value_document(
    key: ValuesKey, *, generation: str, value: str, number: int, data: str
) -> Document:
    """A part of a large value. It has no app name and no status, so that no list returns it."""
    return {
        "id": key.value_id(generation, value, number),
        "document_type": STATE_VALUE,
        "user_id": key.user_id,
        "owner": key.document_id,
        "data": data,
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
