"""Memories of every kind, and every way to damage one of their documents."""

from __future__ import annotations

import itertools
import random
from typing import Any

from google.genai import types

from cosmos_emulator import Emulator
from cosmosservice import CosmosMemoryService, CosmosSessionService
from cosmosservice.memory.documents import Owner
from tests.memory.support import session
from tests.support.adk import event
from tests.support.raw import RawContainer, raw_client

MISSING = object()
WRONG = {
    "missing": MISSING,
    "null": None,
    "number": 5,
    "text": "strange/",
    "list": ["strange", {"a": 1}],
    "dict": {"strange": []},
}
FIELDS = {
    "memory": (
        *("kind", "memory_id", "app_name", "user_id", "session_id", "also_in", "author", "time"),
        *("incarnation", "incarnations"),
        *("timestamp", "at", "tokens", "length", "asks", "content", "metadata"),
        *("complete", "schema_version", "_ts"),
    ),
    "large": ("chunks", "chunks.count", "chunks.bytes", "chunks.sha256", "tokens", "time"),
    "chunk": ("kind", "of", "beside", "data", "session_id"),
    "words": ("kind", "of", "beside", "tokens", "length", "time", "session_id", "author"),
    "forgotten": ("kind", "at", "session_id", "forgotten_at"),
    "vector": ("kind", "of", "beside", "embedding", "session_id"),
}
WORDS = " ".join(f"word{number}" for number in range(1_500))

_users = itertools.count()


IN_PARTS = {"large", "chunk", "words"}  # the documents of a large memory


class Told:
    """A user with memories of every kind, or without a large one, which takes most of the time."""

    def __init__(self, memory, *, large: bool = True) -> None:
        self.memory = memory
        self.user = f"secret-{next(_users)}"
        self.names = {"app_name": "app", "user_id": self.user}
        self.owner = Owner.of("app", self.user)
        noise = random.Random(0).randbytes(6_000)
        picture = types.Part(inline_data=types.Blob(data=noise, mime_type="image/png"))
        parts = [types.Part(text=f"large tea {WORDS}"), picture]
        self.hidden, self.forgotten = event("hidden tea"), event("forgotten tea")
        self.large = event(content=types.Content(role="user", parts=parts))
        self.events = [
            event("tea before"),
            self.hidden,
            *([self.large] if large else []),
            self.forgotten,
            event("tea after"),
        ]
        self.session = session(*self.events, user=self.user)

    async def add(self) -> None:
        await self.memory.add_session_to_memory(self.session)
        await self.memory.delete_memory(**self.names, memory_id=self.forgotten.id)

    def document(self, which: str, stored: list[dict[str, Any]]) -> dict[str, Any]:
        chosen = {
            "memory": lambda each: "of" not in each and each.get("memory_id") == self.hidden.id,
            "large": lambda each: "of" not in each and each.get("memory_id") == self.large.id,
            "chunk": lambda each: "data" in each,
            "words": lambda each: each["id"].endswith(".w1"),
            "forgotten": lambda each: each["kind"] == "forgotten",
            "vector": lambda each: each["kind"] == "vector" and self.hidden.id in each["of"],
        }[which]
        (found,) = filter(chosen, stored)
        return found

    def damage(
        self, raw: RawContainer, which: str, field: str, value: object, stored: list[dict[str, Any]]
    ) -> None:
        document = self.document(which, stored)
        *path, name = field.split(".")
        target = document
        for each in path:
            target = target[each]
        if value is MISSING:
            target.pop(name, None)
        else:
            target[name] = value
        raw.put(document)


GOOD = {"tea before", "tea after"}


async def fill_with_damage(emulator: Emulator) -> list[str]:
    """Stores a user for each field, damaged in one of the ways in turn, and documents whose owner
    is not text. Returns the users."""
    wrong = itertools.cycle(WRONG.values())
    damages = [
        (which, field, next(wrong))
        for which, fields in FIELDS.items()
        for field in fields
        if which != "vector"
    ]
    with raw_client(emulator) as client:
        async with CosmosSessionService.embedded(emulator) as sessions:
            await sessions.create_session(app_name="app", user_id="x", session_id="s")
        async with CosmosMemoryService.embedded(emulator) as memory:
            users = [Told(memory) for _ in damages]
            for user in users:
                await user.add()
        proxy = client.get_database_client("adk").get_container_client("memories")
        raw = RawContainer(proxy, "owner")
        stored = raw.all()
        for user, damage in zip(users, damages, strict=True):
            user.damage(raw, *damage, [each for each in stored if each["owner"] == user.owner.key])
        for number, owner in enumerate([{}, {"owner": None}, {"owner": 5}, {"owner": "strange/"}]):
            raw.put({"id": f"e.odd{number}", "kind": "memory", "app_name": "app", **owner})
    return [user.user for user in users]
