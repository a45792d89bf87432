"""One session: its end, a page of its log, its state at any event, its documents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from google.adk.events import Event
from google.adk.sessions.state import State

from cosmosservice.account.container import Document
from cosmosservice.account.failures import NotFound
from cosmosservice.data_converters.state_scopes import Scoped, merged
from cosmosservice.errors import SessionNotFoundError
from cosmosservice.hosting.operation import Bounded
from cosmosservice.sessions.session_objects import event_object
from cosmosservice.sessions.store.event_log import Plan
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.records import Record, number
from cosmosservice.sessions.store.session_documents import SessionDocument
from cosmosservice.sessions.store.usage import Usage

if TYPE_CHECKING:
    from cosmosservice.cosmos_session_service import CosmosSessionService
    from cosmosservice.sessions.store.store import SessionStore

PAGE: Final = 50  # events
_ENVELOPE: Final = 400  # bytes that the log adds to an event, approximately


@dataclass(frozen=True)
class Head:
    """The end of a session. Its revisions go from `first`, before its first event, to `last`."""

    key: SessionKey
    incarnation: str
    first: int
    last: int
    title: str
    last_update_time: float
    state: dict[str, Any]
    deleted: bool = False
    usage: Usage = field(default_factory=Usage)
    origin: tuple[str, int] | None = None  # of a fork: the session and the sequence number

    @property
    def own_state(self) -> dict[str, Any]:
        """The session's state without user and app state."""
        return {key: value for key, value in self.state.items() if not is_shared(key)}

    @property
    def shared_state(self) -> dict[str, Any]:
        return {key: value for key, value in self.state.items() if is_shared(key)}


@dataclass(frozen=True)
class Entry:
    """A record of the log. A deletion or restoration has no event."""

    revision: int
    kind: str
    timestamp: float
    event: Event | None
    size: int  # approximate stored size in bytes
    changes: Document = field(default_factory=dict)  # of the session's own state, as stored
    initial: Document | None = None  # in the first one: the state before it
    shared: frozenset[str] = frozenset()  # keys of the user's and the app's state that it set


@dataclass(frozen=True)
class LogPage:
    entries: list[Entry]
    head: Head

    @property
    def earlier(self) -> int | None:
        """The revision before which the previous page ends."""
        first = self.entries[0].revision if self.entries else self.head.last + 1
        return first if first > self.head.first + 1 else None

    @property
    def later(self) -> int | None:
        """The revision after which the next page begins."""
        last = self.entries[-1].revision if self.entries else self.head.last
        return last if last < self.head.last else None


class SessionLog:
    """Reads only the part of a session that is shown."""

    def __init__(self, service: CosmosSessionService, key: SessionKey) -> None:
        self._service = service
        self._key = key

    async def head(self) -> Head:
        """Raises SessionNotFoundError."""
        end = await self._service.in_store(
            Bounded("get_session"), lambda store: store.looking.end(self._key)
        )
        if end is None:
            raise SessionNotFoundError(f"Session {self._key.session_id} not found.")
        document = end.document
        return Head(
            self._key,
            document.incarnation,
            document.first_seq - 1,
            end.last,
            end.title,
            end.last_update_time,
            merged(end.state),
            deleted=end.deleted,
            usage=end.usage,
            origin=_origin(document),
        )

    async def version(self) -> str:
        """The last revision, in one small request."""
        records = await self._service.in_store(
            Bounded("iter_events"), lambda store: store.log.read(self._key, newest=1)
        )
        return str(records[-1].seq if records else 0)

    async def page(
        self,
        head: Head,
        *,
        after: int | None = None,
        before: int | None = None,
        count: int = PAGE,
    ) -> LogPage:
        """The events after a revision, or before one; without either, the newest."""
        if after is not None:
            begin = max(after, head.first) + 1
            before = begin + count
        else:
            before = head.last + 1 if before is None else before
            begin = max(before - count, head.first + 1)
        plan = Plan(begin, min(before - 1, head.last), before)
        records = await self._service.in_store(
            Bounded("iter_events"),
            lambda store: store.looking.records(self._key, head.incarnation, plan),
        )
        return LogPage([_entry(record) for record in records], head)

    async def document(self) -> dict[str, Any]:
        """The session's document as stored."""
        return await self._read("sessions", self._key.document_id, self._key.user_id)

    async def event_document(self, head: Head, revision: int) -> dict[str, Any]:
        """The document of a record of its log, as stored."""
        document_id = self._key.event_id(revision, head.incarnation)
        return await self._read("events", document_id, self._key.session_id)

    async def _read(
        self, container: Literal["sessions", "events"], document_id: str, partition: str
    ) -> dict[str, Any]:
        async def read(store: SessionStore) -> Any:
            return await getattr(store, container).read(document_id, partition)

        try:
            found: dict[str, Any] = await self._service.in_store(Bounded("get_session"), read)
        except NotFound:
            raise SessionNotFoundError(f"Document {document_id} not found.") from None
        return found


def _origin(document: SessionDocument) -> tuple[str, int] | None:
    found = document.body.get("forked_from")
    if not isinstance(found, dict) or not isinstance(found.get("session_id"), str):
        return None
    return found["session_id"], int(number(found.get("seq")))


def is_shared(key: str) -> bool:
    return key.startswith((State.USER_PREFIX, State.APP_PREFIX))


def shared_keys(record: Record) -> frozenset[str]:
    """The keys of user and app state that an event set, with their prefixes."""
    deltas = record.deltas
    if not deltas.has_shared:
        return frozenset()
    return frozenset(merged(Scoped(shared=deltas.shared)))


def _entry(record: Record) -> Entry:
    event = event_object(record) if record.is_event else None
    return Entry(
        record.seq,
        record.kind,
        record.timestamp,
        event,
        len(record.raw) + _ENVELOPE,
        record.deltas.session,
        record.initial,
        shared_keys(record),
    )
