"""What `cosmosservice memory …` does. Imports ADK, so it is imported by the commands that run."""

from __future__ import annotations

import contextlib
import datetime
import importlib
import sys
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from cosmosservice import CosmosAccount, CosmosMemoryService
from cosmosservice.cli.console import (
    UsageProblem,
    bar,
    counted,
    err,
    print_json,
    settings_of,
)
from cosmosservice.cli.layout import print_table
from cosmosservice.cli.session_work import OwnerName, owner_of
from cosmosservice.cli.timeline import clean
from cosmosservice.hosting.operation import Bounded
from cosmosservice.memory.documents import Owner
from cosmosservice.memory.embedding import Embedder
from cosmosservice.memory.entries import text_in


@contextlib.asynccontextmanager
async def service_of(
    uri: str | None, *, writes: bool = False, embedder: Embedder | None = None
) -> AsyncIterator[CosmosMemoryService]:
    """Only commands that store memories create a store; reading a missing one is an error. A file
    in which there are no memories yet is none."""
    settings = settings_of(uri, existing=not writes)
    ensure: Any = None if writes or settings.embedded_path is not None else "verify"
    async with CosmosMemoryService(uri=uri, ensure=ensure, embedder=embedder) as service:
        yield service


async def owner(
    uri: str | None, app_name: str | None, user_id: str | None, session_id: str | None
) -> OwnerName:
    """Whose memories are meant, without a request if app and user are given."""
    if app_name is not None and user_id is not None:
        return OwnerName(app_name, user_id)
    given = {"app_name": app_name, "user_id": user_id, "session_id": session_id}
    settings_of(uri, existing=True)
    async with CosmosAccount(uri=uri, ensure="verify") as account:
        return await owner_of(account, given)


async def search(uri: str | None, *, as_json: bool, **options: Any) -> None:
    async with service_of(uri) as service:
        whose = await owner_of(service.account, options)
        response = await service.search_memory(**options | whose._asdict())
    _print(response.memories, as_json, "Nothing was found.")


async def latest(uri: str | None, *, limit: int, as_json: bool, **options: Any) -> None:
    async with service_of(uri) as service:
        whose = (await owner_of(service.account, options))._asdict()
        if (session_id := options["session_id"]) is None:
            owner = Owner.of(**whose)
            found = await service.in_store(
                Bounded("iter_memories"), lambda store: store.latest(owner, limit)
            )
        else:
            kept: deque[MemoryEntry] = deque(maxlen=limit)
            async for each in service.iter_memories(**whose, session_id=session_id):
                kept.appendleft(each)
            found = list(kept)
    _print(found, as_json, "No memories.")
    if len(found) == limit and not as_json:
        err.print(f"The latest {limit}; more with --limit.")


async def add(
    uri: str | None, text: str, app_name: str, user_id: str, *, author: str | None, ttl: int | None
) -> None:
    content = types.Content(role="user", parts=[types.Part(text=text)])
    metadata = None if ttl is None else {"ttl": ttl}
    async with service_of(uri, writes=True) as service:
        await service.add_memory(
            app_name=app_name,
            user_id=user_id,
            memories=[MemoryEntry(content=content, author=author)],
            custom_metadata=metadata,
        )
    err.print("Added.")


async def forget(uri: str | None, app_name: str, user_id: str, memory_id: str) -> bool:
    owner = Owner.of(app_name, user_id)
    async with service_of(uri) as service:
        found = await service.in_store(
            Bounded("delete_memory"), lambda store: store.forget(owner, memory_id)
        )
    err.print("Forgotten." if found else "The user has no such memory.")
    return found


async def purge(uri: str | None, app_name: str, user_id: str, session_id: str | None) -> None:
    async with service_of(uri) as service:
        report = await service.purge_memories(
            app_name=app_name, user_id=user_id, session_id=session_id
        )
    err.print(f"Erased {counted(report.documents, 'document')}.")


async def embed(uri: str | None, app_name: str | None, user_id: str | None, named: str) -> bool:
    """Returns whether all vectors exist now."""
    embedder = imported(named)
    with bar("Embedding") as progress:
        async with service_of(uri, embedder=embedder) as service:
            report = await service.embed_missing(
                app_name=app_name, user_id=user_id, progress=progress
            )
    err.print(f"{report.missing:,} without a vector, {report.embedded:,} made.")
    return report.missing == report.embedded


def imported(named: str) -> Embedder:
    module, _, name = named.partition(":")
    sys.path.insert(0, "")  # as `python -m` does: the agent's code is often in this folder
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageProblem(f"--embedder {named} cannot be imported: {error}.") from None
    embedder: Embedder = found
    return embedder


def _time(memory: MemoryEntry) -> dict[str, float]:
    """Seconds since 1970, as everywhere in --json. Other text than ISO 8601 stays as it is."""
    with contextlib.suppress(ValueError):
        return {"timestamp": datetime.datetime.fromisoformat(memory.timestamp or "").timestamp()}
    return {}


def _print(memories: list[MemoryEntry], as_json: bool, nothing: str) -> None:
    if as_json:
        for each in memories:
            print_json(each.model_dump(mode="json", exclude_none=True) | _time(each))
        return
    if not memories:
        err.print(nothing)
        return
    print_table(
        ("said", "by", "memory", "what"),
        (
            (
                clean((each.timestamp or "")[:16].replace("T", " ")),
                clean(each.author or ""),
                clean(each.id or ""),
                clean(" ".join(text_in(each.content).split())),
            )
            for each in memories
        ),
    )
