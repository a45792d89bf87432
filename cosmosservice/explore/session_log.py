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
from cosmosservice.sessions.session_objects import event_object
from cosmosservice.sessions.store.documents import DELETED
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.records import Record

if TYPE_CHECKING:
    from cosmosservice.cosmos_session_service import CosmosSessionService
    from cosmosservice.sessions.store.store import SessionStore

PAGE: Final = 50  # events
_ENVELOPE: Final = 400  # bytes that the log adds to an event, about


@dataclass(frozen=True)
class Head:
    """Where a session stands. Its revisions go from `first`, before its first event, to `last`."""

    key: SessionKey
    incarnation: str
    first: int
    last: int
    title: str
    last_update_time: float
    state: dict[str, Any]
    deleted: bool = False

    @property
    def own_state(self) -> dict[str, Any]:
        """Without what the user's sessions, or all of the app, share."""
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
    size: int  # in bytes, as it is stored, about
    changes: Document = field(default_factory=dict)  # of the session's own state, as stored
    initial: Document | None = None  # in the first one: the state before it


@dataclass(frozen=True)
class LogPage:
    entries: list[Entry]
    head: Head

    @property
    def earlier(self) -> int | None:
        """The revision before which the page before this one ends."""
        first = self.entries[0].revision if self.entries else self.head.last + 1
        return first if first > self.head.first + 1 else None

    @property
    def later(self) -> int | None:
        """The revision after which the next page begins."""
        last = self.entries[-1].revision if self.entries else self.head.last
        return last if last < self.head.last else None


class SessionLog:
    """Reads no more of a session than is shown."""

    def __init__(self, service: CosmosSessionService, key: SessionKey) -> None:
        self._service = service
        self._key = key

    async def head(self) -> Head:
        """Raises SessionNotFoundError."""
        head = await self._service._run("get_session", self._head)
        if head is None:
            raise SessionNotFoundError(f"Session {self._key.session_id} not found.")
        return head

    async def _head(self, store: SessionStore) -> Head | None:
        document = await store.reader.current(self._key)
        snapshot = None if document is None else await store.reader.read(self._key, 0)
        if document is not None and snapshot is not None and snapshot.marker is not None:
            last, time, state = snapshot.marker.seq, snapshot.last_update_time, snapshot.state
        else:
            document = await store.documents.read(self._key)
            if document is None or document.status != DELETED:
                return None
            last, time = document.revision, document.last_update_time
            state = Scoped(await store.values.whole(self._key, document.state))
        title = document.body.get("title")
        return Head(
            self._key,
            document.incarnation,
            document.first_seq - 1,
            last,
            title if isinstance(title, str) else "",
            time,
            merged(state),
            deleted=document.status == DELETED,
        )

    async def version(self) -> str:
        """The last revision, in one small request."""
        records = await self._service._run(
            "iter_events", lambda store: store.log.read(self._key, newest=1)
        )
        return str(records[-1].seq if records else 0)

    async def page(
        self, head: Head, *, after: int | None = None, before: int | None = None
    ) -> LogPage:
        """The events after a revision, or before one; without either, the newest."""
        if after is not None:
            place: dict[str, int] = {"after": max(after, head.first), "limit": PAGE}
        else:
            place = {"after": head.first, "newest": PAGE}
            place |= {} if before is None else {"before": before}
        records = await self._service._run(
            "iter_events", lambda store: store.log.read(self._key, head.incarnation, **place)
        )
        return LogPage([_entry(record) for record in records], head)

    async def document(self) -> dict[str, Any]:
        """The session's document as it is stored."""
        return await self._read("sessions", self._key.document_id, self._key.user_id)

    async def event_document(self, head: Head, revision: int) -> dict[str, Any]:
        """The document of a record of its log, as it is stored."""
        document_id = self._key.event_id(revision, head.incarnation)
        return await self._read("events", document_id, self._key.session_id)

    async def _read(
        self, container: Literal["sessions", "events"], document_id: str, partition: str
    ) -> dict[str, Any]:
        async def read(store: SessionStore) -> Any:
            return await getattr(store, container).read(document_id, partition)

        try:
            found: dict[str, Any] = await self._service._run("get_session", read)
        except NotFound:
            raise SessionNotFoundError(f"Document {document_id} not found.") from None
        return found


def is_shared(key: str) -> bool:
    return key.startswith((State.USER_PREFIX, State.APP_PREFIX))


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
    )
