"""What a session store needs besides ADK's interface: restore, erase for good, repair."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from cosmosservice.account.container import Document
from cosmosservice.sessions.store.documents import DELETED, PURGED, PURGING, iso
from cosmosservice.sessions.store.keys import SessionKey, StateKey

if TYPE_CHECKING:
    from cosmosservice.sessions.store.repair import RepairReport
    from cosmosservice.sessions.store.store import SessionStore

T = TypeVar("T")

Progress = Callable[[int, int], None]  # (sessions done, sessions in all)

OF_USER = (
    "SELECT c.id, c.session_id, c.user_id, c.app_name, c.status FROM c WHERE c.app_name = @app"
)
GONE = (
    "SELECT c.id, c.session_id, c.user_id, c.app_name FROM c"
    f" WHERE (c.status IN ('{DELETED}', '{PURGING}') AND c.updated_at <= @before)"
    " OR c.replaced.deleted_at <= @before"
)


@dataclass(frozen=True)
class PurgeReport:
    """What a purge erased."""

    sessions: int
    documents: int  # events that lost their content, and chunks that were removed


class Administration(ABC):
    """Operations for operators; the service is one."""

    @abstractmethod
    async def _run(
        self, operation: str, work: Callable[[SessionStore], Coroutine[Any, Any, T]]
    ) -> T: ...

    async def restore_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Brings a deleted session back as it was; silent if it is not deleted.

        Raises SessionNotFoundError if there is none or it was purged.
        """
        key = SessionKey.named(app_name, user_id, session_id)
        await self._run("restore_session", lambda store: store.lifecycle.restore(key))

    async def purge_session(self, *, app_name: str, user_id: str, session_id: str) -> PurgeReport:
        """Erases a session for good: its events, their chunks, its state.

        It may be called again after it was cut short. What remains are stubs without content,
        which keep old session objects out and expire after 30 days.
        """
        key = SessionKey.named(app_name, user_id, session_id)
        erased = await self._run("purge_session", lambda store: store.lifecycle.purge(key))
        return PurgeReport(1, erased or 0)

    async def purge_user(
        self,
        *,
        app_name: str,
        user_id: str,
        include_state: bool = False,
        progress: Progress | None = None,
    ) -> PurgeReport:
        """Erases all sessions of a user and, on request, the user's state."""
        key = StateKey.of_user(app_name, user_id)

        async def purge(store: SessionStore) -> PurgeReport:
            found = await store.sessions.query(OF_USER, {"app": app_name}, user_id)
            named = [body for body in found if "session_id" in body or "status" in body]
            sessions = [body for body in named if body.get("status") != PURGED]
            report = await _purge(store, sessions, progress)
            if include_state:
                await store.states.erase(key)
            return report

        return await self._run("purge_user", purge)

    async def purge_deleted(
        self,
        *,
        older_than: datetime.timedelta = datetime.timedelta(days=30),
        app_name: str | None = None,
        progress: Progress | None = None,
    ) -> PurgeReport:
        """Erases the sessions that were deleted longer ago than this, also those in whose place
        another one was created since."""
        before = iso((datetime.datetime.now(datetime.UTC) - older_than).timestamp())

        async def purge(store: SessionStore) -> PurgeReport:
            found = await store.sessions.query(GONE, {"before": before})
            sessions = [body for body in found if app_name in (None, body.get("app_name"))]
            return await _purge(store, sessions, progress, deleted_before=before)

        return await self._run("purge_deleted", purge)

    async def repair_session(
        self, *, app_name: str, user_id: str, session_id: str, accept_loss: bool = False
    ) -> RepairReport:
        """Brings the session's documents up to its log now, and says what is wrong with them.

        Not needed in ordinary operation: every reader repairs what it meets. But a session
        document stays behind a large event whose body is missing, since its state would lack what
        that event changed: with `accept_loss` it goes on without.
        """
        key = SessionKey.named(app_name, user_id, session_id)
        from cosmosservice.sessions.store.repair import repair

        return await self._run(
            "repair_session", lambda store: repair(store, key, accept_loss=accept_loss)
        )


async def _purge(
    store: SessionStore,
    sessions: list[Document],
    progress: Progress | None,
    deleted_before: str | None = None,
) -> PurgeReport:
    keys = [key for body in sessions if (key := SessionKey.in_document(body)) is not None]
    purged = documents = 0
    for done, key in enumerate(keys, 1):
        erased = await store.lifecycle.purge(key, deleted_before=deleted_before)
        if erased is None and deleted_before is not None:
            erased = await store.lifecycle.purge_replaced(key, deleted_before=deleted_before)
        if erased is not None:
            purged, documents = purged + 1, documents + erased
        if progress is not None:
            progress(done, len(keys))
    return PurgeReport(purged, documents)
