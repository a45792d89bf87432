"""The versions of a name: a log in which each sequence number is taken once.

What a process knows of a name is a guess, and the create decides: if the number is taken, the
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
from cosmosservice.artifacts.keys import ArtifactKey, Scope, entry_name, name_digest_of, seq_of

# How long a guess is kept, in seconds, and for how many names. Much shorter than freed numbers stay
# blocked (documents.BLOCKED_TTL).
_GUESS_SECONDS = 600
_MAX_GUESSES = 10_000
# Uploads of more pieces are not read ahead, and their digests would take memory.
_MAX_KNOWN_PIECES = 8

_OF_NAME = "FROM c WHERE c.id >= @first AND c.id < @last"
_ENTRIES = "FROM c WHERE c.entry >= @first AND c.entry < @last"  # their descriptions
_META = (
    "c.id, c.document_type, c.version, c.created_at, c.saved_at, c._ts, c.mime_type,"
    " c.custom_metadata, c.save,"
    " c.bytes, c.payload.upload, c.payload.use, c.payload.store, c.payload.pieces, c.ttl, c._etag"
)
LATEST = f"SELECT TOP 1 * {_OF_NAME} ORDER BY c.id DESC"
LATEST_META = f"SELECT TOP 1 {_META} {_ENTRIES} ORDER BY c.entry DESC"
_NUMBERED = f"(c.version = @version OR c.document_type = '{TOMBSTONE}')"
NUMBERED = f"SELECT TOP 1 * {_OF_NAME} AND {_NUMBERED} ORDER BY c.id DESC"
NUMBERED_META = f"SELECT TOP 1 {_META} {_ENTRIES} AND {_NUMBERED} ORDER BY c.entry DESC"
ALL = f"SELECT {_META} {_ENTRIES} ORDER BY c.entry"
OF_SCOPE = f"SELECT {_META} FROM c WHERE c.entry >= '' ORDER BY c.entry"
AT = f"SELECT {_META} FROM c WHERE c.entry = @entry"
NAMES = (
    "SELECT c.id, c.filename, c.document_type FROM c"
    f" WHERE c.entry >= '' AND (c.version = 0 OR c.document_type = '{TOMBSTONE}')"
)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a version can go. With an etag, it replaces the document there: a tombstone or stub."""

    seq: int
    version: int
    etag: str | None = None


class _Known(NamedTuple):
    """What this process last saw of a name."""

    following: Target
    payload: Document | None  # of its last version, if it is an upload: the fields that name it
    time: float


class Versions:
    """Reads the entries of names, and caches the last one."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()

    # --- what this process has seen

    def guess(self, key: ArtifactKey) -> Target:
        """Where the next version probably goes."""
        known = self._recent(key)
        return Target(0, 0) if known is None else known.following

    def guess_payload(self, key: ArtifactKey) -> Document | None:
        """The fields of the version that is probably the last one, if they name an upload."""
        known = self._recent(key)
        return None if known is None else known.payload

    def seen(self, key: ArtifactKey, version: Document) -> None:
        """Notes that this is the last version of the name."""
        following = Target(seq_of(version["id"]) + 1, version["version"] + 1)
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
        """The description of the last entry, of any type."""
        return await self._one(LATEST_META, key, key.entries)

    async def at(self, key: ArtifactKey, target: Target) -> Document | None:
        """What has taken the number of a target."""
        return await self._one(AT, key, {"entry": entry_name(key.entry_id(target.seq))})

    async def find(
        self, key: ArtifactKey, version: int | None, *, whole: bool = False
    ) -> Document | None:
        """A live version, or the latest: its description or, if `whole`, its document, with the
        payload if that is there."""
        among = key.id_range if whole else key.entries
        if version is None:
            return _live(await self._one(LATEST if whole else LATEST_META, key, among))
        text, parameters = NUMBERED if whole else NUMBERED_META, among | {"version": version}
        found = _live(await self._one(text, key, parameters))
        if found is not None or version < 0:
            return found
        # The caller knows of this version. A replica that lacks it must not hide it.
        if not await self._container.probe(key.entry_id(0), key.partition):
            return None
        return _live(await self._one(text, key, parameters))

    async def all(self, key: ArtifactKey) -> list[Document]:
        """The descriptions of the live versions, in order."""
        found = await self.entries(key)
        ends = [n for n, each in enumerate(found) if each["document_type"] == TOMBSTONE]
        alive = found[ends[-1] + 1 :] if ends else found
        return [each for each in alive if is_version(each)]

    async def entries(self, key: ArtifactKey) -> list[Document]:
        """The descriptions of all entries of a name in order, dead or alive."""
        return await self._container.query(ALL, key.entries, key.partition)

    async def names(self, scope: Scope) -> list[str]:
        """The names of all live artifacts in a scope. A name that was deleted and saved again has a
        version 0 for each time."""
        ended: dict[str, int] = {}
        begun: list[tuple[str, int, str]] = []
        for body in await self._container.query(NAMES, {}, scope.partition):
            name, seq = name_digest_of(body["id"]), seq_of(body["id"])
            if body["document_type"] == TOMBSTONE:
                ended[name] = max(seq, ended.get(name, 0))
            else:
                begun.append((name, seq, body["filename"]))
        return [filename for name, seq, filename in begun if seq > ended.get(name, -1)]

    async def _one(
        self, text: str, key: ArtifactKey, parameters: Mapping[str, Any]
    ) -> Document | None:
        found = await self._container.query(text, parameters, key.partition)
        return found[0] if found else None


def _live(document: Document | None) -> Document | None:
    return document if document is not None and is_version(document) else None
