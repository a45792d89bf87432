"""Operations that ADK's interface lacks: restore, permanent erasure, repair."""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from cosmosservice.account.container import Document
from cosmosservice.errors import CosmosServiceError
from cosmosservice.hosting.deadline import answered
from cosmosservice.hosting.operation import Background, Bounded, Unbounded
from cosmosservice.sessions.arguments import age_in_seconds
from cosmosservice.sessions.base import StoreMethods
from cosmosservice.sessions.store.documents import (
    ACTIVE,
    DAY,
    DELETED,
    FORKING,
    PURGED,
    PURGING,
    iso,
)
from cosmosservice.sessions.store.erased import Erased
from cosmosservice.sessions.store.keys import SessionKey, StateKey
from cosmosservice.sessions.store.pages import Latest
from cosmosservice.sessions.store.queries import (
    APPS,
    APPS_OF_USER,
    GONE,
    NAMES,
    OF_ID,
    OF_USER,
)
from cosmosservice.sessions.store.records import number

if TYPE_CHECKING:
    from google.adk.sessions import Session

    from cosmosservice.account.dependants import Dependant
    from cosmosservice.sessions.importing import ImportOutcome
    from cosmosservice.sessions.store.purging import Purge
    from cosmosservice.sessions.store.repair import RepairReport
    from cosmosservice.sessions.store.store import SessionStore
    from cosmosservice.sessions.verifying import Verifier

T = TypeVar("T")

Progress = Callable[[int, int], None]  # (sessions done, total sessions)

_TOO_MANY = 10  # failures in a row, after which nothing more is tried
_TIRED = "Not tried: too many others have failed in a row."


@dataclass(frozen=True)
class PurgeFailure:
    """What could not be erased, or not completely. Calling the purge again continues."""

    app_name: str
    user_id: str = field(repr=False)
    session_id: str | None = field(repr=False)  # None: what the user has beside sessions
    reason: str


@dataclass(frozen=True)
class PurgeReport:
    """What a purge erased."""

    sessions: int
    documents: int  # records that became stubs; chunks and large values that were removed
    dependants: int = 0  # documents of memories and artifacts that were erased with them
    failed: tuple[PurgeFailure, ...] = ()  # these are not counted


