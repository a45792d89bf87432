"""CosmosSessionService: ADK's sessions on Azure Cosmos DB."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from google.adk.events.event import Event
from google.adk.sessions.base_session_service import (
    BaseSessionService,
    GetSessionConfig,
    ListSessionsResponse,
)
from google.adk.sessions.session import Session
from typing_extensions import Unpack, override

from cosmosservice.account.account import CosmosAccount
from cosmosservice.account.options import (
    AccountOptions,
    documented,
    embedded_store,
)
from cosmosservice.account.service import AccountService
from cosmosservice.data_converters import event_to_fields, to_json
from cosmosservice.data_converters.collector import collector_held_off
from cosmosservice.data_converters.state_scopes import (
    check_state_keys,
    split,
    temp_only,
    without_temp,
)
from cosmosservice.errors import ConfigurationError, SessionNotFoundError
from cosmosservice.hosting.concurrency import LoopLocks, acquire_in_time, outlast
from cosmosservice.hosting.operation import Bounded, Unbounded
from cosmosservice.sessions.administration import Administration
from cosmosservice.sessions.arguments import check_ttl, is_blank, key_or_none
from cosmosservice.sessions.browsing import Browsing
from cosmosservice.sessions.dependants import declared_dependants
from cosmosservice.sessions.options import DEFAULT_CACHE_BYTES, OnConflict, SessionOptions
from cosmosservice.sessions.remembering import MemorySink, SessionMemory
from cosmosservice.sessions.session_objects import apply, seen_by, session_object
from cosmosservice.sessions.store.held import Incarnations, Seen
from cosmosservice.sessions.store.keys import SessionKey, StateKey
from cosmosservice.sessions.store.pages import Wanted
from cosmosservice.sessions.store.parts import StoreOptions
from cosmosservice.sessions.store.records import event_record
from cosmosservice.sessions.stores import SessionStores

if TYPE_CHECKING:
    from cosmos_emulator import Emulator
    from cosmosservice.sessions.store.appending import Appended
    from cosmosservice.sessions.store.history import Point
    from cosmosservice.sessions.store.records import Record
    from cosmosservice.sessions.store.snapshot import Snapshot
    from cosmosservice.sessions.store.store import SessionStore


_BUSY = (
    "append_event: earlier appends to this session took all of the timeout. Nothing was stored;"
    " sending it again is safe."
)


class CosmosSessionService(
    AccountService["SessionStore"], Browsing, Administration, BaseSessionService
):
    """Durable, shared ADK sessions on Azure Cosmos DB.

        events container, partition /session_id       sessions container, partition /user_id
        ┌─────────────────────────────────┐           ┌──────────────────────────────────────┐
        │ 1  2  3  4 …  the log of events │ ────────▶ │ session     state as of a revision   │
        │    id = seq: created, never     │  follows  │ user_state  key → value, stamp       │
        │    changed                      │           │ app_state   key → value, stamp       │
        └─────────────────────────────────┘           └──────────────────────────────────────┘

    Appending creates the next document of the log: one request. The session's state, user state
    and app state follow the log, and are repaired from it. Any number of event loops and threads
    may use one service.
    """

    @documented
    def __init__(
        self,
        *,
        account: CosmosAccount | None = None,
        session_container: str | None = None,
        conversation_container: str | None = None,
        on_conflict: OnConflict = "raise",
        ttl: int | None = None,
        recent_events: int | None = None,
        since_compaction: bool | None = None,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        memory: SessionMemory | None = None,
        **options: Unpack[AccountOptions],
    ) -> None:
        """Without arguments: `COSMOSDB_*` from the environment or `.env`.

        Args:
          account: the CosmosAccount to use, which other services may share. Without one the
            service makes its own from the options below.
          on_conflict: what an append does if another writer has appended since the session was
            loaded: "raise" StaleSessionError, or "rebase" onto the newer events.
          ttl: seconds without use after which a session and its events disappear.
          recent_events: how many events a get without a config loads; None: all.
          since_compaction: a get without a config loads only what ADK's summaries of old events
            do not cover. The prompt stays the same. Default: COSMOSDB_SINCE_COMPACTION, or False.
          cache_bytes: the size of the service's cache of what it has read.
          memory: the CosmosMemoryService to which events are added when they are appended, in the
            background. Default: none.
        """
        if on_conflict not in ("raise", "rebase"):
            raise ConfigurationError("on_conflict must be 'raise' or 'rebase'.")
        check_ttl(ttl)
        if recent_events is not None and recent_events < 0:
            raise ConfigurationError("recent_events must be a number of events, or None for all.")
        if memory is not None and not isinstance(memory, SessionMemory):
            raise ConfigurationError("memory must be a CosmosMemoryService.")
        self._ttl = ttl
        self._incarnations = Incarnations()
        self._memory = memory
        self._recent_events = recent_events
        self._locks = LoopLocks()
        settings = self._take_account(
            account,
            {
                "session_container": session_container,
                "conversation_container": conversation_container,
            },
            **options,
        )
        self._timeout = settings.timeout
        if since_compaction is None:
            since_compaction = settings.since_compaction
        if since_compaction and recent_events is not None:
            raise ConfigurationError("recent_events and since_compaction cannot be combined.")
        self._since_compaction = since_compaction
        self._stores = SessionStores(
            settings,
            StoreOptions(
                timeout=settings.timeout,
                cache_bytes=cache_bytes,
                dependants=declared_dependants(self._account.dependants, settings, memory),
                rebase=on_conflict == "rebase",
                sink=None if memory is None else MemorySink(memory),
                incarnations=self._incarnations,
            ),
        )

    @classmethod
    def embedded(
        cls,
        store: str | os.PathLike[str] | Emulator = ":memory:",
        **options: Unpack[SessionOptions],
    ) -> CosmosSessionService:
        """On the embedded emulator: a file, `:memory:`, or a given `cosmos_emulator.Emulator`."""
        return cls(**embedded_store(store), **options)

    @override
    def _session_object(self, snapshot: Snapshot) -> Session:
        if not snapshot.marker.use:
            self._incarnations.add(snapshot.marker.incarnation)
        return session_object(snapshot)

    # --- BaseSessionService

    @override
    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
        ttl: int | None = None,
    ) -> Session:
        check_ttl(ttl)
        named = session_id is not None and not is_blank(session_id)
        if session_id is None or not named:
            session_id = str(uuid.uuid4())
        key = SessionKey.named(app_name, user_id, session_id)
        check_state_keys(state, "create_session")
        scoped = split(state or {})
        retention = ttl if ttl is not None else self._ttl
        snapshot = await self.in_store(
            Bounded("create_session"),
            lambda store: store.creating.create(key, scoped, retention, named=named),
        )
        return self._session_object(snapshot)

    @override
    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        key = key_or_none(app_name, user_id, session_id)
        if key is None:
            return None
        count = self._recent_events if config is None else config.num_recent_events
        if count is not None and count < 0:
            raise ValueError("num_recent_events must be greater than or equal to 0.")
        after = config.after_timestamp if config is not None else None
        since = self._since_compaction and config is None
        snapshot = await self.in_store(
            Bounded("get_session"),
            lambda store: store.reader.read(key, count, since_compaction=since),
        )
        if snapshot is None:
            return None
        if after is not None:
            snapshot.records = [r for r in snapshot.records if r.timestamp >= after]
        return self._session_object(snapshot)

    @override
    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """All sessions, oldest update first. If there are many, use list_sessions_page."""
        found, _ = await self.in_store(
            Bounded("list_sessions"), lambda store: store.listing.page(Wanted(app_name, user_id))
        )
        with collector_held_off():
            return ListSessionsResponse(sessions=[self._session_object(each) for each in found])

    @override
    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """A soft delete: nobody can append any more, and `restore_session` brings it back."""
        key = key_or_none(app_name, user_id, session_id)
        if key is not None:
            await self.in_store(
                Bounded("delete_session"), lambda store: store.lifecycle.delete(key)
            )

    @override
    async def append_event(self, session: Session, event: Event) -> Event:
        if event.partial:
            return event
        delta = event.actions.state_delta if event.actions else None
        check_state_keys(delta, "append_event")
        if delta:
            # ADK's order: temporary state is only for this invocation. It is applied first, and
            # the event is stored without it.
            session.state.update(temp_only(delta))
            event.actions.state_delta = without_temp(delta)
        key = SessionKey.of(session.app_name, session.user_id, session.id)
        if event.actions and event.actions.rewind_before_invocation_id:
            await self._must_be_whole(key, session)
        fields = event_to_fields(event)
        record = event_record(fields, to_json(fields))
        # Whoever appends next waits for the outcome, even if this caller is cancelled meanwhile.
        lock = self._locks.of(key)
        waited = await acquire_in_time(lock, self._timeout, _BUSY)
        try:
            started = self._account.start(
                self._stores,
                Bounded("append_event", waited=waited),
                partial(self._append, key, seen_by(session, key), record),
            )
        except BaseException:
            lock.release()
            raise
        started.add_done_callback(partial(_take_over, lock, session, key, event))
        appended = await outlast(started)
        if appended is not None and appended.problem is not None:
            raise appended.problem
        return event

    def _append(
        self, key: SessionKey, seen: Seen, record: Record, store: SessionStore
    ) -> Coroutine[Any, Any, Appended | None]:
        """A method, so that this service and its memory service live until the event is stored."""
        return store.appending.append(key, seen, record)

    async def _must_be_whole(self, key: SessionKey, session: Session) -> None:
        """ADK computes the state before the rewind from the events. If some of them were missing,
        it would undo their changes."""
        if not self._since_compaction and self._recent_events is None:
            return
        whole = await self.in_store(Bounded("append_event"), lambda store: store.reader.read(key))
        if whole is not None and len(session.events) < len(whole.records):
            raise ValueError(
                "append_event: a rewind needs a session with all its events, and since_compaction"
                " or recent_events left some out. Rewind with a service without them. Nothing was"
                " stored."
            )

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """The user's state, keys without `user:`."""
        key = StateKey.of_user(app_name, user_id)
        return await self.in_store(
            Bounded("get_user_state"), lambda store: store.reader.user_state(key)
        )

    async def flush(self) -> None:
        """Waits until the session documents, and the memory service of `memory=`, have caught up
        with what this process appended.

        On the event loop of a block, this covers the appends of all loops. On another loop, it
        covers the appends of loops outside the block.
        """
        await self._account.run_everywhere(
            self._stores, Unbounded("flush"), lambda store: store.flush()
        )

    async def fork_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        at: Point | None = None,
        new_session_id: str | None = None,
        new_user_id: str | None = None,
    ) -> Session:
        """A new, independent session with the same history up to a point; default: all of it.

        Event ids, authors and timestamps stay. `user:` and `app:` state is shared as always, and
        not copied to another user. Raises AlreadyExistsError if the new id is in use.
        """
        key = SessionKey.named(app_name, user_id, session_id)
        if new_session_id is None or is_blank(new_session_id):
            new_session_id = str(uuid.uuid4())
        target = SessionKey.named(
            app_name, user_id if new_user_id is None else new_user_id, new_session_id
        )
        snapshot = await self.in_store(Unbounded("fork_session"), _fork(key, target, at))
        return self._session_object(snapshot)


def _take_over(
    lock: asyncio.Lock,
    session: Session,
    key: SessionKey,
    event: Event,
    done: asyncio.Future[Appended | None],
) -> None:
    """Applies the outcome of an append, on the loop of its caller."""
    lock.release()
    appended = None if done.cancelled() or done.exception() else done.result()
    if appended is not None:
        apply(session, key, event, appended)


def _fork(
    key: SessionKey, target: SessionKey, at: Point | None
) -> Callable[[SessionStore], Coroutine[Any, Any, Snapshot]]:
    async def fork(store: SessionStore) -> Snapshot:
        past = await store.history.at(key, at)
        await store.forking.fork(past, target)
        made = await store.reader.read(target)
        if made is None:
            raise SessionNotFoundError(f"Session {target.session_id} not found.")
        return made

    return fork
