"""Artifacts as dependants of sessions: erased with them, and copied into their forks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from cosmosservice.account.dependants import Dependant, Fork, SessionName, Stands, Successor
from cosmosservice.artifacts.keys import Scope
from cosmosservice.artifacts.store import ArtifactStore
from cosmosservice.artifacts.sweeping import ArtifactPurgeReport


class ArtifactDependant(Dependant):
    def __init__(self, store: ArtifactStore) -> None:
        self._store = store

    async def erase_session(self, name: SessionName, stands: Stands) -> int:
        return _count(await self._store.sweeping.purge(Scope(*name), stands))

    async def erase_predecessors(self, successor: Successor) -> int:
        """Nothing says which incarnation of the session an artifact belongs to, but what was saved
        before the session was created cannot be its own."""
        return _count(
            await self._store.sweeping.purge(
                Scope(*successor.name), saved_before=int(successor.created)
            )
        )

    async def erase_user(
        self, app_name: str, user_id: str, living: Callable[[], Awaitable[Collection[str]]]
    ) -> int:
        erased = 0
        for scope in await self._store.sweeping.scopes_of_user(app_name, user_id):

            async def stands(session_id: str | None = scope.session_id) -> bool:
                return session_id is None or session_id not in await living()

            if await stands():
                erased += _count(await self._store.sweeping.purge(scope, stands))
        return erased

    async def has_copies(self, fork: Fork) -> bool:
        source, target = Scope(*fork.source), Scope(*fork.target)
        if not await self._store.copying.has_copies(fork, source, target):
            return False
        Scope.named(*fork.target)  # raises if artifacts cannot have that name
        return True

    async def copy(self, fork: Fork) -> None:
        await self._store.copying.copy(fork, Scope(*fork.source), Scope(*fork.target))

    async def close(self) -> None:
        await self._store.close()


def _count(report: ArtifactPurgeReport) -> int:
    return report.versions + report.payloads
