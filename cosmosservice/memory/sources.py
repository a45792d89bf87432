"""The sources of a memory: the sessions that it was added from.

A session that is created again has the same session id, but is another source: its incarnation
tells it apart. A memory belongs to the source that added it first (`session_id`, `incarnation`) and
to others that added it too (`also_in`: session ids; `incarnations`: incarnation → session id).
Where an incarnation is not known, because the caller's object did not say, the id of the event
decides, which is the id of the memory.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol

from cosmosservice.account.container import Container, Document
from cosmosservice.memory import documents, queries
from cosmosservice.memory.damage import strings
from cosmosservice.memory.documents import Owner

INCARNATIONS: Final = ("incarnation", "incarnations")  # fields that only this store understands
FIELDS: Final = ("session_id", "also_in", *INCARNATIONS)


class Source(NamedTuple):
    """A session in one incarnation, or in one that is not known (None)."""

    session_id: str
    incarnation: str | None = None


@dataclass(frozen=True)
class MemoriesOf:
    """Which memories of a user are meant: those of one incarnation of a session, or of all.

    `events` are the ids of the events of that incarnation. They decide about memories that do not
    know theirs.
    """

    session_id: str
    incarnation: str | None = None  # None: all of them
    events: frozenset[str] = frozenset()

    def has(self, document: Document) -> bool:
        return any(self.includes(each, document) for each in sources_of(document))

    def includes(self, source: Source, document: Document) -> bool:
        """Whether what this source of the memory added is meant."""
        if source.session_id != self.session_id:
            return False
        if self.incarnation is None or source.incarnation == self.incarnation:
            return True
        return source.incarnation is None and main_id(document) in self._ids

    @cached_property
    def _ids(self) -> Collection[str]:
        return {documents.document_id(each) for each in self.events}


class MemoriesOfFormer(MemoriesOf):
    """Those of all incarnations of a session but this one. `events` are the ids of their events."""

    def includes(self, source: Source, document: Document) -> bool:
        if source.session_id != self.session_id:
            return False
        if source.incarnation is not None:
            return source.incarnation != self.incarnation
        return main_id(document) in self._ids


class KnownIncarnations(Protocol):
    """Knows the sessions themselves. The memory service is given one."""

    async def current(self, owner: Owner, session_id: str) -> str | None:
        """The incarnation of the session now; None if there is no such session."""

    async def with_events(
        self, owner: Owner, session_id: str, event_ids: Collection[str]
    ) -> dict[str, set[str]]:
        """The incarnations that have these events, by event id."""


async def documents_from(container: Container, owner: Owner, wanted: MemoriesOf) -> list[Document]:
    """Exactly the documents of these memories, in the partition `owner.key`, as far as selecting
    and erasing needs them: `id`, `kind`, `of`, `_etag` and the fields of their sources. Memories,
    forgotten ones, parts and vectors; also what an interrupted add left without its memory.

    Memories come first. One that another source has too is among them: `sharing.leave`
    takes those out. Probes first, so that a lagging replica hides nothing.
    """
    await container.probe(documents.PROBED, owner.key)
    rows = await container.query(
        queries.ALL_IN_SESSION, {"session_id": wanted.session_id}, owner.key
    )
    mains = {each["id"]: each for each in rows if "of" not in each}
    # A part or a vector goes with its memory, if that is there.
    found = [each for each in rows if wanted.has(mains.get(main_id(each), each))]
    return sorted(found, key=lambda each: "of" in each)


def main_id(document: Document) -> str:
    """The id of the memory that a part or a vector belongs to; of a memory, its own."""
    main = document.get("of")
    return main if isinstance(main, str) else document["id"]


def sources_of(document: Document) -> list[Source]:
    """The sources of the memory, the one that added it first at the beginning."""
    known: Any = document.get("incarnations")
    others = [
        Source(each, name)
        for name, each in (known.items() if isinstance(known, dict) else ())
        if isinstance(each, str)
    ]
    of_known = {each.session_id for each in others}
    others += [Source(each) for each in strings(document.get("also_in")) if each not in of_known]
    first = document.get("session_id")
    if not isinstance(first, str):
        return others
    incarnation = document.get("incarnation")
    return [Source(first, incarnation if isinstance(incarnation, str) else None), *others]


def with_sources(document: Document, sources: list[Source]) -> Document:
    """The document as that of these sources, at least one."""
    (session_id, incarnation), *others = sources
    fields: dict[str, Any] = {
        "session_id": session_id,
        "incarnation": incarnation,
        "also_in": list(dict.fromkeys(each.session_id for each in others)),
        "incarnations": {each.incarnation: each.session_id for each in others if each.incarnation},
    }
    kept = {name: value for name, value in document.items() if name not in FIELDS}
    return kept | {name: value for name, value in fields.items() if value}
