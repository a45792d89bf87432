"""Copies memories of another store, or events that are memories elsewhere, into this one."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from google.adk.events.event import Event

from cosmosservice.account.container import Container, Document
from cosmosservice.account.failures import Conflict, NotFound
from cosmosservice.memory import documents, queries
from cosmosservice.memory.damage import strings
from cosmosservice.memory.documents import Owner
from cosmosservice.memory.entries import event_entries
from cosmosservice.memory.sources import INCARNATIONS
from cosmosservice.memory.store import MemoryStore

COPIED: Final = "copied"
PRESENT: Final = "already there"
DIFFERENT: Final = "different in the target"
FORGOTTEN: Final = "forgotten in the target"
LOST: Final = "missing in the target"
EXPIRED: Final = "expired"

Outcomes = Counter[str]


async def owners_in(container: Container, apps: Collection[str]) -> list[str]:
    """The partitions with data of these apps, or of all apps."""
    if not apps:
        return sorted(strings(await container.query(queries.OWNERS, {})))
    found = await container.query(queries.OWNERS_WITH_APPS, {})
    return sorted(set(strings([each["owner"] for each in found if each["app_name"] in apps])))


async def apps_in(container: Container) -> list[tuple[str, str]]:
    """The app name and the partition of every user who has memories."""
    found = await container.query(queries.OWNERS_WITH_APPS, {})
    return [(each["app_name"], each["owner"]) for each in found]


async def documents_in(container: Container, owner: str) -> list[Document]:
    """All documents of an owner except vectors, in the order in which they may be written: a
    memory after its parts."""
    found = [
        document
        async for page in container.pages(queries.DOCUMENTS, {}, owner)
        for document in page
        if document.get("kind") != documents.VECTOR
    ]
    return sorted(found, key=lambda document: document.get("kind") != documents.PART)


async def put_documents(store: MemoryStore, found: Sequence[Document]) -> Outcomes:
    """Creates the missing documents, reads them again, and counts the memories by outcome. Damaged
    ones are copied as they are."""
    outcomes = Outcomes()
    for document in found:
        store.damage.is_whole(document)
        outcome = await _put(store.container, document)
        if document.get("kind") == documents.MEMORY:
            outcomes[outcome] += 1
    return outcomes


async def _put(container: Container, document: Document) -> str:
    # The copy of a session is another incarnation: there, the ids of its events tell it apart.
    body = {
        name: value
        for name, value in document.items()
        if not name.startswith("_") and name not in INCARNATIONS
    }
    if isinstance(document.get("ttl"), int) and document["ttl"] > 0:
        # The remaining time to live.
        body["ttl"] = int(document["_ts"] + document["ttl"] - time.time())
        if body["ttl"] < 1:
            return EXPIRED
    try:
        await container.create(body)
        outcome = COPIED
    except Conflict:
        outcome = PRESENT
    try:
        there = await container.read(body["id"], body["owner"])
    except NotFound:
        return LOST
    assert isinstance(there, dict)
    if there.get("kind") == documents.FORGOTTEN != body.get("kind"):
        return FORGOTTEN
    same = all(there.get(name) == value for name, value in body.items() if name != "ttl")
    return outcome if same else DIFFERENT


async def put_events(
    store: MemoryStore, owner: Owner, sessions: Mapping[str | None, Sequence[Event]]
) -> Outcomes:
    """Adds events by session, reads them again, and counts them by outcome."""
    outcomes = Outcomes()
    for session_id, events in sessions.items():
        entries = event_entries(events, None, None)
        before = {
            entry.document_id: await _kind(store.container, owner, entry.document_id)
            for entry in entries
        }
        new = [entry for entry in entries if before[entry.document_id] is None]
        await store.add_events(owner, session_id, new)
        for each, was in before.items():
            if was is not None:
                outcomes[PRESENT if was == documents.MEMORY else FORGOTTEN] += 1
            else:
                there = await _kind(store.container, owner, each)
                outcomes[COPIED if there == documents.MEMORY else LOST] += 1
    return outcomes


async def _kind(container: Container, owner: Owner, document_id: str) -> str | None:
    try:
        found = await container.read(document_id, owner.key)
    except NotFound:
        return None
    assert isinstance(found, dict)
    return str(found.get("kind"))
