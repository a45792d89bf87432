"""The pages about a user: state, memories and artifacts."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web
from google.adk.errors.input_validation_error import InputValidationError

from cosmosservice.explore.addresses import number_of, user_of
from cosmosservice.explore.catalogue import Search
from cosmosservice.explore.conversation import IMAGES, Block, ImageBudget, part_blocks
from cosmosservice.explore.files import saved_as
from cosmosservice.explore.past import compared, shown
from cosmosservice.explore.reads import Reads
from cosmosservice.hosting.operation import Bounded
from cosmosservice.memory.documents import Owner
from cosmosservice.memory.entries import text_in
from cosmosservice.memory.words import found_in
from cosmosservice.sessions.store.keys import SessionKey

if TYPE_CHECKING:
    from google.adk.memory.memory_entry import MemoryEntry

    from cosmosservice.explore.files import Files

_MEMORIES: Final = 10
_SESSIONS: Final = 10


@dataclass(frozen=True)
class Memory:
    author: str
    timestamp: str
    session_id: str
    blocks: list[Block]
    why: str  # it was found
    marks: re.Pattern[str] | None  # what matches


class People(Reads):
    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/user", self.user),
            web.get("/artifact", self.artifact),
            web.get("/artifact/content", self.content),
        ]

    async def user(self, request: web.Request) -> web.Response:
        key = user_of(request)
        state = await self._service.get_user_state(app_name=key.app_name, user_id=key.user_id)
        wanted = Search(app_name=key.app_name, user_id=key.user_id)
        searched = request.query.get("memory", "").strip()
        files = self._dependants.files
        used = await self._service.usage(app_name=key.app_name, user_id=key.user_id)
        return self._rendering.page(
            "user.html",
            used=used.total,
            key=key,
            state=shown(compared(state, state)),
            found=await self._catalogue.find(wanted, _SESSIONS),
            searched=searched,
            memories=await self._memories(key, searched),
            files=None if files is None else await files.of_user(key),
        )

    async def _memories(self, key: SessionKey, searched: str) -> list[Memory] | None:
        """What a search by the agent would find; without a search text, the newest memories; None
        if the store has no memories."""
        service = self._dependants.memory
        if service is None:
            return None
        if searched:
            answer = await service.search_memory(
                app_name=key.app_name, user_id=key.user_id, query=searched
            )
            found = answer.memories
        else:
            owner = Owner.of(key.app_name, key.user_id)
            found = await service.in_store(
                Bounded("iter_memories"), lambda store: store.latest(owner, _MEMORIES)
            )
        budget = ImageBudget()
        return [_memory(each, budget, searched) for each in found]

    async def artifact(self, request: web.Request) -> web.Response:
        files, key, name, version = self._asked(request)
        versions = await files.versions(key, name)
        shown = versions[0].number if version is None and versions else version
        return self._rendering.page(
            "artifact.html",
            key=key,
            name=name,
            versions=versions,
            version=shown,
            blocks=[] if shown is None else await files.blocks(key, name, shown),
        )

    async def content(self, request: web.Request) -> web.StreamResponse:
        """The bytes. The browser shows an image, and saves anything else."""
        files, key, name, version = self._asked(request)
        try:
            reader = await files.open(key, name, version)
        except InputValidationError:  # it refers to data elsewhere
            reader = None
        if reader is None:
            raise web.HTTPNotFound
        kind = (reader.mime_type or "").lower()
        response = web.StreamResponse()
        response.content_type = kind if kind in IMAGES else "application/octet-stream"
        if kind not in IMAGES or "save" in request.query:
            response.headers["Content-Disposition"] = saved_as(name)
        response.content_length = reader.size
        await response.prepare(request)
        async for piece in reader:
            await response.write(piece)
        return response

    def _asked(self, request: web.Request) -> tuple[Files, SessionKey, str, int | None]:
        files = self._dependants.files
        if files is None:
            raise web.HTTPNotFound
        name = request.query.get("name", "")
        return files, user_of(request), name, number_of(request, "version")


def _memory(entry: MemoryEntry, budget: ImageBudget, searched: str) -> Memory:
    blocks = [block for part in entry.content.parts or [] for block in part_blocks(part, budget)]
    session = entry.custom_metadata.get("session_id")
    author = entry.author or ""
    return Memory(
        author,
        _local(entry.timestamp),
        session if isinstance(session, str) else "",
        blocks,
        _why(entry.custom_metadata.get("match") or {}) if searched else "",
        found_in(text_in(entry.content), author, searched) if searched else None,
    )


def _why(match: Mapping[str, Any]) -> str:
    """Why a search found the memory, by its metadata."""
    reasons = []
    if match.get("words"):
        reasons.append(f"has {', '.join(match['words'])}")
    if "answer_to" in match:
        reasons.append("follows a question that matches")
    if "nearness" in match:
        reasons.append(f"near in meaning, {match['nearness']:.2f}")
    return "; ".join(reasons)


def _local(timestamp: Any) -> str:
    """In the same form as the other times of the page, if it is a time."""
    try:
        moment = datetime.datetime.fromisoformat(timestamp).astimezone()
    except (TypeError, ValueError, OverflowError):
        return str(timestamp or "")
    return moment.isoformat(" ", "seconds")[:19]
