"""One session: its end, a page of its log, its state at any event, its documents."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from google.adk.events import Event
from google.adk.sessions.state import State

from cosmosservice.account.container import Document
from cosmosservice.account.failures import NotFound
from cosmosservice.account.retries import VISIBILITY
from cosmosservice.data_converters.state_scopes import Scoped, merged
from cosmosservice.errors import AuthenticationError, SessionNotFoundError, UnavailableError
from cosmosservice.hosting.concurrency import together
from cosmosservice.hosting.operation import Bounded
from cosmosservice.scopes import Pair
from cosmosservice.sessions.session_objects import event_object
from cosmosservice.sessions.store.documents import ACTIVE, DELETED, FORKING, RESTORING
from cosmosservice.sessions.store.event_log import Plan
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.records import Record, is_deleted, number
from cosmosservice.sessions.store.retention import expired
from cosmosservice.sessions.store.session_documents import SessionDocument, fold
from cosmosservice.sessions.store.state_documents import StateDocument, newest, record_changes
from cosmosservice.sessions.store.usage import Usage

if TYPE_CHECKING:
    from cosmosservice.cosmos_session_service import CosmosSessionService
    from cosmosservice.sessions.store.store import SessionStore

PAGE: Final = 50  # events
_ENVELOPE: Final = 400  # bytes that the log adds to an event, approximately
_SHOWN: Final = (ACTIVE, DELETED, RESTORING, FORKING)


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
        head = await self._service.in_store(Bounded("get_session"), self._head)
        if head is None:
            raise SessionNotFoundError(f"Session {self._key.session_id} not found.")
        return head

    async def _head(self, store: SessionStore) -> Head | None:
        """What a get would return, but without repairing, completing or renewing anything."""
        for attempt in VISIBILITY:
            await VISIBILITY.pause(attempt)
            document, *shared = await together(
                store.documents.read(self._key), *map(store.states.read, self._key.shared)
            )
            if document is None or document.status not in _SHOWN:
                return None
            if expired(document.body, store.clock.now()):
                return None
            with contextlib.suppress(NotFound):  # a large value has been replaced
                return await self._read_head(store, document, Pair(*shared))
        raise UnavailableError("The session changes faster than it can be read.")

    async def _read_head(
        self, store: SessionStore, document: SessionDocument, shared: Pair[StateDocument]
    ) -> Head:
        key = self._key
        plan = Plan(document.revision + 1, document.revision)
        new = await read_shown(store, key, document.incarnation, plan)
        initial = await store.documents.initial_changes(document)
        changes = initial.map(newest, record_changes(new))
        state = Scoped(
            await store.values.whole(key, fold(document.state, new)),
            Pair(
                await store.states.whole(shared.user, changes.user),
                await store.states.whole(shared.app, changes.app),
            ),
        )
        turned = is_deleted(new)
        return Head(
            key,
            document.incarnation,
            document.first_seq - 1,
            new[-1].seq if new else document.revision,
            document.title,
            new[-1].timestamp if new else document.last_update_time,
            merged(state),
            deleted=document.status == DELETED if turned is None else turned,
            usage=document.usage + Usage.of_records(new),
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
            lambda store: read_shown(store, self._key, head.incarnation, plan),
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


async def read_shown(
    store: SessionStore, key: SessionKey, incarnation: str, plan: Plan
) -> list[Record]:
    """The records of a plan. An identity that may only read cannot probe: it is shown what its
    replica has."""
    try:
        records, _ = await store.log.read_whole(key, incarnation, plan)
    except AuthenticationError:
        return await store.log.read(key, incarnation, after=plan.begin - 1, before=plan.before)
    return records


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
