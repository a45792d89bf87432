"""Memories that several sessions share: a fork has the events of its source, with their ids.

A memory belongs to the session that added it first (`session_id`) and to others that added it
(`also_in`). Erasing a session erases the memories that no other session has; the others pass to the
next of their sessions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cosmosservice.account.container import Container, Document
from cosmosservice.account.failures import NotFound, PreconditionFailed
from cosmosservice.account.retries import CONTENTION
from cosmosservice.errors import StorageError
from cosmosservice.memory.documents import Owner


async def join(container: Container, owner: Owner, document_id: str, session_id: str) -> bool:
    """Makes the memory belong to this session too. False if it no longer exists."""
    for attempt in CONTENTION:
        await CONTENTION.pause(attempt)
        try:
            found: Any = await container.read(document_id, owner.key)
            if "session_id" not in found or session_id in sessions_of(found):
                return True
            await container.replace(
                _own(found) | {"also_in": [*found.get("also_in", ()), session_id]}, found["_etag"]
            )
        except PreconditionFailed:
            continue
        except NotFound:
            return False
        return True
    raise StorageError(
        "add_session_to_memory: others keep changing a memory of this session. Some are not"
        " stored; add the session again."
    )


def sessions_of(document: Document) -> list[str]:
    return [document["session_id"], *document.get("also_in", ())]


async def leave(
    container: Container, owner: Owner, session_id: str, found: Sequence[Document]
) -> list[Document]:
    """Passes those documents of a session that other sessions have too to one of them. Returns the
    rest, which must be erased."""
    others = {
        each["id"]: [name for name in sessions_of(each) if name != session_id]
        for each in found
        if "of" not in each
    }
    shared = [each for each in found if others.get(each.get("of", each["id"]))]
    # The memory last: parts and vectors count as shared only as long as it belongs to this session.
    for each in sorted(shared, key=lambda each: "of" not in each):
        first, *rest = others[each.get("of", each["id"])]
        try:
            whole: Any = await container.read(each["id"], owner.key)
            if whole["_etag"] == each["_etag"]:
                changed = _own(whole) | {"session_id": first}
                await container.replace(
                    changed if "of" in each else _also_in(changed, rest), each["_etag"]
                )
        except (PreconditionFailed, NotFound):
            continue  # the next round finds it again, or it is gone
    return [each for each in found if each not in shared]


def _also_in(document: Document, sessions: list[str]) -> Document:
    document.pop("also_in", None)
    return document | ({"also_in": sessions} if sessions else {})


def _own(document: Document) -> Document:
    return {name: value for name, value in document.items() if not name.startswith("_")}
