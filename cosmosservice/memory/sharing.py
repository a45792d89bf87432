"""Memories that several sessions share: a fork has the events of its source, with their ids.

Erasing a source erases the memories that no other source has. The others pass to the next of their
sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cosmosservice.account.container import Container, Document
from cosmosservice.account.failures import NotFound, PreconditionFailed
from cosmosservice.account.retries import CONTENTION
from cosmosservice.errors import StorageError
from cosmosservice.memory.documents import Owner
from cosmosservice.memory.sources import MemoriesOf, Source, main_id, sources_of, with_sources


async def join(container: Container, owner: Owner, document_id: str, source: Source) -> bool:
    """Makes the memory belong to this source too. False if it no longer exists."""
    for attempt in CONTENTION:
        await CONTENTION.pause(attempt)
        try:
            found: Any = await container.read(document_id, owner.key)
            sources = _joined(sources_of(found), source)
            if sources is None or "session_id" not in found:
                return True
            await container.replace(with_sources(_own(found), sources), found["_etag"])
        except PreconditionFailed:
            continue
        except NotFound:
            return False
        return True
    raise StorageError(
        "add_session_to_memory: others keep changing a memory of this session. Some are not"
        " stored; add the session again."
    )


def _joined(sources: list[Source], source: Source) -> list[Source] | None:
    """The sources with this one too; None if it is among them already."""
    unknown = Source(source.session_id)
    if source in sources or (source == unknown and any(each[0] == unknown[0] for each in sources)):
        return None
    if unknown in sources:  # now it is known which source has it
        return [source if each == unknown else each for each in sources]
    return [*sources, source]


async def leave(
    container: Container, owner: Owner, wanted: MemoriesOf, found: Sequence[Document]
) -> list[Document]:
    """Passes documents that other sources have too to one of those. Returns the rest, which must
    be erased."""
    others = {
        each["id"]: [source for source in sources_of(each) if not wanted.includes(source, each)]
        for each in found
        if "of" not in each
    }
    shared = [each for each in found if others.get(main_id(each))]
    # The memory last: parts and vectors count as shared only as long as it belongs to this source.
    for each in sorted(shared, key=lambda each: "of" not in each):
        left = others[main_id(each)]
        try:
            whole: Any = await container.read(each["id"], owner.key)
            if whole["_etag"] == each["_etag"]:
                changed = with_sources(_own(whole), left[:1] if "of" in each else left)
                await container.replace(changed, each["_etag"])
        except (PreconditionFailed, NotFound):
            continue  # the next round finds it again, or it is gone
    kept = {each["id"] for each in shared}
    return [each for each in found if each["id"] not in kept]


def _own(document: Document) -> Document:
    return {name: value for name, value in document.items() if not name.startswith("_")}
