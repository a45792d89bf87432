"""The feed: every record as it is written, from the container's change feed.

The change feed shows documents in the order of their last write, separately for each range of the
container. A log is in one partition, and its records are created one after the other, so the feed
shows them in the order of the log. Two things write a record again:

* A purge leaves a stub instead. That is not an event.
* Use of a session with a ttl renews its records, which then move to the end of the feed. A renewed
  record says when it was appended. Records appended before the feed was last read to its end have
  been reported. A reader that finds a record of such a session checks whether earlier records have
  moved after it. Those are reported first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cosmosservice.account.change_feed import FeedContinuation, FeedRange, FeedStart
from cosmosservice.account.container import Document
from cosmosservice.sessions.store.clock import HybridClock
from cosmosservice.sessions.store.documents import (
    APPENDED_AT,
    CHUNK,
    LOST,
    RESTORED,
    STUB,
    TOMBSTONE,
)
from cosmosservice.sessions.store.event_log import LOG_ID, EventLog
from cosmosservice.sessions.store.feed_continuation import (
    Continuation,
    RangeContinuation,
    Scope,
    Start,
)
from cosmosservice.sessions.store.keys import SessionKey, retention_of
from cosmosservice.sessions.store.queries import RECORDS, RENEWED_RECORDS
from cosmosservice.sessions.store.records import LogKey, Record, is_deleted, number

_COUNT = 500  # documents a page
_BYTES = 16 * 1024 * 1024  # of events a page; Cosmos DB's own limit does not count chunks
_CLOCK_STEP = 1  # seconds by which `_ts` may go back when another replica takes over


@dataclass(frozen=True, slots=True)
class FeedChange:
    """A record that was written, or the end of one."""

    key: SessionKey
    kind: str  # the record's, or STUB: the session was purged
    seq: int
    incarnation: str
    record: Record | None
    continuation: Continuation  # after this change

    @property
    def log_key(self) -> LogKey:
        return self.key.session_hash, self.incarnation


@dataclass(frozen=True, slots=True)
class FeedPage:
    """New changes, and where the next page begins."""

    changes: list[FeedChange]
    continuation: Continuation
    at_end: bool  # there was nothing new anywhere


class Feed:
    """Reads the change feed of the log. Keeps no state about its readers."""

    def __init__(self, log: EventLog, clock: HybridClock) -> None:
        self._log = log
        self._container = log.container
        self._clock = clock

    async def page(
        self, scope: Scope, continuation: Continuation | Start, reported: Mapping[LogKey, int]
    ) -> FeedPage:
        """The next changes of the sessions in scope. `reported` is the last number reported of each
        log, as far as the reader remembers."""
        if not isinstance(continuation, Continuation):
            return await self._begin(scope, continuation, reported)
        waiting = list(continuation.ranges)
        for _ in continuation.ranges:
            first, *rest = waiting
            request = FeedContinuation(
                continuation.container, FeedRange(first.low, first.high, first.token)
            )
            documents, found = await self._changes(request)
            ranges = [first.moved(each.range) for each in found]
            if documents:
                others = Continuation(continuation.container, tuple(rest))
                page = _Page(first, ranges, others, documents)
                return await self._reported(scope, page, reported)
            waiting = rest + [each.at_end() for each in ranges]
        return FeedPage([], Continuation(continuation.container, tuple(waiting)), at_end=True)

    async def _changes(
        self, since: FeedContinuation
    ) -> tuple[list[Document], list[FeedContinuation]]:
        try:
            documents, found = await self._container.changes(since, _COUNT)
        except ValueError:  # the SDK compares them too
            found = []
        if not found or found[0].container != since.container:
            raise ValueError(
                "The continuation belongs to another events container, or to one that was deleted"
                " and created again since."
            )
        return documents, found

    async def _begin(self, scope: Scope, start: Start, reported: Mapping[LogKey, int]) -> FeedPage:
        clock = asyncio.get_running_loop().time
        started = clock()
        request = FeedStart(start, scope.session_id)
        documents, found = await self._container.changes(request, _COUNT)
        began = 0
        if start == "Now":
            # A record that was appended before and is renewed later is not reported again.
            began = int(self._clock.now() - (clock() - started)) - _CLOCK_STEP
        nothing = RangeContinuation("", "", None, began, began)
        ranges = [nothing.moved(each.range) for each in found]
        if documents:
            page = _Page(nothing, ranges, Continuation(found[0].container, ()), documents)
            return await self._reported(scope, page, reported)
        return FeedPage([], Continuation(found[0].container, tuple(ranges)), at_end=True)

    async def _reported(
        self, scope: Scope, page: _Page, reported: Mapping[LogKey, int]
    ) -> FeedPage:
        changes: list[FeedChange] = []
        newly_reported: dict[LogKey, int] = {}

        def last_reported(log: LogKey) -> int | None:
            return newly_reported.get(log, reported.get(log))

        size, caught_up = 0, page.begin.caught_up
        for count, body in enumerate(page.documents, 1):
            if page.is_read(body):
                continue
            before = page.continuation
            page.read(body)
            found = await self._of(scope, body, caught_up, last_reported)
            for key, record in found:
                # Only the last record is the document from the feed: a reader that continues
                # from an earlier one must get this document again.
                after = page.continuation if record is found[-1][1] else before
                change = _change(key, record, after)
                changes.append(change)
                newly_reported[change.log_key] = change.seq
                size += record.size
            if size > _BYTES and count < len(page.documents) and page.can_be_cut:
                return FeedPage(changes, page.continuation, at_end=False)
        return FeedPage(changes, page.end, at_end=False)

    async def _of(
        self,
        scope: Scope,
        body: Document,
        caught_up: int,
        last_reported: Callable[[LogKey], int | None],
    ) -> list[tuple[SessionKey, Record]]:
        """The records that a document of the feed reports, in the order of the log."""
        kind = body.get("document_type")
        found = LOG_ID.fullmatch(str(body.get("id")))
        if found is None or kind in (CHUNK, LOST) or not scope.holds(body):
            return []
        key, seq, incarnation = SessionKey.in_document(body), int(found[1]), found[2]
        if key is None or not body["id"].startswith(key.session_hash):
            return []
        if _is_erased(body):
            # A session is deleted before it is purged: its tombstone stands for all its records.
            return [(key, _stub(seq, incarnation))] if kind == TOMBSTONE else []
        bodies = [body]
        if retention_of(incarnation) is not None:
            last = last_reported((key.session_hash, incarnation))
            if _is_reported(body, seq, last, caught_up):
                return []
            if seq > 1 and last != seq - 1:
                bodies = await self._moved(key, seq, incarnation, last, caught_up) + bodies
        records = [each for body in bodies for each in await self._log.records(key, [body])]
        return [
            (key, record)
            for record in records
            if not (record.lost and await self._is_being_erased(key, record))
        ]

    async def _moved(
        self, key: SessionKey, seq: int, incarnation: str, last: int | None, caught_up: int
    ) -> list[Document]:
        """Earlier records that have been renewed since, and would be reported too late."""
        await self._log.probe(key, seq, incarnation)  # from here on, no read is older than now
        parameters = {"first": key.first_id((last or 0) + 1), "last": key.first_id(seq)}
        if last is not None:
            found = await self._container.query(RECORDS, parameters, key.session_id)
        else:
            since = {"since": caught_up - _CLOCK_STEP}
            found = await self._container.query(RENEWED_RECORDS, parameters | since, key.session_id)
        # Documents, as in the change feed: `EventLog.read` would load the bodies of large events.
        return [
            body
            for body in found
            if body.get("incarnation") == incarnation
            and body.get("document_type") != LOST
            and not _is_erased(body)
        ]

    async def _is_being_erased(self, key: SessionKey, record: Record) -> bool:
        """Whether the body of a large event is missing because a purge has begun."""
        await self._log.probe(key, record.seq, record.incarnation)
        found = await self._log.read(key, record.incarnation, after=record.seq - 1)
        still = any(each.seq == record.seq and each.kind != STUB for each in found)
        return not still or bool(is_deleted(found))


class _Page:
    """Changed documents of one range, and how far they were read."""

    def __init__(
        self,
        before: RangeContinuation,
        ranges: list[RangeContinuation],
        others: Continuation,
        documents: list[Document],
    ) -> None:
        *split, current = ranges
        self._container = others.container
        self._others = [*others.ranges, *split]
        self._end = current
        self._newest = before.newest
        self.begin = current._replace(token=before.token)
        self._current = self.begin
        # Documents of one transaction have one number.
        self.can_be_cut = all("_lsn" in body for body in documents)
        self.documents = sorted(documents, key=_mark) if self.can_be_cut else documents

    def is_read(self, body: Document) -> bool:
        return self.can_be_cut and _mark(body) <= (self.begin.lsn, self.begin.id)

    def read(self, body: Document) -> None:
        self._newest = max(self._newest, int(number(body.get("_ts"))))
        if self.can_be_cut:
            lsn, name = _mark(body)
            self._current = self._current._replace(lsn=lsn, id=name)

    @property
    def continuation(self) -> Continuation:
        """The continuation after the documents read so far."""
        return Continuation(self._container, (self._current, *self._others))

    @property
    def end(self) -> Continuation:
        """The continuation after the page. The other ranges are next."""
        current = self._end._replace(newest=self._newest, lsn=0, id="")
        return Continuation(self._container, (*self._others, current))


def _mark(body: Document) -> tuple[int, str]:
    return int(number(body.get("_lsn"))), str(body.get("id"))


def _is_erased(body: Document) -> bool:
    """Whether it is a purged tombstone: a purge keeps its type, and nothing else."""
    kind = body.get("document_type")
    return kind == STUB or (kind in (TOMBSTONE, RESTORED) and "timestamp" not in body)


def _is_reported(body: Document, seq: int, last: int | None, caught_up: int) -> bool:
    if last is not None:
        return seq <= last
    appended_at = body.get(APPENDED_AT)
    return isinstance(appended_at, int | float) and appended_at < caught_up - _CLOCK_STEP


def _stub(seq: int, incarnation: str) -> Record:
    return Record(seq, incarnation, STUB, "", 0.0, 0, b"{}")


def _change(key: SessionKey, record: Record, continuation: Continuation) -> FeedChange:
    return FeedChange(key, record.kind, record.seq, record.incarnation, record, continuation)
