"""Looking at sessions, deleted ones too: nothing is repaired, completed or renewed."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from cosmosservice.account.failures import NotFound
from cosmosservice.account.retries import VISIBILITY
from cosmosservice.data_converters.state_scopes import Scoped
from cosmosservice.errors import AuthenticationError, UnavailableError
from cosmosservice.hosting.concurrency import together
from cosmosservice.scopes import Pair
from cosmosservice.sessions.store.documents import ACTIVE, DELETED, FORKING, RESTORING
from cosmosservice.sessions.store.event_log import Plan
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.parts import Part
from cosmosservice.sessions.store.records import Record, is_deleted
from cosmosservice.sessions.store.retention import expired
from cosmosservice.sessions.store.session_documents import SessionDocument, fold
from cosmosservice.sessions.store.state_documents import StateDocument, newest, record_changes
from cosmosservice.sessions.store.titles import first_words
from cosmosservice.sessions.store.usage import Usage

_SHOWN = (ACTIVE, DELETED, RESTORING, FORKING)


@dataclass(frozen=True)
class End:
    """The end of a session: its document, the records after it, and the state of now."""

    document: SessionDocument
    new: list[Record]
    state: Scoped

    @property
    def last(self) -> int:
        return self.new[-1].seq if self.new else self.document.revision

    @property
    def title(self) -> str:
        return self.document.title or first_words(self.new)

    @property
    def last_update_time(self) -> float:
        return self.new[-1].timestamp if self.new else self.document.last_update_time

    @property
    def deleted(self) -> bool:
        changed = is_deleted(self.new)
        return self.document.status == DELETED if changed is None else changed

    @property
    def usage(self) -> Usage:
        return self.document.usage + Usage.of_records(self.new)


class Looking(Part):
    """Reads what a get would return, by parts."""

    async def end(self, key: SessionKey) -> End | None:
        for attempt in VISIBILITY:
            await VISIBILITY.pause(attempt)
            document, *shared = await together(
                self._documents.read(key), *map(self._states.read, key.shared)
            )
            if document is None or document.status not in _SHOWN:
                return None
            if expired(document.body, self._clock.now()):
                return None
            with contextlib.suppress(NotFound):  # a large value has been replaced
                return await self._end(document, Pair(*shared))
        raise UnavailableError("The session changes faster than it can be read.")

    async def records(self, key: SessionKey, incarnation: str, plan: Plan) -> list[Record]:
        """The records of a plan. An identity that may only read cannot probe: it is shown what its
        replica has."""
        try:
            records, _ = await self._log.read_whole(key, incarnation, plan)
        except AuthenticationError:
            return await self._log.read(key, incarnation, after=plan.begin - 1, before=plan.before)
        return records

    async def _end(self, document: SessionDocument, shared: Pair[StateDocument]) -> End:
        plan = Plan(document.revision + 1, document.revision)
        new = await self.records(document.key, document.incarnation, plan)
        initial = await self._documents.initial_changes(document)
        changes = initial.map(newest, record_changes(new))
        own = await self._values.whole(document.key, fold(document.state, new))
        return End(document, new, Scoped(own, await self._states.whole_shared(shared, changes)))