class Administration(StoreMethods):
    """Operations for operators. The session service inherits them."""

    async def restore_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Brings a deleted session back unchanged. Does nothing if it is not deleted.

        Raises SessionNotFoundError if there is none or it was purged.
        """
        key = SessionKey.named(app_name, user_id, session_id)
        await self.in_store(Bounded("restore_session"), lambda store: store.lifecycle.restore(key))

    async def purge_session(self, *, app_name: str, user_id: str, session_id: str) -> PurgeReport:
        """Erases a session for good: its events, its state, and its data in the memory and artifact
        services on the same account. The report says if there was no such session.

        It may be called again if it was interrupted. Only stubs without content remain: they keep
        old session objects from appending, and expire after 30 days.
        """
        key = SessionKey.named(app_name, user_id, session_id)

        async def purge(store: SessionStore) -> PurgeReport:
            purge = _purge_in(store)
            erased = await purge.session(key)
            await purge.finish()
            if erased is None:
                return PurgeReport(0, 0)
            return PurgeReport(1, erased.documents, erased.dependants)

        return await self.in_store(Background("purge_session"), purge)

    async def purge_user(
        self,
        *,
        app_name: str,
        user_id: str,
        include_state: bool = False,
        progress: Progress | None = None,
    ) -> PurgeReport:
        """Erases all sessions of a user, with all memories and artifacts of the user, and on
        request the user's state.

        What cannot be erased does not keep the rest: the report names it."""
        key = StateKey.of_user(app_name, user_id)

        async def sessions_of(store: SessionStore) -> list[Document]:
            # Probe first, so that the list misses no session.
            await store.sessions.probe(key.document_id, user_id)
            return await store.sessions.query(OF_USER, {"app": app_name}, user_id)

        async def purge(store: SessionStore) -> PurgeReport:
            found = await sessions_of(store)
            sessions = [body for body in found if "session_id" in body or "status" in body]
            sweep = _Sweep(_purge_in(store), progress)
            await sweep.over(sessions)

            async def state() -> Erased:
                documents = await store.values.erase_unowned(key, store.clock.now() - DAY)
                if include_state:
                    initial = (body.get("stamp") for body in found)
                    stamps = [int(stamp) for stamp in initial if isinstance(stamp, int | float)]
                    await store.states.drain()
                    documents += await store.states.erase(key, max([sweep.erased.stamp, *stamps]))
                return Erased(documents)

            await sweep.user(key, state())

            async def living() -> set[str]:
                """Sessions that were created since, or could not be erased."""
                return {
                    str(body.get("session_id"))
                    for body in await sessions_of(store)
                    if body.get("status") not in (None, PURGING, PURGED)
                }

            async def dependants_in(dependant: Dependant) -> Erased:
                return Erased(dependants=await dependant.erase_user(app_name, user_id, living))

            for each in await store.dependants.all():
                await sweep.user(key, dependants_in(each))
                answered()  # it may have taken long
            await sweep.purge.finish()
            return sweep.report()

        return await self.in_store(Background("purge_user"), purge)

    async def purge_deleted(
        self,
        *,
        older_than: datetime.timedelta = datetime.timedelta(days=30),
        app_name: str | None = None,
        progress: Progress | None = None,
    ) -> PurgeReport:
        """Erases the sessions that were deleted longer ago than this, including those that have
        since been created again, and what is left of sessions that have expired. Completes forks
        that were interrupted a day ago, or erases them if their source is gone.

        One session that cannot be erased does not keep the others: the report names it."""

        age = age_in_seconds("older_than", older_than)

        async def purge(store: SessionStore) -> PurgeReport:
            now = store.clock.now()
            before = max(0.0, now - age)
            sessions = await _gone(store, app_name, before)
            sweep = _Sweep(_purge_in(store, before), progress)
            await sweep.over(sessions)
            users = {
                key.shared.user
                for body in sessions
                if body.get("status") == PURGED
                and (key := SessionKey.in_document(body)) is not None
            }
            for user in users:
                sweep.erased.documents += await store.states.sweep(user, now - DAY)
            await sweep.purge.finish()
            return sweep.report()

        return await self.in_store(Background("purge_deleted"), purge)

    async def count_deleted(
        self,
        *,
        older_than: datetime.timedelta = datetime.timedelta(days=30),
        app_name: str | None = None,
    ) -> int:
        """How many sessions `purge_deleted` would erase now."""
        age = age_in_seconds("older_than", older_than)

        async def count(store: SessionStore) -> int:
            found = await _gone(store, app_name, max(0.0, store.clock.now() - age))
            return sum(
                body.get("status") not in (None, FORKING, PURGED) and not body.get("purged")
                for body in found
            )

        return await self.in_store(Unbounded("count_deleted"), count)

    async def repair_session(
        self, *, app_name: str, user_id: str, session_id: str, accept_loss: bool = False
    ) -> RepairReport:
        """Brings the session's documents up to date with its log, and reports what is wrong.

        Not needed in ordinary operation: readers repair what they find. A projection stops before
        a large event whose body is missing, because the state would lack that event's changes.
        With `accept_loss` it continues without them.
        """
        key = SessionKey.named(app_name, user_id, session_id)
        from cosmosservice.sessions.store.repair import Repair

        return await self.in_store(
            Unbounded("repair_session"),
            lambda store: Repair(store).session(key, accept_loss=accept_loss),
        )

    # --- inspecting a store, and copying into it

    async def catch_up(self) -> None:
        """Makes sure that later reads of this service return nothing older than now. Without it,
        a list may lack a session that another process has just created."""

        async def probe(store: SessionStore) -> None:
            await store.sessions.probe_everywhere()
            await store.events.probe_everywhere()

        await self.in_store(Unbounded("catch_up"), probe)

    async def list_apps(self, *, user_id: str | None = None) -> list[str]:
        """The names of all apps that have sessions, deleted ones included. With a `user_id`, those
        in which this user has sessions or state."""
        text = APPS if user_id is None else APPS_OF_USER
        found: list[Any] = await self.in_store(
            Unbounded("list_apps"), lambda s: s.sessions.query(text, {}, user_id)
        )
        return sorted(str(each) for each in found)

    async def list_names(
        self, *, app_name: str | None = None, user_id: str | None = None
    ) -> list[tuple[str, str, str]]:
        """(app name, user id, session id) of all sessions, deleted ones included, but not purged
        ones, although their documents keep these names for 30 days."""
        found = await self.in_store(
            Unbounded("list_names"), lambda s: s.sessions.query(NAMES, {}, user_id)
        )
        return [
            key.name
            for each in found
            if app_name in (None, each.get("app_name"))
            and (key := SessionKey.in_document(each)) is not None
        ]

    async def find_sessions(
        self, session_id: str, *, app_name: str | None = None, user_id: str | None = None
    ) -> list[tuple[tuple[str, str, str], bool]]:
        """(app name, user id, session id) of the sessions that have this id, and whether each is
        deleted."""
        parameters = {"session": session_id}
        found = await self.in_store(
            Unbounded("find_sessions"), lambda s: s.sessions.query(OF_ID, parameters)
        )
        return sorted(
            ((key.app_name, key.user_id, key.session_id), body["status"] in (DELETED, PURGING))
            for body in found
            if body.get("status") not in (None, PURGED)
            and (key := SessionKey.in_document(body)) is not None
            and app_name in (None, key.app_name)
            and user_id in (None, key.user_id)
        )

    async def list_latest(
        self,
        *,
        app_name: str | None = None,
        user_id: str | None = None,
        limit: int = 20,
        deleted: bool = False,
        continuation: str | None = None,
    ) -> tuple[list[dict[str, Any]], str | None]:
        """Names, title, times and number of events of the most recently used sessions, the newest
        first, and the continuation if there may be more."""
        wanted = Latest(app_name, user_id, DELETED if deleted else ACTIVE)
        found, following = await self.in_store(
            Bounded("list_sessions"),
            lambda store: store.listing.latest(wanted, limit, continuation),
        )
        return [_overview(each) for each in found], following

    async def import_session(self, session: Session) -> ImportOutcome:
        """Stores a session of another service with its ids, timestamps, order and state. A copy
        that was interrupted continues where it stopped."""
        from cosmosservice.sessions.importing import Importer

        return await self.in_store(
            Background("import_session"), lambda store: Importer(store).copy(session)
        )

    async def verify_session(self, session: Session, verifier: Verifier) -> str:
        """Describes how the stored session differs from this one; empty if it does not."""
        return await self.in_store(
            Background("verify"), lambda store: verifier.session(store, session)
        )

    async def verify_shared(self, verifier: Verifier) -> list[str]:
        """Describes how user and app state differ from those of all verified sessions."""
        return await self.in_store(Background("verify"), verifier.shared)


def _overview(body: Document) -> Document:
    """The events of a fork are those of its log. Of other sessions the sums say how many they are,
    without tombstones."""
    log = body["revision"] - body["first_seq"] + 1
    return {
        **{name: body[name] for name in ("app_name", "user_id", "session_id")},
        "title": body.get("title", ""),
        "events": log if "forked_from" in body else int(number(body.get("events"))),
        "create_time": datetime.datetime.fromisoformat(body["created_at"]).timestamp(),
        "last_update_time": body["last_update_time"],
    }


async def _gone(store: SessionStore, app_name: str | None, before: float) -> list[Document]:
    """The sessions that were deleted before then or have expired."""
    now = store.clock.now()
    parameters = {"before": iso(before), "day_ago": iso(now - DAY), "now": now}
    found = await store.sessions.query(GONE, parameters)
    return [body for body in found if app_name in (None, body.get("app_name"))]


def _purge_in(store: SessionStore, deleted_before: float | None = None) -> Purge:
    from cosmosservice.sessions.store.purging import Purge  # when it is needed: it imports much

    return Purge(store, deleted_before=deleted_before)


class _Sweep:
    """A purge of many sessions. One that cannot be erased does not stop it."""

    def __init__(self, purge: Purge, progress: Progress | None) -> None:
        self.purge = purge
        self._progress = progress
        self.erased = Erased()
        self._sessions = 0
        self._failed: list[PurgeFailure] = []

    def report(self) -> PurgeReport:
        return PurgeReport(
            self._sessions, self.erased.documents, self.erased.dependants, tuple(self._failed)
        )

    async def over(self, sessions: list[Document]) -> None:
        keys = dict.fromkeys(
            key for body in sessions if (key := SessionKey.in_document(body)) is not None
        )
        in_a_row = 0
        for done, key in enumerate(keys, 1):
            problem, erased = _TIRED, None
            if in_a_row < _TOO_MANY:
                problem, erased = await _outcome(self.purge.session(key))
            in_a_row = in_a_row + 1 if problem else 0
            if problem:
                self._failed.append(PurgeFailure(*key.name, reason=problem))
            elif erased is not None:
                self._sessions += 1
                self.erased.add(erased)
            if self._progress is not None:
                self._progress(done, len(keys))

    async def user(self, key: StateKey, work: Awaitable[Erased]) -> None:
        """Erases something that a user has beside sessions."""
        problem, erased = await _outcome(work)
        if problem:
            self._failed.append(PurgeFailure(key.app_name, key.user_id, None, reason=problem))
        elif erased is not None:
            self.erased.add(erased)


async def _outcome(work: Awaitable[Erased | None]) -> tuple[str, Erased | None]:
    """Why it could not be done, or what was erased."""
    try:
        return "", await work
    except CosmosServiceError as problem:
        return str(problem), None
    except Exception as problem:  # a document that is damaged in a way that nobody has thought of
        return f"{type(problem).__name__}: purge_session shows where.", None
