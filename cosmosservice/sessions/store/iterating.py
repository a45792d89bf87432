"""Reading the events of a session page by page: all of them, or an error."""

from __future__ import annotations

from dataclasses import dataclass

from cosmosservice.account.charges import current_operation
from cosmosservice.errors import SessionNotFoundError
from cosmosservice.sessions.store.documents import STUB
from cosmosservice.sessions.store.event_log import Plan
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.parts import Part, Parts
from cosmosservice.sessions.store.reading import SessionReader
from cosmosservice.sessions.store.records import Record, after, is_deleted


@dataclass(frozen=True)
class Progress:
    """Where a read of a log, page by page, continues."""

    incarnation: str
    after: int  # the last sequence number that was read
    revision: int  # the sequence number that the log must reach


class Iterating(Part):
    """Reads the events of a session page by page."""

    def __init__(self, parts: Parts, reader: SessionReader) -> None:
        super().__init__(parts)
        self._reader = reader

    async def page(
        self, key: SessionKey, progress: Progress | None, count: int
    ) -> tuple[list[Record], Progress | None]:
        """The next `count` records, straight from the store, and where to
        continue."""
        if progress is None:
            # Probe first: an iteration that ends without an error must be complete.
            await self._reader.confirm(key)
            document = await self._reader.current(key)
            if document is None:
                return [], None
            progress = Progress(document.incarnation, document.first_seq - 1, document.revision)
        last = progress.after + count
        plan = Plan(progress.after + 1, min(last, progress.revision), before=last + 1)
        found, _ = await self._log.read_whole(key, progress.incarnation, plan)
        if is_deleted(after(found, progress.revision)) or any(r.kind == STUB for r in found):
            raise SessionNotFoundError(
                f"{current_operation.get()}: session {key.session_id!r} was deleted while its"
                " events were read."
            )
        if last > progress.revision and len(found) < count:
            return found, None
        return found, Progress(progress.incarnation, last, progress.revision)
