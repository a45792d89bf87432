"""Memories that several sessions share: a fork has the events of its source, with their ids.

Erasing a life of a session erases the memories that no other life or session has. The others pass
to the next of their lives (lives.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cosmosservice.account.container import Container, Document
from cosmosservice.account.failures import NotFound, PreconditionFailed
from cosmosservice.account.retries import CONTENTION
from cosmosservice.errors import StorageError
from cosmosservice.memory.documents import Owner
from cosmosservice.memory.lives import Life, LifeOf, lives_of, main_id, with_lives


async def join(container: Container, owner: Owner, document_id: str, life: Life) -> bool:
    """Makes the memory belong to this life too. False if it no longer exists."""
    for attempt in CONTENTION:
        await CONTENTION.pause(attempt)
        try:
            found: Any = await container.read(document_id, owner.key)
            lives = _joined(lives_of(found), life)
            if lives is None or "session_id" not in found:
                return True
            await container.replace(with_lives(_own(found), lives), found["_etag"])
        except PreconditionFailed:
            continue
        except NotFound:
            return False
        return True
    raise StorageError(
        "add_session_to_memory: others keep changing a memory of this session. Some are not"
        " stored; add the session again."
    )


def _joined(lives: list[Life], life: Life) -> list[Life] | None:
    """The lives with this one too; None if it is among them already."""
    unknown = Life(life.session_id)
    if life in lives or (life == unknown and any(each[0] == unknown[0] for each in lives)):
        return None
    if unknown in lives:  # now it is known which life has it
        return [life if each == unknown else each for each in lives]
    return [*lives, life]


async def leave(
    container: Container, owner: Owner, wanted: LifeOf, found: Sequence[Document]
) -> list[Document]:
    """Passes those of these documents that other lives have too to one of them. Returns the rest,
    which must be erased."""
    others = {
        each["id"]: [life for life in lives_of(each) if not wanted.includes(life, each)]
        for each in found
        if "of" not in each
    }
    shared = [each for each in found if others.get(main_id(each))]
    # The memory last: parts and vectors count as shared only as long as it belongs to this life.
    for each in sorted(shared, key=lambda each: "of" not in each):
        left = others[main_id(each)]
        try:
            whole: Any = await container.read(each["id"], owner.key)
            if whole["_etag"] == each["_etag"]:
                changed = with_lives(_own(whole), left[:1] if "of" in each else left)
                await container.replace(changed, each["_etag"])
        except (PreconditionFailed, NotFound):
            continue  # the next round finds it again, or it is gone
    kept = {each["id"] for each in shared}
    return [each for each in found if each["id"] not in kept]


def _own(document: Document) -> Document:
    return {name: value for name, value in document.items() if not name.startswith("_")}
