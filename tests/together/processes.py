"""Processes with all three services, or with the session service only, on one store.

They run in virtual time. Every text and every payload names the session that it belongs to, so that
a scan of the raw documents finds whatever is left of it.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from google.adk.sessions import Session
from google.genai import types

from cosmos_emulator import Emulator, Replicas
from cosmosservice import (
    CosmosAccount,
    CosmosArtifactService,
    CosmosMemoryService,
    CosmosSessionService,
)
from cosmosservice.artifacts.stores import Sizes
from tests.reliability import simulation
from tests.reliability.guarantees import _everything
from tests.reliability.simulation import SharedLoop, Wire, content_after
from tests.support.adk import event

ADA = {"app_name": "app", "user_id": "ada"}
BOB = {"app_name": "app", "user_id": "bob"}
SMALL = Sizes(inline=64, piece=128)
LARGE = 40  # times its text: in three pieces


class FileWire(Wire):
    """Erases bytes in the emulator's file, too."""

    def erase_remnants(self) -> bool:
        self._check()
        return self._emulator.erase_remnants()


class Process:
    """With `whole=False` it has no memory service and no artifact service."""

    def __init__(self, emulator: Emulator, *, whole: bool = True, blobs: str | None = None) -> None:
        self.wire = FileWire(emulator) if emulator.path != ":memory:" else Wire(emulator)
        self.sessions = CosmosSessionService.embedded(self.wire, ensure="never")  # type: ignore[arg-type]
        account: CosmosAccount = self.sessions.account
        account.executor = SharedLoop(account.executor.new_resources)
        self.memory = CosmosMemoryService(account=account) if whole else None
        self.artifacts = (
            CosmosArtifactService(account=account, blobs=blobs, _sizes=SMALL) if whole else None
        )

    def kill(self) -> None:
        self.wire.dead = True

    async def fill(self, session_id: str, text: str, who: dict[str, str] = ADA) -> Session:
        """A session with an event, a memory, and a small and a large artifact."""
        session = await self.sessions.create_session(**who, session_id=session_id)
        await self.use(session, text)
        return session

    async def use(self, session: Session, text: str) -> None:
        assert self.memory is not None
        assert self.artifacts is not None
        await self.sessions.append_event(session, event(f"word {text}"))
        await self.sessions.flush()
        await self.memory.add_session_to_memory(session)
        for name, size in (("small", 1), ("large", LARGE)):
            await self.artifacts.save_artifact(
                app_name=session.app_name,
                user_id=session.user_id,
                session_id=session.id,
                filename=f"{name} {text}",
                artifact=types.Part.from_bytes(
                    data=text.encode() * size, mime_type="application/octet-stream"
                ),
            )


@dataclass(frozen=True)
class Sight:
    """What a process sees of a session. None: there is no such session."""

    events: tuple[str, ...] | None
    memories: frozenset[str]
    files: tuple[str, ...]


async def look(process: Process, session_id: str, who: dict[str, str] = ADA) -> Sight:
    """Raises if anything listed does not load."""
    assert process.memory is not None
    assert process.artifacts is not None
    names = who | {"session_id": session_id}
    found = await process.sessions.get_session(**names)
    events = None if found is None else tuple(_text(each.content) for each in found.events)
    near = await process.memory.search_memory(**names, query="word", limit=50)
    files = await process.artifacts.list_artifact_keys(**names)
    for name in files:
        part = await process.artifacts.load_artifact(**names, filename=name)
        assert part is not None, f"{name} does not load"
        assert part.inline_data is not None
        kind, _, text = name.partition(" ")
        expected = text.encode() * (LARGE if kind == "large" else 1)
        assert part.inline_data.data == expected, f"{name} has other bytes"
    return Sight(events, frozenset(_text(each.content) for each in near.memories), tuple(files))


async def remembered(process: Process, who: dict[str, str] = ADA) -> set[str]:
    """What the user remembers, of any session."""
    assert process.memory is not None
    found = await process.memory.search_memory(**who, query="word", limit=50)
    return {_text(each.content) for each in found.memories}


def _text(content: Any) -> str:
    return str(content.parts[0].text).removeprefix("word ")


def full(text: str) -> Sight:
    return Sight((text,), frozenset({text}), (f"large {text}", f"small {text}"))


def left_of(emulator: Emulator, text: str) -> list[str]:
    """The documents that still hold anything of it, in whatever form."""
    raw = text.encode()
    forms = [text, *(base64.b64encode((raw * 3)[shift:]).decode()[4:12] for shift in range(3))]
    found = []
    for each in _everything(emulator):
        shown = str(each) + str([_unpacked(value) for value in each.values()])
        if any(form in shown for form in forms):
            found.append(f"{each.get('document_type') or each.get('kind')} {each['id']}")
    return found


def _unpacked(value: Any) -> str:
    """Of a text that was compressed."""
    try:
        return zlib.decompress(base64.b64decode(value), wbits=47).decode("utf-8", "replace")
    except Exception:
        return ""


def store(
    replicas: Replicas | None = None, path: Path | None = None, content: bytes | None = None
) -> Emulator:
    """With empty containers, or with what another one held."""
    content = content or _empty_store()
    if path is not None:
        path.write_bytes(content)
        return Emulator(path)
    return simulation.store(replicas, content)


@lru_cache(maxsize=1)
def _empty_store() -> bytes:
    async def open_containers(emulator: Emulator) -> None:
        async with CosmosAccount.embedded(emulator) as account:
            await CosmosSessionService(account=account).list_sessions(**ADA)
            await CosmosMemoryService(account=account).search_memory(**ADA, query="nothing")
            artifacts = CosmosArtifactService(account=account)
            await artifacts.list_artifact_keys(**ADA, session_id="s")

    return content_after(open_containers)
