"""Writes the session documents, which follow the log, in the background.

It waits a moment before it writes, so that a turn of several events costs one session write.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from cosmosservice.account import telemetry
from cosmosservice.account.charges import operation_named
from cosmosservice.account.retries import BACKGROUND
from cosmosservice.errors import CosmosServiceError, TooLargeError
from cosmosservice.hosting.deadline import within
from cosmosservice.hosting.operation import Background
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.projection import Projection

logger = logging.getLogger("cosmosservice")

_QUIET = 2.0  # seconds without a new event after which the session document is written
_LATEST = 10.0  # seconds after which it is written in any case
_AT_ONCE = 16  # projections in the background


@dataclass
class _Due:
    """A session document that is late."""

    incarnation: str
    since: float
    last: float
    quiet: float
    appended: int = 0  # sequence number of the last event that this process stored, if it did
    failures: int = 0
    timer: asyncio.TimerHandle | None = None


class Projector:
    """Projects sessions a while after their last append, in tasks of its event loop."""

    def __init__(self, projection: Projection, timeout: float) -> None:
        self.projection = projection
        self._timeout = timeout
        self._due: dict[tuple[SessionKey, str], _Due] = {}  # by incarnation
        self._running: set[asyncio.Task[None]] = set()
        self._written = 0  # how often that has succeeded
        self._closed = False
        self._slots = asyncio.Semaphore(_AT_ONCE)
        telemetry.watch(self)

    def schedule(
        self, key: SessionKey, incarnation: str, *, appended: int = 0, at_once: bool = False
    ) -> None:
        """Schedules a projection. Later calls for the same session are combined with it.

        `appended` is the number of the event that the caller stored. A reader, which stored none,
        waits longer before it writes a late document: its writer is probably about to do so, and
        two writers would only conflict. Use `at_once` for a document that would otherwise expire.
        """
        loop = asyncio.get_running_loop()
        now, quiet = loop.time(), 0.0 if at_once else _QUIET if appended else _LATEST
        due = self._due.get((key, incarnation))
        if due is None:
            due = self._due[key, incarnation] = _Due(incarnation, now, now, quiet)
            due.timer = loop.call_at(now + quiet, self._check, key, due)
        elif quiet < due.quiet and due.timer is not None:
            due.timer.cancel()
            due.quiet = quiet
            due.timer = loop.call_at(now + quiet, self._check, key, due)
        due.last, due.appended = now, max(due.appended, appended)

    def _check(self, key: SessionKey, due: _Due) -> None:
        """Called by the timer. Checking again is cheaper than moving the timer with every event."""
        loop = asyncio.get_running_loop()
        when = min(due.last + due.quiet, due.since + _LATEST)
        if when > loop.time():
            due.timer = loop.call_at(when, self._check, key, due)
        else:
            self._start(key, due)

    @property
    def lag(self) -> int:
        """How many session documents are late, as far as this process knows."""
        return len(self._due)

    async def flush(self, listed: Callable[[SessionKey], bool] | None = None) -> None:
        """Writes all that is due now, or the documents of sessions that are listed, and waits for
        those being written. Gives up if nothing could be written for as long as an operation may
        take."""
        for (key, _), due in list(self._due.items()):
            if listed is None or listed(key):
                self._start(key, due)
        running, written = set(self._running), -1
        while running and self._written != written:
            written = self._written
            _, running = await asyncio.wait(running, timeout=self._timeout)

    async def close(self) -> None:
        """Writes what is due, as far as the store answers. The next reader does the rest."""
        await self.flush()
        self._closed = True
        for due in self._due.values():
            if due.timer is not None:
                due.timer.cancel()
        self._due.clear()
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _start(self, key: SessionKey, due: _Due) -> None:
        if due.timer is not None:
            due.timer.cancel()
        if self._due.get((key, due.incarnation)) is due:
            del self._due[key, due.incarnation]
        task = asyncio.create_task(self._run(key, due))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, key: SessionKey, due: _Due) -> None:
        try:
            async with self._slots:
                with (
                    operation_named(Background("project_session")),
                    within(self._timeout, renews=True),
                    telemetry.background("project_session"),
                ):
                    await self.projection.project(key, due.incarnation, appended=due.appended)
                    telemetry.caught_up(asyncio.get_running_loop().time() - due.since)
            self._written += 1
        except Exception as problem:
            self._failed(key, due, problem)

    def _failed(self, key: SessionKey, due: _Due, problem: Exception) -> None:
        due.failures += 1
        again = due.failures < BACKGROUND.attempts and not isinstance(problem, TooLargeError)
        again = again and not self._closed
        # Log only the name of a foreign exception: its text may quote stored content.
        logger.warning(
            "Session %s: its document could not be written (%s). Nothing is lost; %s.",
            key.session_hash,
            problem if isinstance(problem, CosmosServiceError) else type(problem).__name__,
            "it will be retried" if again else "the next reader will do it",
        )
        if again:
            loop = asyncio.get_running_loop()
            self._due.setdefault((key, due.incarnation), due)
            due.timer = loop.call_later(BACKGROUND.seconds(due.failures), self._start, key, due)
