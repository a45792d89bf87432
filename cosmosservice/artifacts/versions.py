"""The versions of a name: places in a log, each of which is taken once.

What a process knows of a name is a guess, and the create decides: if the place is taken, the
process reads again. So a save takes one request if no other process has changed the name.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass

from cosmosservice.account.container import Container, Document
from cosmosservice.artifacts.documents import TOMBSTONE, VERSION
from cosmosservice.artifacts.keys import ArtifactKey, Scope, name_digest_of, place_of

# How long a guess is kept, in seconds, and for how many names. Much shorter than freed places stay
# blocked (documents.BLOCKED_TTL).
_GUESS_SECONDS = 600
_MAX_GUESSES = 10_000

_OF_NAME = "FROM c WHERE c.id >= @first AND c.id < @last"
_META = (
    "c.id, c.document_type, c.version, c.created_at, c.saved_at, c._ts, c.mime_type,"
    " c.custom_metadata, c.save,"
    " c.bytes, c.payload.upload, c.payload.use, c.payload.store, c.payload.pieces, c.ttl, c._etag"
)
LATEST = f"SELECT TOP 1 * {_OF_NAME} ORDER BY c.id DESC"
LATEST_META = f"SELECT TOP 1 {_META} {_OF_NAME} ORDER BY c.id DESC"
_NUMBERED = f"{_OF_NAME} AND (c.version = @version OR c.document_type = '{TOMBSTONE}')"
NUMBERED = f"SELECT TOP 1 * {_NUMBERED} ORDER BY c.id DESC"
NUMBERED_META = f"SELECT TOP 1 {_META} {_NUMBERED} ORDER BY c.id DESC"
ALL = f"SELECT {_META} {_OF_NAME} ORDER BY c.id"
NAMES = (
    "SELECT c.id, c.filename, c.document_type FROM c"
    f" WHERE c.version = 0 OR c.document_type = '{TOMBSTONE}'"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a version can go. With an etag, it replaces the document there: a tombstone or stub."""

    number: int
    version: int
    etag: str | None = None


class Versions:
    """Reads the places of names, and caches the next place. Lives on one event loop."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self._next: OrderedDict[tuple[str, str], tuple[Place, float]] = OrderedDict()

    # --- where the next one goes

    def guess(self, key: ArtifactKey) -> Place:
        found = self._next.get((key.partition, key.filename))
        now = asyncio.get_running_loop().time()
        if found is None or now - found[1] > _GUESS_SECONDS:
            return Place(0, 0)
        return found[0]

    def taken(self, key: ArtifactKey, place: Place) -> None:
        """Notes that this process has stored a version there."""
        known = (key.partition, key.filename)
        self._next[known] = (
            Place(place.number + 1, place.version + 1),
            asyncio.get_running_loop().time(),
        )
        self._next.move_to_end(known)
        if len(self._next) > _MAX_GUESSES:
            self._next.popitem(last=False)

    def forget(self, key: ArtifactKey) -> None:
        self._next.pop((key.partition, key.filename), None)

    # --- what is there

    async def head(self, key: ArtifactKey) -> Document | None:
        """The document at the last place, of any type, without the payload."""
        return await self._one(LATEST_META, key)

    async def at(self, key: ArtifactKey, place: Place) -> Document | None:
        """The document at a place, without the payload."""
        parameters = {"id": key.place_id(place.number)}
        text = f"SELECT {_META} FROM c WHERE c.id = @id"
        found = await self._container.query(text, parameters, key.partition)
        return found[0] if found else None

    async def find(
        self, key: ArtifactKey, version: int | None, *, whole: bool = False
    ) -> Document | None:
        """A live version, or the latest; `whole`: with the payload if that is in the document."""
        if version is None:
            return _live(await self._one(LATEST if whole else LATEST_META, key))
        text = NUMBERED if whole else NUMBERED_META
        found = _live(await self._one(text, key, version=version))
        if found is not None or version < 0:
            return found
        # The caller knows of this version. A replica that lacks it must not hide it.
        if not await self._container.probe(key.place_id(0), key.partition):
            return None
        return _live(await self._one(text, key, version=version))

    async def all(self, key: ArtifactKey) -> list[Document]:
        """The live versions in order, without payloads."""
        found = await self.places(key)
        ends = [n for n, each in enumerate(found) if each["document_type"] == TOMBSTONE]
        alive = found[ends[-1] + 1 :] if ends else found
        return [each for each in alive if each["document_type"] == VERSION]

    async def places(self, key: ArtifactKey) -> list[Document]:
        """All documents of a name in order, dead or alive, without payloads."""
        return await self._container.query(ALL, key.id_range, key.partition)

    async def names(self, scope: Scope) -> list[str]:
        """The names of all live artifacts in a scope. Every life of a name has one version 0."""
        ended: dict[str, int] = {}
        begun: list[tuple[str, int, str]] = []
        for body in await self._container.query(NAMES, {}, scope.partition):
            name, place = name_digest_of(body["id"]), place_of(body["id"])
            if body["document_type"] == TOMBSTONE:
                ended[name] = max(place, ended.get(name, 0))
            else:
                begun.append((name, place, body["filename"]))
        return [filename for name, place, filename in begun if place > ended.get(name, -1)]

    async def _one(self, text: str, key: ArtifactKey, **parameters: int) -> Document | None:
        found = await self._container.query(text, key.id_range | parameters, key.partition)
        return found[0] if found else None


def _live(document: Document | None) -> Document | None:
    return document if document is not None and document["document_type"] == VERSION else None
