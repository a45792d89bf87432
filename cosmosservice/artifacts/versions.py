"""The versions of a name: places in a log, each of which is taken once.

What a process knows of a name is a guess, and the create decides: if the place is taken, the
process reads again. So a save takes one request if no other process has changed the name since
this one saved or loaded it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from cosmosservice.account.container import Container, Document
from cosmosservice.artifacts.documents import TOMBSTONE, is_version
from cosmosservice.artifacts.keys import ArtifactKey, Scope, name_digest_of, place_of, place_text

# How long a guess is kept, in seconds, and for how many names. Much shorter than freed places stay
# blocked (documents.BLOCKED_TTL).
_GUESS_SECONDS = 600
_MAX_GUESSES = 10_000
# Uploads of more pieces are not read ahead, and their digests would take memory.
_MAX_KNOWN_PIECES = 8

_OF_NAME = "FROM c WHERE c.id >= @first AND c.id < @last"
_PLACES = "FROM c WHERE c.place >= @first AND c.place < @last"  # their descriptions
_META = (
    "c.id, c.document_type, c.version, c.created_at, c.saved_at, c._ts, c.mime_type,"
    " c.custom_metadata, c.save,"
    " c.bytes, c.payload.upload, c.payload.use, c.payload.store, c.payload.pieces, c.ttl, c._etag"
)
LATEST = f"SELECT TOP 1 * {_OF_NAME} ORDER BY c.id DESC"
LATEST_META = f"SELECT TOP 1 {_META} {_PLACES} ORDER BY c.place DESC"
_NUMBERED = f"(c.version = @version OR c.document_type = '{TOMBSTONE}')"
NUMBERED = f"SELECT TOP 1 * {_OF_NAME} AND {_NUMBERED} ORDER BY c.id DESC"
NUMBERED_META = f"SELECT TOP 1 {_META} {_PLACES} AND {_NUMBERED} ORDER BY c.place DESC"
ALL = f"SELECT {_META} {_PLACES} ORDER BY c.place"
OF_SCOPE = f"SELECT {_META} FROM c WHERE c.place >= '' ORDER BY c.place"
AT = f"SELECT {_META} FROM c WHERE c.place = @place"
NAMES = (
    "SELECT c.id, c.filename, c.document_type FROM c"
    f" WHERE c.place >= '' AND (c.version = 0 OR c.document_type = '{TOMBSTONE}')"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a version can go. With an etag, it replaces the document there: a tombstone or stub."""

    number: int
    version: int
    etag: str | None = None


class _Known(NamedTuple):
    """What this process last saw of a name."""

    following: Place
    payload: Document | None  # of its last version, if it is an upload: the fields that name it
    time: float


class Versions:
    """Reads the places of names, and caches the last one. Lives on one event loop."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()

    # --- what this process has seen

    def guess(self, key: ArtifactKey) -> Place:
        """Where the next version probably goes."""
        known = self._recent(key)
        return Place(0, 0) if known is None else known.following

    def guess_payload(self, key: ArtifactKey) -> Document | None:
        """The fields of the version that is probably the last one, if they name an upload."""
        known = self._recent(key)
        return None if known is None else known.payload

    def seen(self, key: ArtifactKey, version: Document) -> None:
        """Notes that this is the last version of the name."""
        following = Place(place_of(version["id"]) + 1, version["version"] + 1)
        payload: Document | None = None
        # The copy of a damaged version names an upload without pieces.
        if 0 < version.get("payload", {}).get("pieces", 0) <= _MAX_KNOWN_PIECES:
            payload = {name: version[name] for name in ("version", "bytes", "payload")}
        of = (key.partition, key.filename)
        self._known[of] = _Known(following, payload, asyncio.get_running_loop().time())
        self._known.move_to_end(of)
        if len(self._known) > _MAX_GUESSES:
            self._known.popitem(last=False)

    def forget(self, key: ArtifactKey) -> None:
        self._known.pop((key.partition, key.filename), None)

    def _recent(self, key: ArtifactKey) -> _Known | None:
        known = self._known.get((key.partition, key.filename))
        if known is None or asyncio.get_running_loop().time() - known.time > _GUESS_SECONDS:
            return None
        return known

    # --- what is there

    async def head(self, key: ArtifactKey) -> Document | None:
        """The description of the last place, of any type."""
        return await self._one(LATEST_META, key, key.places)

    async def at(self, key: ArtifactKey, place: Place) -> Document | None:
        """The description of a place."""
        return await self._one(AT, key, {"place": place_text(key.place_id(place.number))})

    async def find(
        self, key: ArtifactKey, version: int | None, *, whole: bool = False
    ) -> Document | None:
        """A live version, or the latest: its description or, if `whole`, its document, with the
        payload if that is there."""
        among = key.id_range if whole else key.places
        if version is None:
            return _live(await self._one(LATEST if whole else LATEST_META, key, among))
        text, parameters = NUMBERED if whole else NUMBERED_META, among | {"version": version}
        found = _live(await self._one(text, key, parameters))
        if found is not None or version < 0:
            return found
        # The caller knows of this version. A replica that lacks it must not hide it.
        if not await self._container.probe(key.place_id(0), key.partition):
            return None
        return _live(await self._one(text, key, parameters))

    async def all(self, key: ArtifactKey) -> list[Document]:
        """The descriptions of the live versions, in order."""
        found = await self.places(key)
        ends = [n for n, each in enumerate(found) if each["document_type"] == TOMBSTONE]
        alive = found[ends[-1] + 1 :] if ends else found
        return [each for each in alive if is_version(each)]

    async def places(self, key: ArtifactKey) -> list[Document]:
        """The descriptions of all places of a name in order, dead or alive."""
        return await self._container.query(ALL, key.places, key.partition)

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

    async def _one(
        self, text: str, key: ArtifactKey, parameters: Mapping[str, Any]
    ) -> Document | None:
        found = await self._container.query(text, parameters, key.partition)
        return found[0] if found else None


def _live(document: Document | None) -> Document | None:
    return document if document is not None and is_version(document) else None
