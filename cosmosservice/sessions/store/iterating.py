"""Reading the events of a session page by page: all of them, or an error."""

from __future__ import annotations

from dataclasses import dataclass

from cosmosservice.account.charges import current_operation
from cosmosservice.errors import SessionNotFoundError
from cosmosservice.sessions.store.documents import STUB
from cosmosservice.sessions.store.event_log import EventLog, Plan
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.reading import SessionReader
from cosmosservice.sessions.store.records import Record, after, is_deleted


@dataclass(frozen=True)
class Position:
    """Where a read of a log, page by page, continues."""

    incarnation: str
    after: int  # the last place that was read
    revision: int  # the place that the log must reach


class Iterating:
    """Lives on one event loop."""

    def __init__(self, reader: SessionReader, log: EventLog) -> None:
        self._reader = reader
        self._log = log

    async def page(
        self, key: SessionKey, position: Position | None, count: int
    ) -> tuple[list[Record], Position | None]:
        """The records at the next `count` places, straight from the store, and where to
        continue."""
        if position is None:
            # Probe first: an iteration that ends without an error must be complete.
            await self._reader.confirm(key)
            document = await self._reader.current(key)
            if document is None:
                return [], None
            position = Position(document.incarnation, document.first_seq - 1, document.revision)
        last = position.after + count
        plan = Plan(position.after + 1, min(last, position.revision), before=last + 1)
        found, _ = await self._log.read_whole(key, position.incarnation, plan)
        if is_deleted(after(found, position.revision)) or any(r.kind == STUB for r in found):
            raise SessionNotFoundError(
                f"{current_operation.get()}: session {key.session_id!r} was deleted while its"
                " events were read."
            )
        if last > position.revision and len(found) < count:
            return found, None
        return found, Position(position.incarnation, last, position.revision)
