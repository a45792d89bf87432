"""Reading the events of a session page by page: all of them, or an error."""

from __future__ import annotations

from dataclasses import dataclass

from cosmosservice.account.charges import current_operation
from cosmosservice.account.retries import VISIBILITY
from cosmosservice.errors import SessionNotFoundError, UnavailableError
from cosmosservice.sessions.store.documents import STUB
from cosmosservice.sessions.store.event_log import EventLog
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.projection import report_damage
from cosmosservice.sessions.store.reading import SessionReader
from cosmosservice.sessions.store.records import Record, after, is_deleted, missing_places


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
        """Up to `count` records, straight from the store, and where to continue."""
        if position is None:
            # Probe first: an iteration that ends without an error must be complete.
            await self._reader.confirm(key)
            document = await self._reader.current(key)
            if document is None:
                return [], None
            position = Position(document.incarnation, document.first_seq - 1, document.revision)
        found = await self._without_gap(key, position, count)
        if is_deleted(after(found, position.revision)) or any(r.kind == STUB for r in found):
            raise SessionNotFoundError(
                f"{current_operation.get()}: session {key.session_id!r} was deleted while its"
                " events were read."
            )
        if len(found) < count:
            return found, None
        return found, Position(position.incarnation, found[-1].seq, position.revision)

    async def _without_gap(self, key: SessionKey, position: Position, count: int) -> list[Record]:
        proved = False
        for attempt in VISIBILITY:
            await VISIBILITY.pause(attempt)
            found = await self._log.read(
                key, position.incarnation, after=position.after, limit=count
            )
            end = position.revision if len(found) < count else found[-1].seq
            missing = missing_places(found, position.after + 1, end)
            if not missing or proved:
                report_damage(key, missing)
                return found
            proved = await self._log.are_lost(key, position.incarnation, missing)
        raise UnavailableError(
            f"{current_operation.get()}: not all events of session {key.session_id!r} can be read"
            " yet. Nothing was changed."
        )
