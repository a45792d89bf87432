"""Brings session documents up to the log: in the background, and by whoever finds one behind.

The log is the truth, so nothing is lost if this does not run: the next reader does it. It waits
a moment before it writes, so that a turn of several events costs one session write.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from cosmosservice.account import telemetry
from cosmosservice.account.charges import operation_named
from cosmosservice.account.failures import NotFound, PreconditionFailed
from cosmosservice.errors import CosmosServiceError, TooLargeError
from cosmosservice.hosting.concurrency import Locks, backoff
from cosmosservice.sessions.store.documents import ACTIVE
from cosmosservice.sessions.store.event_log import EventLog, Record, is_deleted
from cosmosservice.sessions.store.keys import APP_STATE, USER_STATE, SessionKey
from cosmosservice.sessions.store.log_view import LogViews
from cosmosservice.sessions.store.retention import (
    must_renew,
    must_renew_events,
    renew_events,
    renewed,
)
from cosmosservice.sessions.store.session_documents import Left, SessionDocument, SessionDocuments
from cosmosservice.sessions.store.state_documents import (
    Changes,
    StateDocuments,
    newest,
    record_changes,
)

logger = logging.getLogger("cosmosservice")

_QUIET = 2.0  # seconds without a new event after which the session document is written
_LATEST = 10.0  # seconds after which it is written in any case
_ATTEMPTS = 50
_NO_ROOM = (
    "Session %r: user: or app: state of its events has no room in its document. It stays in the"
    " session's log, and is merged once there is room and somebody uses the session."
)
_RETRIES = 5  # of a failed background run, each after twice the pause of the one before


@dataclass
class _Due:
    """A session document that is behind."""

    incarnation: str
    since: float
    last: float
    quiet: float = _QUIET
    appended: int = 0  # place of the last event that this process stored, if it did
    failures: int = 0
    timer: asyncio.TimerHandle | None = None


class Projector:
    """The one routine that writes session documents behind the log. Lives on one event loop."""

    def __init__(
        self,
        documents: SessionDocuments,
        states: StateDocuments,
        log: EventLog,
        views: LogViews,
    ) -> None:
        self._documents = documents
        self._states = states
        self._log = log
        self._views = views
        self._due: dict[SessionKey, _Due] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._locks = Locks()
        telemetry.watch(self)

    # --- in the background

    def schedule(self, key: SessionKey, incarnation: str, *, appended: int = 0) -> None:
        """Soon; later calls for the same session join in.

        `appended` is the place of the event that the caller stored. A reader, which stored none,
        is patient with a document that is behind: its writer is probably about to follow, and two
        would only get into each other's way.
        """
        loop = asyncio.get_running_loop()
        now, quiet = loop.time(), _QUIET if appended else _LATEST
        due = self._due.get(key)
        if due is None or due.incarnation != incarnation:
            due = self._due[key] = _Due(incarnation, now, now)
        elif quiet < due.quiet and due.timer is not None:
            due.timer.cancel()
        else:
            due.last, due.appended = now, max(due.appended, appended)
            return
        due.last, due.quiet, due.appended = now, quiet, max(due.appended, appended)
        due.timer = loop.call_at(now + quiet, self._check, key, due)

    def _check(self, key: SessionKey, due: _Due) -> None:
        """The timer's: cheaper to look again than to move it with every event."""
        loop = asyncio.get_running_loop()
        when = min(due.last + due.quiet, due.since + _LATEST)
        if when > loop.time():
            due.timer = loop.call_at(when, self._check, key, due)
        else:
            self._start(key, due)

    @property
    def lag(self) -> int:
        """How many session documents are behind, as far as this process knows."""
        return len(self._due)

    async def flush(self, wanted: Callable[[SessionKey], bool] = lambda _: True) -> None:
        """Writes what is due now, and waits for what is being written."""
        for key, due in list(self._due.items()):
            if wanted(key):
                self._start(key, due)
        running = list(self._running)
        if running:
            await asyncio.gather(*running, return_exceptions=True)

    def _start(self, key: SessionKey, due: _Due) -> None:
        if due.timer is not None:
            due.timer.cancel()
        if self._due.get(key) is due:
            del self._due[key]
        task = asyncio.create_task(self._run(key, due))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, key: SessionKey, due: _Due) -> None:
        try:
            with operation_named("project_session"), telemetry.background("project_session"):
                await self.project(key, due.incarnation, appended=due.appended)
                telemetry.caught_up(asyncio.get_running_loop().time() - due.since)
        except Exception as problem:
            self._failed(key, due, problem)

    def _failed(self, key: SessionKey, due: _Due, problem: Exception) -> None:
        due.failures += 1
        again = due.failures <= _RETRIES and not isinstance(problem, TooLargeError)
        # Of an exception that is not ours only the name: its text may quote what was stored.
        logger.warning(
            "Session %r: its document is behind its log (%s). Nothing is lost; %s.",
            key.session_id,
            problem if isinstance(problem, CosmosServiceError) else type(problem).__name__,
            "it is tried again" if again else "the next reader repairs it",
        )
        if again:
            loop = asyncio.get_running_loop()
            self._due.setdefault(key, due)
            due.timer = loop.call_later(_QUIET * 2**due.failures, self._start, key, due)

    # --- now

    async def project(
        self, key: SessionKey, incarnation: str, *, appended: int = 0, accept_loss: bool = False
    ) -> None:
        """Brings the document to the end of the log, as far as that is known or can be read.

        It stops before an event whose body cannot be read, unless told to accept the loss: what
        that event changes would be missing from the state for good. `appended` is the place of
        an event that this process stored, if it did.
        """
        async with self._locks.of(key):
            for attempt in range(_ATTEMPTS):
                current = self._documents.known(key)
                if not _concerned(current, incarnation):
                    current = await self._documents.read(key)
                if current is None or not _concerned(current, incarnation):
                    _report_unseen(key, incarnation, current, appended)
                    return
                found = await self._behind(key, current)
                records = _to_follow(key, found, accept_loss)
                late = await self._late(key, current)
                renew = must_renew(current.body)
                if not records and not late and not current.pending and not renew:
                    return
                left = await self._settle(key, current, late + found)
                before = Left(current.unmerged, bool(current.pending))
                if not accept_loss and not _all_of(current, late):
                    left = Left(before.first, left.initial)
                if left not in (before, Left()):
                    logger.warning(_NO_ROOM, key.session_id)
                if left == before and not records and not renew:
                    return
                events = must_renew_events(current.body)
                if events:
                    await renew_events(self._log.container, key, incarnation)
                try:
                    body = renewed(current.followed(records, left), events=events)
                    await self._documents.replace(current, body)
                except PreconditionFailed:
                    await backoff(attempt)
                    continue
                except NotFound:
                    _report_unseen(key, incarnation, None, appended)
                    return
                telemetry.repaired(sum(not record.appended_here for record in records))
                return
            logger.warning("Session %r: its document is written by many.", key.session_id)

    async def _behind(self, key: SessionKey, current: SessionDocument) -> list[Record]:
        view = await self._views.seen_again(key, self._log)
        if view is not None and view.incarnation == current.incarnation:
            known = view.after(current.revision)
            if known:
                return known
        found = await self._log.later(key, current.revision + 1)
        mine = [record for record in found if record.incarnation == current.incarnation]
        if mine and mine[0].seq + len(mine) - 1 != mine[-1].seq:
            report_holes(current, mine, mine[0].seq)
        return mine

    async def _late(self, key: SessionKey, current: SessionDocument) -> list[Record]:
        """Events behind the revision whose user or app state did not fit when they were met."""
        if current.unmerged is None:
            return []
        view = self._views.of(key)
        found = None
        if view is not None and view.incarnation == current.incarnation:
            found = view.after(current.unmerged - 1)
        if found is None:
            found = await self._log.later(key, current.unmerged, current.revision + 1)
        return [
            record
            for record in found
            if record.seq <= current.revision and record.incarnation == current.incarnation
        ]

    async def _settle(
        self, key: SessionKey, current: SessionDocument, records: list[Record]
    ) -> Left:
        """Merges the user and app state of events that somebody else appended, or that this
        process could not merge: once the revision is past them nobody would look again. What there
        is no room for is named in the document, and tried again by whoever meets it."""
        open_ones = [record for record in records if record.deltas.shared and not record.settled]

        def changes(kind: str) -> Changes:
            return newest((current.pending_changes(kind), record_changes(open_ones, kind)))

        rest = await self.merge(key, changes(USER_STATE), changes(APP_STATE))
        stamps = {stamp for kept in rest.values() for stamp, _ in kept.values()}
        first = None
        for record in open_ones:
            record.settled = (record.stamp, record.event_id) not in stamps
            if not record.settled and first is None:
                first = record.seq
        initial = any(
            stamp in stamps
            for kind in (USER_STATE, APP_STATE)
            for stamp, _ in current.pending_changes(kind).values()
        )
        return Left(first, initial)

    async def merge(self, key: SessionKey, user: Changes, app: Changes) -> dict[str, Changes]:
        """Both state documents side by side. Returns what they have no room for, by scope."""
        of_user, of_app = self._states.begin(key.user, user), self._states.begin(key.app, app)
        try:
            return {"user:": await of_user, "app:": await of_app}
        finally:
            of_app.close()  # if it was not awaited; the write goes on


