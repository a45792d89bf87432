"""Memories as dependants of sessions: they belong to the user, and a purge of a session erases
those that it added."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from cosmosservice.account.container import Container
from cosmosservice.account.dependants import (
    Dependant,
    SessionName,
    Stands,
    Successor,
    Superseded,
)
from cosmosservice.account.retries import CONTENTION
from cosmosservice.errors import UnavailableError
from cosmosservice.memory.documents import Owner
from cosmosservice.memory.forgetting import Forgetting
from cosmosservice.memory.known import Known
from cosmosservice.memory.sources import MemoriesOf, MemoriesOfFormer


class MemoryDependant(Dependant):
    def __init__(self, container: Container, known: Known) -> None:
        self._forgetting = Forgetting(container)
        self._known = known

    async def erase_session(self, name: SessionName, stands: Stands) -> int:
        return await self._erase(name, MemoriesOf(name.session_id), stands)

    async def erase_predecessors(self, successor: Successor) -> int:
        name, events = successor.name, frozenset(successor.events)
        return await self._erase(
            name, MemoriesOfFormer(name.session_id, successor.incarnation, events), None
        )

    async def _erase(self, name: SessionName, wanted: MemoriesOf, stands: Stands | None) -> int:
        owner = Owner.of(name.app_name, name.user_id)
        try:
            report = await self._forgetting.purge(owner, wanted, stands=stands)
        finally:
            self._known.changed(owner.key, erased=True)
        return report.documents

    async def erase_user(
        self, app_name: str, user_id: str, living: Callable[[], Awaitable[Collection[str]]]
    ) -> int:
        owner = Owner.of(app_name, user_id)
        kept: Collection[str] = ()

        async def stands() -> bool:
            return set(await living()) <= set(kept)

        for attempt in CONTENTION:
            await CONTENTION.pause(attempt)
            kept = await living()
            try:
                report = await self._forgetting.purge(owner, None, stands=stands, kept=kept)
            except Superseded:  # one more session was created
                continue
            finally:
                self._known.changed(owner.key, erased=True)
            return report.documents
        raise UnavailableError(
            "purge_user: sessions of the user are created while memories are erased. Some memories"
            " are left; calling it again is safe, and continues from there."
        )
