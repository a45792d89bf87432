"""Which dependants the sessions of a service have: those in the containers that the settings name,
those that other services on the account have declared, and the memories of `memory=`."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from cosmosservice.account.dependants import (
    Declaration,
    Dependant,
    SessionName,
    Stands,
    Successor,
)
from cosmosservice.hosting.operation import Background
from cosmosservice.sessions.remembering import SessionMemory

if TYPE_CHECKING:
    from cosmosservice.account.connection import Connection
    from cosmosservice.account.settings import Settings
    from cosmosservice.memory.erasing import MemoryDependant

T = TypeVar("T")


def declared_dependants(
    declared: Mapping[str, Declaration], settings: Settings, memory: SessionMemory | None
) -> Callable[[], Iterable[Declaration]]:
    """`declared` may grow later."""
    known: dict[str, Declaration] = {
        settings.memory_container: _Memories(settings),
        settings.artifact_container: _Artifacts(settings),
    }
    account = getattr(memory, "account", None)
    others: list[Declaration] = []
    if account is not None and account.dependants is not declared:
        others.append(_Elsewhere(memory))
    return lambda: [*(known | dict(declared)).values(), *others]


@dataclass(frozen=True, eq=False)
class _Memories:
    """Those in the container that the settings name."""

    settings: Settings
    outlives_session: Final = True

    async def open_dependant(self, connection: Connection) -> Dependant | None:
        from cosmosservice.memory.stores import MemoryStores

        stores = MemoryStores(self.settings, embedder=None, repeat_seconds=0)
        return await stores.open_dependant(connection)


@dataclass(frozen=True, eq=False)
class _Artifacts:
    """Those in the container that the settings name, and in the blobs that they name."""

    settings: Settings
    outlives_session: Final = False

    async def open_dependant(self, connection: Connection) -> Dependant | None:
        from cosmosservice.artifacts.stores import ArtifactStores

        secret = self.settings.artifact_blobs
        blobs = None if secret is None else secret.get_secret_value()
        return await ArtifactStores(self.settings, blobs=blobs).open_dependant(connection)


class _Elsewhere(Dependant):
    """The memories of a service on another account. Holds only a weak reference to it."""

    outlives_session: Final = True

    def __init__(self, memory: Any) -> None:
        self._memory = weakref.ref(memory)

    async def open_dependant(self, connection: Connection) -> Dependant:
        return self

    async def erase_session(self, name: SessionName, stands: Stands) -> int:
        here = _from_elsewhere(stands)
        return await self._there(lambda dependant: dependant.erase_session(name, here))

    async def erase_predecessors(self, successor: Successor) -> int:
        return await self._there(lambda dependant: dependant.erase_predecessors(successor))

    async def erase_user(
        self, app_name: str, user_id: str, living: Callable[[], Awaitable[Collection[str]]]
    ) -> int:
        here = _from_elsewhere(living)
        return await self._there(lambda dependant: dependant.erase_user(app_name, user_id, here))

    async def _there(self, work: Callable[[MemoryDependant], Coroutine[Any, Any, int]]) -> int:
        memory = self._memory()
        if memory is None:
            return 0
        erased: int = await memory.in_store(
            Background("purge_memories"), lambda store: work(store.dependant)
        )
        return erased


def _from_elsewhere(work: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
    """Runs it on the current event loop, whichever loop asks."""
    loop = asyncio.get_running_loop()

    async def run() -> T:
        return await work()

    async def ask() -> T:
        if asyncio.get_running_loop() is loop:
            return await run()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(run(), loop))

    return ask
