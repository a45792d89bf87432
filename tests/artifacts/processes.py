"""Processes of the artifact service on one emulator, in virtual time, and what they store there."""

from __future__ import annotations

import hashlib
import time
from functools import lru_cache
from typing import Any

from cosmos_emulator import Emulator
from cosmosservice import CosmosArtifactService, CosmosSessionService
from cosmosservice.artifacts.stores import Sizes
from tests.artifacts.kinds import SMALL
from tests.reliability.guarantees import _everything
from tests.reliability.simulation import SharedLoop, Wire, content_after
from tests.support.cosmos import Cosmos

WHO = {"app_name": "app", "user_id": "ann"}
THIS = WHO | {"session_id": "s"}

View = dict[str, list[bytes]]  # names, and the payloads of their versions


def store() -> Emulator:
    """An emulator with empty containers."""
    return Emulator.load(_empty_store())


@lru_cache(maxsize=1)
def _empty_store() -> bytes:
    async def open_containers(emulator: Emulator) -> None:
        await CosmosArtifactService.embedded(emulator).list_artifact_keys(**THIS)
        await CosmosSessionService.embedded(emulator).list_sessions(**WHO)

    return content_after(open_containers)


class Process:
    """A service with a connection of its own, on an emulator made by `store`."""

    def __init__(self, emulator: Emulator, sizes: Sizes = SMALL, **options: Any) -> None:
        self.wire = Wire(emulator)
        self.service = CosmosArtifactService(
            endpoint="embedded::memory:",
            ensure="never",
            _emulator=self.wire,  # type: ignore[arg-type]
            _sizes=sizes,
            **options,
        )
        account = self.service.account
        self.sessions = CosmosSessionService(account=account)
        account.executor = SharedLoop(account.executor.new_resources)

    def kill(self) -> None:
        self.wire.dead = True


async def view(service: CosmosArtifactService) -> View:
    """Everything that a reader sees. Raises if anything listed does not load."""
    seen: View = {}
    for name in await service.list_artifact_keys(**THIS):
        versions = await service.list_versions(**THIS, filename=name)
        assert versions == list(range(len(versions))), f"{name} has versions {versions}"
        seen[name] = []
        for version in versions:
            part = await service.load_artifact(**THIS, filename=name, version=version)
            assert part is not None, f"version {version} of {name} does not load"
            seen[name].append(part.inline_data.data)
        latest = await service.load_artifact(**THIS, filename=name)
        assert latest.inline_data.data == seen[name][-1]
    return seen


def documents(store: Emulator | Cosmos, kind: str | None = None) -> list[dict[str, Any]]:
    """The documents that have not expired."""
    emulator = store.emulator if isinstance(store, Cosmos) else store
    if emulator is None:
        assert isinstance(store, Cosmos)
        now, everything = time.time(), store.documents("artifact_container", "scope").all()
    else:
        now, everything = emulator.clock.now(), list(_everything(emulator))
    found = sorted(everything, key=lambda each: each["id"])
    alive = [each for each in found if each["_ts"] + each.get("ttl", now) > now]
    return [each for each in alive if kind in (None, each.get("document_type"))]


def content(store: Emulator | Cosmos) -> list[dict[str, Any]]:
    """Documents that still have content."""
    return [
        each
        for each in documents(store)
        if each["document_type"] not in ("stub", "tombstone") and each.get("status") != "removed"
    ]


def garbage(store: Emulator | Cosmos) -> list[str]:
    """Unused data: payloads, pieces, unfinished deletions."""
    found = documents(store)
    versions = [each for each in found if each["document_type"] == "version"]
    ends: dict[str, str] = {}
    for each in found:
        if each["document_type"] == "tombstone":
            ends[each["id"].partition(".")[0]] = each["id"]
    used = {each["payload"]["upload"] for each in versions if "payload" in each}
    described = {each["entry"] for each in found if "entry" in each}
    headers = {each["entry"] for each in found if each["document_type"] == "header"}
    uploads = [each for each in found if each["document_type"] == "upload"]
    owned = used | {each["upload"] for each in uploads if each["status"] == "uploading"}
    left = []
    for each in found:
        kind, name = each["document_type"], each["id"].partition(".")[0]
        if kind == "upload" and each["status"] != "removed":
            left.append(each["status"])
        elif kind == "piece" and each["upload"] not in owned:
            left.append("piece")
        elif kind == "tombstone" and "ttl" not in each:
            left.append("tombstone")
        elif kind == "version" and name in ends and each["id"] < ends[name]:
            left.append("dead version")
        elif kind == "version" and each["id"][1:] not in described:
            left.append("version without a header")
    large = {each["id"][1:] for each in versions if "entry" not in each}
    left += ["header without its version"] * len(headers - large)
    return left


def bytes_of(name: str, size: int) -> bytes:
    """Bytes that depend only on the name."""
    seed = hashlib.sha256(name.encode()).digest()
    return (seed * (size // 32 + 1))[:size]
