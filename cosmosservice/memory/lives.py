"""The lives of sessions that a memory belongs to.

A session that is created again is another life of the same session id; its incarnation tells it
apart. A memory belongs to the life that added it first (`session_id`, `incarnation`) and to others
that added it too (`also_in`: session ids; `lives`: incarnation → session id). Where an incarnation
is not known, because the caller's object did not say, the id of the event decides, which is the id
of the memory.
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

FIELDS: Final = ("session_id", "incarnation", "also_in", "lives")


class Life(NamedTuple):
    """One life of a session, or one that is not known."""

    session_id: str
    incarnation: str | None = None


@dataclass(frozen=True)
class LifeOf:
    """Which memories of a user are meant: those of one life of a session, or of all its lives.

    `events` are the ids of that life's events. They decide about memories that do not know their
    incarnation.
    """

    session_id: str
    incarnation: str | None = None  # None: all lives
    events: frozenset[str] = frozenset()

    def has(self, document: Document) -> bool:
        return any(self.includes(each, document) for each in lives_of(document))

    def includes(self, life: Life, document: Document) -> bool:
        """Whether this life of the memory is one that is meant."""
        if life.session_id != self.session_id:
            return False
        if self.incarnation is None or life.incarnation == self.incarnation:
            return True
        return life.incarnation is None and main_id(document) in self._ids

    @cached_property
    def _ids(self) -> Collection[str]:
        return {documents.document_id(each) for each in self.events}


class FormerLives(LifeOf):
    """Those of all lives of a session except this one. `events` are the ids of their events."""

    def includes(self, life: Life, document: Document) -> bool:
        if life.session_id != self.session_id:
            return False
        if life.incarnation is not None:
            return life.incarnation != self.incarnation
        return main_id(document) in self._ids


class SessionLives(Protocol):
    """Knows the sessions themselves. The memory service is given one."""

    async def current(self, owner: Owner, session_id: str) -> str | None:
        """The incarnation of the session now; None if there is no such session."""

    async def with_events(
        self, owner: Owner, session_id: str, event_ids: Collection[str]
    ) -> dict[str, set[str]]:
        """The incarnations that have these events, by event id."""


async def documents_of_life(container: Container, owner: Owner, wanted: LifeOf) -> list[Document]:
    """Exactly the documents of these memories, in the partition `owner.key`, as far as selecting
    and erasing needs them: `id`, `kind`, `of`, FIELDS and `_etag`. Memories, forgotten ones, parts
    and vectors; also what an interrupted add left without its memory.

    Memories come first. One that another life or session has too is among them: `sharing.leave`
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


def lives_of(document: Document) -> list[Life]:
    """The lives that have it, the one that added it first at the beginning."""
    known: Any = document.get("lives")
    others = [
        Life(each, name)
        for name, each in (known.items() if isinstance(known, dict) else ())
        if isinstance(each, str)
    ]
    of_known = {each.session_id for each in others}
    others += [Life(each) for each in strings(document.get("also_in")) if each not in of_known]
    first = document.get("session_id")
    if not isinstance(first, str):
        return others
    incarnation = document.get("incarnation")
    return [Life(first, incarnation if isinstance(incarnation, str) else None), *others]


def with_lives(document: Document, lives: list[Life]) -> Document:
    """The document as that of these lives, at least one."""
    (session_id, incarnation), *others = lives
    fields: dict[str, Any] = {
        "session_id": session_id,
        "incarnation": incarnation,
        "also_in": list(dict.fromkeys(each.session_id for each in others)),
        "lives": {each.incarnation: each.session_id for each in others if each.incarnation},
    }
    kept = {name: value for name, value in document.items() if name not in FIELDS}
    return kept | {name: value for name, value in fields.items() if value}
