"""ADK's face of the session store."""

from __future__ import annotations

import asyncio
import uuid
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
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

from cosmosservice.administration import Administration
from cosmosservice.cosmos_client import RequestCharge
from cosmosservice.data_converters import event_to_fields, to_json
from cosmosservice.documents import ACTIVE, DELETED, SessionKey, StateKey
from cosmosservice.errors import ConfigurationError, EventIdReusedError, InvalidStateError
from cosmosservice.event_log import Record, event_record
from cosmosservice.io_thread import IoThread
from cosmosservice.lazy_events import lazy_event
from cosmosservice.settings import Settings
from cosmosservice.snapshot import Snapshot
from cosmosservice.state_scopes import merged, split, temp_only, without_temp
from cosmosservice.store_host import StoreHost

if TYPE_CHECKING:
    from cosmos_emulator import Emulator
    from cosmosservice.connection import Ensure
    from cosmosservice.reader import Position
    from cosmosservice.session_store import SessionStore

T = TypeVar("T")

DEFAULT_CACHE_BYTES = 64 * 1024 * 1024
_GRACE = 2.0  # seconds that a cancelled append waits for the outcome of what was sent


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
        self._io = IoThread()
        self._host = StoreHost(
            settings,
            credential=credential,
            emulator=_emulator,
            ensure=ensure,
            allow_multiple_write_regions=allow_multiple_write_regions,
            cache_bytes=cache_bytes,
            rebase=on_conflict == "rebase",
            on_request_charge=on_request_charge,
        )
        # Nobody in ADK calls close(): whatever comes first, the end of the service or of the
        # process, writes what is due and closes the connection.
        weakref.finalize(self, self._io.stop, self._host.close)

    @classmethod
    def embedded(cls, store: str | Emulator = ":memory:", **options: Any) -> CosmosSessionService:
        """On the embedded emulator: a file, `:memory:`, or a given `cosmos_emulator.Emulator`."""
        if isinstance(store, str):
            return cls(endpoint=f"embedded:{store}", **options)
        return cls(endpoint="embedded::memory:", _emulator=store, **options)

    def __repr__(self) -> str:
        return f"CosmosSessionService({self._host.description})"

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
        return _session(snapshot)

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
        return _session(snapshot)

    @override
    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """Oldest update first. All of them: see list_sessions_page for many."""
        found, _ = await self._run(
            "list_sessions", lambda store: store.listing.page(app_name, user_id)
        )
        return ListSessionsResponse(sessions=[_session(each) for each in found])

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
        return SessionPage([_session(each) for each in found], following)

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
                    yield _event(record)
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
        holder = _Holder(session, event, asyncio.get_running_loop())
        await self._io.run(
            self._host.run(
                "append_event",
                lambda store: store.append(key, holder, record, session.last_update_time),
            ),
            grace=_GRACE,
        )
        return event

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """The user's state, keys without `user:`."""
        key = StateKey.of_user(app_name, user_id)
        return await self._run("get_user_state", lambda store: store.reader.user_state(key))

    async def flush(self) -> None:
        """Waits until the session documents have caught up with what was appended here."""
        if self._io.running:
            await self._run("flush", lambda store: store.flush())

    # --- the service itself

    async def close(self) -> None:
        """Writes what is due and closes the connection. The next use opens it again."""
        if self._io.running:
            await self._io.run(self._host.close())
            await asyncio.to_thread(self._io.stop)

    async def __aenter__(self) -> CosmosSessionService:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def _run(
        self, operation: str, work: Callable[[SessionStore], Coroutine[Any, Any, T]]
    ) -> T:
        return await self._io.run(self._host.run(operation, work))


class _Holder:
    """Takes a stored event into the session object, on the caller's own loop.

    It is told on the I/O thread when the event has its place in the log, and passes it on in that
    order, also if the caller has been cancelled since. So the object says what the store says.
    """

    def __init__(self, session: Session, event: Event, loop: asyncio.AbstractEventLoop) -> None:
        self._session, self._event, self._loop = session, event, loop

    def marker(self) -> str | None:
        return self._session._storage_update_marker

    def take(self, marker: str, newer: list[Record]) -> None:
        self._session._storage_update_marker = marker
        try:
            self._loop.call_soon_threadsafe(self._commit, newer)
        except RuntimeError:  # the loop is closed, so nobody uses the object at this moment
            self._commit(newer)

    def holds_event(self) -> bool:
        for held in self._session.events:
            if held.id == self._event.id:
                if held != self._event:
                    raise EventIdReusedError(self._event.id)
                return True
        return False

    def _commit(self, newer: list[Record]) -> None:
        for record in newer:
            self._take(_event(record))
        self._take(self._event)

    def _take(self, event: Event) -> None:
        if event.actions and event.actions.state_delta:
            self._session.state.update(event.actions.state_delta)
        self._session.events.append(event)
        self._session.last_update_time = event.timestamp


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


def _event(record: Record) -> Event:
    return lazy_event(record.raw, record.event_id, record.timestamp)


def _session(snapshot: Snapshot) -> Session:
    session = Session(
        id=snapshot.key.session_id,
        app_name=snapshot.key.app_name,
        user_id=snapshot.key.user_id,
        state=merged(snapshot.state),
        events=[_event(record) for record in snapshot.records],
        last_update_time=snapshot.last_update_time,
    )
    if snapshot.marker is not None:
        session._storage_update_marker = snapshot.marker.text(snapshot.key)
    return session
