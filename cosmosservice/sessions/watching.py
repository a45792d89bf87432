"""Watching sessions: changes by any process, as they happen."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from google.adk.events.event import Event

from cosmosservice.account.retries import Retry
from cosmosservice.errors import ThrottledError, UnavailableError
from cosmosservice.sessions.session_objects import event_object
from cosmosservice.sessions.store.documents import EVENT, RESTORED, STUB, TOMBSTONE
from cosmosservice.sessions.store.feed_continuation import Continuation, Scope, Start
from cosmosservice.sessions.store.keys import retention_of

if TYPE_CHECKING:
    from cosmosservice.sessions.store.feed import FeedChange, FeedPage
    from cosmosservice.sessions.store.records import LogKey

    Read = Callable[[Continuation | Start, Mapping[LogKey, int]], Awaitable[FeedPage]]

logger = logging.getLogger("cosmosservice")

ChangeKind = Literal["event", "deleted", "restored", "purged"]

_KINDS: Final[dict[str, ChangeKind]] = {
    EVENT: "event",
    TOMBSTONE: "deleted",
    RESTORED: "restored",
    STUB: "purged",
}
_STARTS: Final[dict[str, Start]] = {"now": "Now", "beginning": "Beginning"}
_REMEMBERED = 10_000  # sessions with a ttl


@dataclass(frozen=True)
class SessionChange:
    """An event that was appended, or a session that was deleted, restored or purged."""

    kind: ChangeKind
    app_name: str
    user_id: str = field(repr=False)
    session_id: str = field(repr=False)
    event: Event | None = field(repr=False)  # set if the kind is "event"
    revision: int  # the sequence number of the change
    continuation: str = field(repr=False)
    """Where to continue after this change: `watch(since=…)` with the same names."""
    incarnation: str = field(repr=False)  # tells sessions apart that had the same id in turn


class SessionWatch(AsyncIterator[SessionChange]):
    """The changes, one after the other. For one reader.

    It holds nothing open: to stop, break out of the loop or cancel the task. A cancelled `anext`
    loses no change.
    """

    def __init__(self, read: Read, scope: Scope, since: str, interval: float, follow: bool) -> None:
        if isinstance(interval, bool) or not isinstance(interval, int | float) or interval <= 0:
            raise ValueError("interval must be a number of seconds above 0.")
        if not isinstance(since, str):
            raise ValueError("since must be a string: 'now', 'beginning' or a continuation.")
        self._read, self._scope = read, scope
        self._interval = interval
        self._pauses = Retry(1, first_pause=interval, longest_pause=max(30.0, interval))
        start = _STARTS.get(since) or Continuation.parse(since, scope)
        self._continuation: Continuation | Start = start  # after the last change returned
        self._end: Continuation | Start = start  # after the last change read
        self._follow = follow
        self._read_once = False
        self._at_end = False
        self._failures = 0
        self._due = 0.0
        self._changes: deque[FeedChange] = deque()
        self._reported: OrderedDict[LogKey, int] = OrderedDict()
        self._closed = False

    async def ready(self) -> None:
        """Waits until the watch knows where it starts. Everything that is appended from then on
        is reported, even if nobody is iterating yet."""
        while not self._read_once:
            await self._fill()

    @property
    def continuation(self) -> str | None:
        """Where to continue after everything that was returned. It may be further than the last
        change's continuation, if later changes did not concern this watch. None until ready."""
        return (
            self._continuation.text(self._scope)
            if isinstance(self._continuation, Continuation)
            else None
        )

    async def __anext__(self) -> SessionChange:
        while not self._changes:
            if self._closed or (self._at_end and not self._follow):
                raise StopAsyncIteration
            await self._fill()
        found = self._changes.popleft()
        self._continuation = found.continuation if self._changes else self._end
        return SessionChange(
            _KINDS[found.kind],
            found.key.app_name,
            found.key.user_id,
            found.key.session_id,
            event_object(found.record) if found.record and found.kind == EVENT else None,
            found.seq,
            found.continuation.text(self._scope),
            found.incarnation,
        )

    async def aclose(self) -> None:
        """Ends the iteration."""
        self._closed = True
        self._changes.clear()

    async def _fill(self) -> None:
        """Reads one page when the next read is due. A cancelled read changes nothing."""
        await asyncio.sleep(max(0.0, self._due - time.monotonic()))
        if self._closed:
            return
        try:
            page = await self._read(self._end, self._reported)
        except (UnavailableError, ThrottledError) as problem:
            if not self._read_once:
                raise
            self._failures += 1
            self._due = time.monotonic() + self._pauses.seconds(self._failures)
            logger.warning(
                "watch: the change feed cannot be read now (%s). It will be read again from the"
                " same change; none is lost.",
                type(problem).__name__,
            )
            return
        self._read_once, self._failures = True, 0
        self._at_end = page.at_end
        self._due = time.monotonic() + self._interval if page.at_end else 0.0
        self._end = page.continuation
        if self._closed:
            return
        self._changes.extend(page.changes)
        if not page.changes:
            self._continuation = self._end
        for change in page.changes:
            if change.kind != STUB and retention_of(change.incarnation) is not None:
                self._reported[change.log_key] = change.seq
                self._reported.move_to_end(change.log_key)
        while len(self._reported) > _REMEMBERED:
            self._reported.popitem(last=False)
