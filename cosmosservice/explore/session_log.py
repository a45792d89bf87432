"""One session: its end, a page of its log, its state at any event, its documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from google.adk.events import Event

from cosmosservice.account.failures import NotFound
from cosmosservice.data_converters.state_scopes import merged
from cosmosservice.errors import SessionNotFoundError
from cosmosservice.explore.texts import value_text
from cosmosservice.sessions.session_objects import event_object
from cosmosservice.sessions.store.documents import DELETED
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.records import Record

if TYPE_CHECKING:
    from cosmosservice.cosmos_session_service import CosmosSessionService
    from cosmosservice.sessions.store.store import SessionStore

PAGE: Final = 50  # events
MISSING: Final = object()

Mark = Literal["", "new", "changed", "removed"]


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


@dataclass(frozen=True)
class Entry:
    """A record of the log. A deletion or restoration has no event."""

    revision: int
    kind: str
    timestamp: float
    event: Event | None


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
        """The revision behind which the next page begins."""
        last = self.entries[-1].revision if self.entries else self.head.last
        return last if last < self.head.last else None

    def mark_of(self, key: str) -> Mark:
        """What the last event on the page did to a key of the state."""
        event = self.entries[-1].event if self.entries else None
        return "changed" if event is not None and key in event.actions.state_delta else ""


@dataclass(frozen=True)
class Value:
    """A key of the state, and what the event at that point did to it."""

    key: str
    value: Any
    mark: Mark = ""
    before: Any = MISSING

    @property
    def was(self) -> str | None:
        """What a changed key had before."""
        return None if self.before is MISSING else value_text(self.before)


class SessionLog:
    """Reads no more of a session than is shown, but for the state at a point of its past, which
    all events before it make."""

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
        if document is None or snapshot is None or snapshot.marker is None:
            document = await store.documents.read(self._key)
            if document is None or document.status != DELETED:
                return None
        title = document.body.get("title")
        return Head(
            self._key,
            document.incarnation,
            document.first_seq - 1,
            snapshot.marker.seq if snapshot and snapshot.marker else document.revision,
            title if isinstance(title, str) else "",
            snapshot.last_update_time if snapshot else document.last_update_time,
            merged(snapshot.state) if snapshot else {},
            deleted=snapshot is None,
        )

    async def end(self) -> int:
        """The last revision, in one request: for whoever asks again and again."""
        records = await self._service._run(
            "iter_events", lambda store: store.log.read(self._key, newest=1)
        )
        return records[-1].seq if records else 0

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

    async def state_at(self, revision: int) -> list[Value]:
        """The session's own state after an event, and what that event changed."""
        names = {
            "app_name": self._key.app_name,
            "user_id": self._key.user_id,
            "session_id": self._key.session_id,
        }
        now = await self._service.get_session_at(**names, at=revision)
        if not now.events:
            return compared(now.state, now.state)
        try:
            before = await self._service.get_session_at(**names, at=revision - 1)
        except ValueError:  # the first revision: nothing is before it
            return compared(now.state, now.state)
        return compared(before.state, now.state)

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


def compared(before: dict[str, Any], after: dict[str, Any]) -> list[Value]:
    """The state `after`, and what became of the one `before`."""
    return [
        _value(key, before.get(key, MISSING), after.get(key, MISSING))
        for key in sorted(before.keys() | after.keys())
    ]


def _value(key: str, before: Any, after: Any) -> Value:
    if after is MISSING:
        return Value(key, before, "removed")
    if before is MISSING:
        return Value(key, after, "new")
    return Value(key, after) if before == after else Value(key, after, "changed", before)


def _entry(record: Record) -> Entry:
    event = event_object(record) if record.is_event else None
    return Entry(record.seq, record.kind, record.timestamp, event)
