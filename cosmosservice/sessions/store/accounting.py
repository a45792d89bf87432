"""What sessions have used: from their documents, and from the log where those do not tell."""

from __future__ import annotations

import sys
from typing import Final

from cosmosservice.account.container import Container
from cosmosservice.hosting.concurrency import together
from cosmosservice.sessions.store.clock import HybridClock
from cosmosservice.sessions.store.documents import DELETED
from cosmosservice.sessions.store.event_log import EventLog, Plan
from cosmosservice.sessions.store.keys import SessionKey, StateKey
from cosmosservice.sessions.store.listing import concerns
from cosmosservice.sessions.store.projector import Projector
from cosmosservice.sessions.store.queries import USED
from cosmosservice.sessions.store.session_documents import SessionDocument
from cosmosservice.sessions.store.usage import SessionUsage, Usage, UsageReport

_AT_ONCE: Final = 16  # logs that are read at the same time
_EVER: Final = -sys.float_info.max


class Accounting:
    """Adds up what sessions have used."""

    def __init__(
        self, container: Container, log: EventLog, projector: Projector, clock: HybridClock
    ) -> None:
        self._container = container
        self._log = log
        self._projector = projector
        self._clock = clock

    async def report(self, app_name: str, user_id: str | None, since: float | None) -> UsageReport:
        """Includes deleted sessions until they are purged."""
        if not app_name:
            return UsageReport(app_name, [])
        StateKey.of_user(app_name, user_id or "")  # checks the names
        # This process's latest events count at once; those of others follow in some seconds.
        await self._projector.flush(concerns(app_name, user_id))
        after = _EVER if since is None else since
        parameters = {"app": app_name, "now": self._clock.now(), "since": after}
        found = await self._container.query(USED, parameters, user_id)
        documents = [
            SessionDocument(key, body | {"state": {}}, "")
            for body in found
            if (key := SessionKey.in_document(body)) is not None and body.get("incarnation")
        ]
        used: list[SessionUsage] = []
        for start in range(0, len(documents), _AT_ONCE):
            some = documents[start : start + _AT_ONCE]
            sums = await together(*(self._usage(each, after) for each in some))
            used += [_named(each, usage) for each, usage in zip(some, sums, strict=True)]
        return UsageReport(app_name, sorted(used, key=lambda each: (each.user_id, each.session_id)))

    async def _usage(self, document: SessionDocument, since: float) -> Usage:
        """The sums of the document or, if some of its events are older, those of its log."""
        if document.usage.since >= since or since == _EVER:
            return document.usage
        plan = Plan(document.first_seq, document.revision, document.revision + 1)
        records, _ = await self._log.read_whole(document.key, document.incarnation, plan)
        return Usage.of_records(records, since)


def _named(document: SessionDocument, usage: Usage) -> SessionUsage:
    key = document.key
    return SessionUsage(
        key.user_id,
        key.session_id,
        document.title,
        document.last_update_time,
        document.status == DELETED,
        usage,
    )
