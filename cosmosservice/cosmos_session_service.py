"""ADK's face of the session store."""

from __future__ import annotations

import asyncio
import uuid
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from google.adk.events.event import Event
from google.adk.sessions.base_session_service import (
    BaseSessionService,
    GetSessionConfig,
    ListSessionsResponse,
)
from google.adk.sessions.session import Session
from typing_extensions import override

from cosmosservice.account.charges import RequestCharge
from cosmosservice.account.settings import Settings
from cosmosservice.data_converters import event_to_fields, to_json
from cosmosservice.data_converters.state_scopes import split, temp_only, without_temp
from cosmosservice.errors import ConfigurationError, InvalidStateError
from cosmosservice.hosting.concurrency import GRACE
from cosmosservice.hosting.home_loop import HomeLoop
from cosmosservice.hosting.host import Opener, StoreHost
from cosmosservice.hosting.io_thread import IoThread
from cosmosservice.sessions.administration import Administration
from cosmosservice.sessions.session_objects import Holding, event_object, session_object
from cosmosservice.sessions.store.documents import ACTIVE, DELETED
from cosmosservice.sessions.store.event_log import Record, event_record
from cosmosservice.sessions.store.keys import SessionKey, StateKey

if TYPE_CHECKING:
    from cosmos_emulator import Emulator
    from cosmosservice.account.connection import Ensure
    from cosmosservice.sessions.store.reading import Position
    from cosmosservice.sessions.store.store import SessionStore

T = TypeVar("T")

DEFAULT_CACHE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class SessionPage:
    """Some of the sessions, and how to get the next ones."""

    sessions: list[Session]
    continuation: str | None