def _concerned(document: SessionDocument | None, incarnation: str) -> bool:
    return (
        document is not None and document.incarnation == incarnation and document.status == ACTIVE
    )


def _all_of(current: SessionDocument, late: list[Record]) -> bool:
    """Whether these are all events that may have changes which wait for room: a read may be old,
    and a body may not show yet."""
    if current.unmerged is None:
        return True
    expected = current.revision - current.unmerged + 1
    return len(late) >= expected and not any(record.lost for record in late)


def _to_follow(key: SessionKey, records: list[Record], accept_loss: bool) -> list[Record]:
    """Those that the document may follow. A tombstone it follows in any case: a deleted session
    shows no state, and must not stay half deleted."""
    lost = next((number for number, record in enumerate(records) if record.lost), None)
    if lost is None:
        return records
    if accept_loss or is_deleted(records):
        logger.error(
            "Session %r: its document goes on past event %d, whose body cannot be read. What that"
            " event changed is not in its state.",
            key.session_id,
            records[lost].seq,
        )
        return records
    logger.error(
        "Session %r: its document stays behind event %d, whose body cannot be read. If that is"
        " lost for good, `cosmosservice sessions repair --accept-loss` goes on without it.",
        key.session_id,
        records[lost].seq,
    )
    return records[:lost]


def _report_unseen(
    key: SessionKey, incarnation: str, found: SessionDocument | None, appended: int
) -> None:
    """The log alone decides an append, and does not know that its session has expired. That one
    was deleted and created anew is no such case: the new one begins behind what was appended."""
    anew = found is not None and found.incarnation != incarnation
    if appended and (found is None or (anew and found.first_seq <= appended)):
        logger.warning(
            "Session %r: what was appended to it last is shown to nobody: its document is gone,"
            " expired or removed. A session object must not be used for longer than the ttl.",
            key.session_id,
        )


def report_holes(document: SessionDocument, records: list[Record], expected: int) -> None:
    """The log is read as a prefix, so a hole is a document that other hands removed. `expected`
    is the place where the records should begin."""
    for record in records:
        if record.seq != expected:
            logger.error(
                "Session %r: its log has a hole before event %d. What is there is used.",
                document.key.session_id,
                record.seq,
            )
        expected = record.seq + 1
    if expected <= document.revision:
        logger.error(
            "Session %r: its log ends at event %d, but its document has seen %d.",
            document.key.session_id,
            expected - 1,
            document.revision,
        )
