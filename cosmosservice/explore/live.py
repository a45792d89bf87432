"""Live updates for open pages. All lists share one watch of the feed, and all pages of a session
share another. A watch runs as long as one of its pages is open."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from cosmosservice.account.retries import Retry
from cosmosservice.sessions.store.keys import SessionKey

if TYPE_CHECKING:
    from cosmosservice.cosmos_session_service import CosmosSessionService
    from cosmosservice.sessions.watching import SessionChange, SessionWatch

    Open = Callable[[], SessionWatch]

logger = logging.getLogger("cosmosservice")

MOST_LISTENERS: Final = 100
_MOST_CHANGES: Final = 100  # sessions that are reported to a page that is slow to ask
_PAUSES: Final = Retry(1, first_pause=1.0, longest_pause=30.0)

Status = Literal["waiting", "live"]
Topic = SessionKey | None
"""A session, or None: all sessions of all apps."""


class TooManyListenersError(Exception):
    """Too many pages are open to keep another one up to date."""


@dataclass
class News:
    """What has happened since the last news."""

    status: Status | None = None  # if it has changed
    changed: dict[SessionKey, int] = field(default_factory=dict)  # to which revision
    missed: bool = False  # more has changed than is reported

    def __bool__(self) -> bool:
        return bool(self.status or self.changed or self.missed)


class Listener:
    """One open page. Its unreported news takes a bounded amount of memory."""

    def __init__(self, concerns: Callable[[SessionKey], bool]) -> None:
        self._concerns = concerns
        self._news = News()
        self._arrived = asyncio.Event()

    def changed(self, key: SessionKey, revision: int) -> None:
        if not self._concerns(key):
            return
        if key in self._news.changed or len(self._news.changed) < _MOST_CHANGES:
            self._news.changed[key] = revision
        else:
            self._news.missed = True
        self._arrived.set()

    def turned(self, status: Status, *, missed: bool = False) -> None:
        self._news.status = status
        self._news.missed |= missed
        self._arrived.set()

    async def news(self, seconds: float) -> News:
        """Waits up to this many seconds for news; empty if there is none."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._arrived.wait(), seconds)
        self._arrived.clear()
        news, self._news = self._news, News()
        return news


class _Channel:
    """One watch, and its listeners."""

    def __init__(self, watch: Open) -> None:
        self._open = watch
        self.listeners: set[Listener] = set()
        self._status: Status = "waiting"
        self._task = asyncio.create_task(self._run())

    def add(self, listener: Listener) -> None:
        self.listeners.add(listener)
        listener.turned(self._status)

    def close(self) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        """A watch recovers from throttling by itself. If anything else ends it, starts another."""
        failures = 0
        while True:
            try:
                async for change in self._changes(missed=failures > 0):
                    failures = 0
                    key = SessionKey(change.app_name, change.user_id, change.session_id)
                    for listener in self.listeners:
                        listener.changed(key, change.revision)
            except Exception as problem:
                # Not the exception's text: it may name a user.
                logger.warning(
                    "explore: live updates are interrupted (%s). They will be retried.",
                    type(problem).__name__,
                )
                failures += 1
                self._turn("waiting")
                await _PAUSES.pause(failures)

    async def _changes(self, *, missed: bool) -> AsyncIterator[SessionChange]:
        watch = self._open()
        await watch.ready()
        self._turn("live", missed=missed)
        async for change in watch:
            yield change

    def _turn(self, status: Status, *, missed: bool = False) -> None:
        self._status = status
        for listener in self.listeners:
            listener.turned(status, missed=missed)


class Live:
    """Tells open pages what has changed, on the event loop of the server."""

    def __init__(self, service: CosmosSessionService, interval: float = 1.0) -> None:
        self._service = service
        self._interval = interval
        self._channels: dict[Topic, _Channel] = {}
        self._count = 0
        self.closed = False

    @property
    def watches(self) -> int:
        """How many watches are running."""
        return len(self._channels)

    def close(self) -> None:
        """Ends all watches."""
        self.closed = True

    @contextlib.contextmanager
    def listening(self, topic: Topic, concerns: Callable[[SessionKey], bool]) -> Iterator[Listener]:
        """Raises TooManyListenersError."""
        if self._count >= MOST_LISTENERS:
            raise TooManyListenersError
        channel = self._channels.get(topic)
        if channel is None:
            channel = self._channels[topic] = _Channel(lambda: self._watch(topic))
        listener = Listener(concerns)
        channel.add(listener)
        self._count += 1
        try:
            yield listener
        finally:
            self._count -= 1
            channel.listeners.discard(listener)
            if not channel.listeners:
                channel.close()
                del self._channels[topic]

    def _watch(self, topic: Topic) -> SessionWatch:
        if topic is None:
            return self._service.watch(app_name=None, interval=self._interval)
        return self._service.watch(
            app_name=topic.app_name,
            user_id=topic.user_id,
            session_id=topic.session_id,
            interval=self._interval,
        )