class CosmosSessionService(Administration, BaseSessionService):
    """Durable, shared ADK sessions on Azure Cosmos DB.

        events container, partition /session_id       sessions container, partition /user_id
        ┌─────────────────────────────────┐           ┌──────────────────────────────────────┐
        │ 1  2  3  4 …  the log of events │ ────────▶ │ session     state as of a revision   │
        │    id = place: created, never   │  follows  │ user_state  key → value, stamp       │
        │    changed                      │           │ app_state   key → value, stamp       │
        └─────────────────────────────────┘           └──────────────────────────────────────┘

    Appending creates the next document of the log: one request. Everything else follows the log
    and can be rebuilt from it. Any number of event loops and threads may use one service.
    """

    def __init__(
        self,
        *,
        endpoint: str | None = None,
        credential: Any = None,
        database: str | None = None,
        session_container: str | None = None,
        conversation_container: str | None = None,
        uri: str | None = None,
        on_conflict: Literal["raise", "rebase"] = "raise",
        ttl: int | None = None,
        recent_events: int | None = None,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        ensure: Ensure | None = None,
        on_request_charge: Callable[[RequestCharge], None] | None = None,
        allow_multiple_write_regions: bool = False,
        agents_dir: str | None = None,
        _emulator: Emulator | None = None,
    ) -> None:
        """Without arguments: `COSMOSDB_*` from the environment or `.env`.

        Args:
          endpoint: the account's URI, or `embedded:<file>`.
          credential: a key, or any token credential of azure-core. Default: COSMOSDB_KEY, and
            without one Entra ID.
          uri: `cosmosdb://…`, as `adk web --session_service_uri` hands it over.
          on_conflict: what an append does when somebody else has appended since the session was
            loaded: "raise" StaleSessionError, or "rebase" onto the newer events.
          ttl: seconds without use after which a session and its events disappear.
          recent_events: how many events a get without a config loads; None: all.
          cache_bytes: how much of what it has seen the service keeps in memory.
          ensure: "create" missing containers, "verify" them, or "never" look. Default: create
            with a key, verify with Entra ID, which may not create.
          on_request_charge: is called with the RequestCharge of every request.
          allow_multiple_write_regions: do not refuse an account with several write regions.
          agents_dir: what ADK passes along; not used.
        """
        del agents_dir
        if on_conflict not in ("raise", "rebase"):
            raise ConfigurationError("on_conflict is 'raise' or 'rebase'.")
        _check_ttl(ttl)
        if recent_events is not None and recent_events < 0:
            raise ConfigurationError("recent_events is a number of events, or None for all.")
        named: dict[str, Any] = {
            "database": database,
            "session_container": session_container,
            "conversation_container": conversation_container,
        }
        if uri is not None:
            if endpoint is not None:
                raise ConfigurationError("Give a uri or an endpoint, not both.")
            settings = Settings.from_uri(uri, **named)
        else:
            settings = Settings.from_env(endpoint=endpoint, **named)
        self._ttl = ttl
        self._recent_events = recent_events
        self._opener = Opener(
            settings,
            credential=credential,
            emulator=_emulator,
            ensure=ensure,
            allow_multiple_write_regions=allow_multiple_write_regions,
            cache_bytes=cache_bytes,
            rebase=on_conflict == "rebase",
            on_request_charge=on_request_charge,
        )
        self._home: HomeLoop | None = None
        self._io = IoThread(partial(StoreHost, self._opener))
        # Nobody in ADK calls close(): whatever comes first, the end of the service or of the
        # process, writes what is due and closes the connection.
        weakref.finalize(self, self._io.stop)

    @classmethod
    def embedded(cls, store: str | Emulator = ":memory:", **options: Any) -> CosmosSessionService:
        """On the embedded emulator: a file, `:memory:`, or a given `cosmos_emulator.Emulator`."""
        if isinstance(store, str):
            return cls(endpoint=f"embedded:{store}", **options)
        return cls(endpoint="embedded::memory:", _emulator=store, **options)

    def __repr__(self) -> str:
        return f"CosmosSessionService({self._opener.description})"

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
        _check_ttl(ttl)
        if session_id is None or _blank(session_id):
            session_id = str(uuid.uuid4())
        key = SessionKey.named(app_name, user_id, session_id)
        wrong = [name for name in state or () if not isinstance(name, str)]
        if wrong:
            raise InvalidStateError(
                f"create_session: keys of a state are strings; {wrong[0]!r} is not. Nothing was"
                " stored."
            )
        scoped = split(state or {})
        retention = ttl if ttl is not None else self._ttl
        snapshot = await self._run(
            "create_session", lambda store: store.create(key, scoped, retention)
        )
        return session_object(snapshot)

    @override
    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        key = _key(app_name, user_id, session_id)
        if key is None:
            return None
        count = self._recent_events if config is None else config.num_recent_events
        if count is not None and count < 0:
            raise ValueError("num_recent_events must be greater than or equal to 0.")
        after = config.after_timestamp if config is not None else None
        snapshot = await self._run("get_session", lambda store: store.reader.read(key, count))
        if snapshot is None:
            return None
        if after is not None:
            snapshot.records = [r for r in snapshot.records if r.timestamp >= after]
        return session_object(snapshot)

    @override
    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """Oldest update first. All of them: see list_sessions_page for many."""
        found, _ = await self._run(
            "list_sessions", lambda store: store.listing.page(app_name, user_id)
        )
        return ListSessionsResponse(sessions=[session_object(each) for each in found])

    async def list_sessions_page(
        self,
        *,
        app_name: str,
        user_id: str | None = None,
        limit: int = 50,
        continuation: str | None = None,
        deleted: bool = False,
    ) -> SessionPage:
        """Up to `limit` sessions, oldest update first; `continuation` from the page before.

        With `deleted`, those that can be restored instead.
        """
        if limit < 1:
            raise ValueError("limit must be at least 1.")
        found, following = await self._run(
            "list_sessions",
            lambda store: store.listing.page(
                app_name,
                user_id,
                limit=limit,
                continuation=continuation,
                status=DELETED if deleted else ACTIVE,
            ),
        )
        return SessionPage([session_object(each) for each in found], following)

    def iter_events(
        self, *, app_name: str, user_id: str, session_id: str, page_size: int = 500
    ) -> AsyncIterator[Event]:
        """The session's events in order, without holding them all.

        Raises SessionNotFoundError if the session is deleted before the last page was read: what
        ends without an error is complete. A session that is not there has no events.
        """
        if page_size < 1:
            raise ValueError("page_size must be at least 1.")
        return self._iter_events(_key(app_name, user_id, session_id), page_size)

    async def _iter_events(self, key: SessionKey | None, page_size: int) -> AsyncIterator[Event]:
        position: Position | None = None
        while key is not None:
            page, position = await self._run("iter_events", _events_after(key, position, page_size))
            for record in page:
                if record.is_event:
                    yield event_object(record)
            if position is None:
                return

    @override
    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Soft: nobody can append any more, and `restore_session` brings it back."""
        key = _key(app_name, user_id, session_id)
        if key is not None:
            await self._run("delete_session", lambda store: store.lifecycle.delete(key))

    @override
    async def append_event(self, session: Session, event: Event) -> Event:
        if event.partial:
            return event
        delta = event.actions.state_delta if event.actions else None
        if delta:
            # ADK's order: temporary state is for this invocation alone, and shown before the
            # event is stored without it.
            session.state.update(temp_only(delta))
            event.actions.state_delta = without_temp(delta)
        key = SessionKey.of(session.app_name, session.user_id, session.id)
        fields = event_to_fields(event)
        record = event_record(fields, to_json(fields))
        holder = Holding(session, event, asyncio.get_running_loop())
        await self._run(
            "append_event",
            lambda store: store.append(key, holder, record, session.last_update_time),
            grace=GRACE,
        )
        return event

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """The user's state, keys without `user:`."""
        key = StateKey.of_user(app_name, user_id)
        return await self._run("get_user_state", lambda store: store.reader.user_state(key))

    async def flush(self) -> None:
        """Waits until the session documents have caught up with what was appended here.

        Called from another event loop than that of the service's block: with what such loops
        appended.
        """
        if self._home_here is not None:
            await self._run("flush", lambda store: store.flush())
        if self._io.running:
            await self._io.run(_in_store("flush", lambda store: store.flush()))

    # --- the service itself

    async def close(self) -> None:
        """Waits for the calls under way, writes what is due and closes the connection. The next
        use opens it again."""
        home, self._home = self._home, None
        if home is not None:
            await home.close()
        await self._io.close()

    async def __aenter__(self) -> CosmosSessionService:
        """Inside the block the service lives on this event loop, and calls from it are direct.
        Without a block, and for calls from other loops, it lives on a thread of its own."""
        if self._home is None or self._home.loop.is_closed():
            self._home = HomeLoop(StoreHost(self._opener))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def _run(
        self,
        operation: str,
        work: Callable[[SessionStore], Coroutine[Any, Any, T]],
        *,
        grace: float | None = None,
    ) -> T:
        place = self._home_here or self._io
        return await place.run(_in_store(operation, work), grace=grace)

    @property
    def _home_here(self) -> HomeLoop | None:
        home = self._home
        return home if home is not None and home.loop is asyncio.get_running_loop() else None


def _in_store(
    operation: str, work: Callable[[SessionStore], Coroutine[Any, Any, T]]
) -> Callable[[StoreHost], Coroutine[Any, Any, T]]:
    return lambda host: host.run(operation, work)


def _events_after(
    key: SessionKey, position: Position | None, count: int
) -> Callable[[SessionStore], Coroutine[Any, Any, tuple[list[Record], Position | None]]]:
    return lambda store: store.reader.events_after(key, position, count)


def _key(app_name: str, user_id: str, session_id: str) -> SessionKey | None:
    if not app_name or _blank(session_id):
        return None
    return SessionKey.named(app_name, user_id, session_id)


def _blank(session_id: str) -> bool:
    """Whether nothing is left of it without white space, so that it names no session."""
    return not session_id or (isinstance(session_id, str) and session_id.isspace())


def _check_ttl(ttl: int | None) -> None:
    if ttl is not None and (isinstance(ttl, bool) or not isinstance(ttl, int) or ttl < 1):
        raise ConfigurationError("ttl is a number of seconds, at least 1, or None.")
