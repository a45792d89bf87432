"""Remembering: hands appended events over to a memory service, in the background.

The log is the truth here too. A process remembers only how far it has handed over each session. The
records come from its view of the log, or from the log. A session that it has not handed over yet,
or not for a long time, is handed over from its beginning, and the memory service stores what it
lacks. So events that were left out after a crash or a failure are handed over with the next append
to their session, by any process.

A memory that is stored while its session is purged would outlive it. Therefore, when a turn is
handed over, its last record is read once more. If it is a stub, the memories are erased. If it is
not, the purge that makes it one erases them: a purge erases the log first, then the memories.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from cosmosservice.account import telemetry
from cosmosservice.account.charges import operation_named
from cosmosservice.account.retries import BACKGROUND
from cosmosservice.hosting.deadline import within
from cosmosservice.hosting.operation import Background
from cosmosservice.sessions.store.documents import STUB
from cosmosservice.sessions.store.event_log import Plan
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.parts import Part, Parts
from cosmosservice.sessions.store.records import LogKey, Record
from cosmosservice.sessions.store.sink import Sink

logger = logging.getLogger("cosmosservice")

_QUIET: Final = 2.0  # seconds without a new event after which a turn is over
_AT_ONCE: Final = 8  # sessions that are handed over at the same time
MOST_DUE: Final = 10_000  # sessions
MOST_HANDED: Final = 50_000  # sessions


@dataclass
class _Due:
    """A session whose events have to be handed over."""

    incarnation: str
    last: int  # the sequence number of the newest one
    held: object  # so that a service which the program has dropped adds them all the same
    failures: int = 0
    hurry: asyncio.Event = field(default_factory=asyncio.Event)  # a caller is waiting for the end


class Remembering(Part):
    """Hands over appended events to a sink, in the background, on the event loop of its store."""

    def __init__(self, parts: Parts, sink: Sink) -> None:
        super().__init__(parts)
        self._sink = sink
        self._timeout = parts.options.timeout
        self._due: dict[SessionKey, _Due] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(_AT_ONCE)
        # The sequence number up to which everything is handed over, for each session.
        self._handed: OrderedDict[LogKey, int] = OrderedDict()

    def schedule(self, key: SessionKey, stored: Record) -> None:
        """Schedules the handover. Later events of the same session are combined with it."""
        log = key.session_hash, stored.incarnation
        if stored.initial is not None:  # the session's first event: there is nothing before it
            self._handed.setdefault(log, stored.seq - 1)
        due = self._due.get(key)
        if due is not None and due.incarnation == stored.incarnation:
            due.last = max(due.last, stored.seq)
            return
        if len(self._due) >= MOST_DUE:
            self._handed.pop(log, None)
            logger.warning(
                "Events are appended faster than they are added to memory. Those of some sessions"
                " are left out; they are added with the next event of their session."
            )
            return
        due = self._due[key] = _Due(stored.incarnation, stored.seq, self._sink.hold())
        task = asyncio.create_task(self._run(key, due))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def flush(self) -> None:
        """Waits until everything is handed over, or has failed once more."""
        for due in self._due.values():
            due.hurry.set()
        running = list(self._running)
        if running:
            await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, key: SessionKey, due: _Due) -> None:
        try:
            while not await self._try(key, due):
                pass
        finally:
            if self._due.get(key) is due:
                del self._due[key]

    async def _try(self, key: SessionKey, due: _Due) -> bool:
        """Whether there is nothing left to do."""
        hurried = due.hurry.is_set()
        last = due.last
        try:
            async with self._slots:
                with self._operation():
                    await self._hand_over(key, due.incarnation, last)
            due.failures = 0
            await _up_to(_QUIET, due.hurry)
            if due.last > last:
                return False
            with self._operation():
                if await self._is_purged(key, due.incarnation, last):
                    await self._sink.erase(key, due.incarnation)
        except Exception as problem:
            due.failures += 1
            again = due.failures < BACKGROUND.attempts and not hurried
            # Log only the name: the exception's text may quote stored content.
            logger.warning(
                "Events that were appended could not be added to memory (%s). They are stored in"
                " their session; %s.",
                type(problem).__name__,
                "it will be retried" if again else "they will be added with its next event",
            )
            if again:
                await _up_to(BACKGROUND.seconds(due.failures), due.hurry)
            return not again
        return due.last == last

    @contextlib.contextmanager
    def _operation(self) -> Iterator[None]:
        with (
            operation_named(Background("remember")),
            within(self._timeout, renews=True),
            telemetry.background("remember"),
        ):
            yield

    async def _hand_over(self, key: SessionKey, incarnation: str, last: int) -> None:
        log = key.session_hash, incarnation
        done = self._handed.get(log)
        if done is not None and done >= last:
            return
        records = await self._records(key, incarnation, done, last)
        events = [record for record in records if record.is_event and not record.lost]
        others = not all(record.appended_here for record in events)
        if events:
            await self._sink.add(key, events, beginning=done is None, others=others)
        self._handed[log] = max(last, records[-1].seq if records else last)
        self._handed.move_to_end(log)
        while len(self._handed) > MOST_HANDED:
            self._handed.popitem(last=False)

    async def _records(
        self, key: SessionKey, incarnation: str, done: int | None, last: int
    ) -> list[Record]:
        """The records after this number, up to which everything is handed over; None: all."""
        view = self._views.of(key)
        if view is not None and view.incarnation == incarnation and view.last >= last:
            known = view.after(done) if done is not None else view.records if view.whole else None
            if known is not None:
                return list(known)
        found = await self._log.read(key, incarnation, after=-1 if done is None else done)
        begin = done + 1 if done is not None else found[0].seq if found else last
        found, _ = await self._log.read_whole(key, incarnation, Plan(begin, last), found)
        return found

    async def _is_purged(self, key: SessionKey, incarnation: str, seq: int) -> bool:
        await self._log.probe(key, seq, incarnation)  # no later read is older than now
        found = await self._log.read(key, incarnation, after=seq - 1, before=seq + 1)
        return any(record.kind == STUB for record in found)


async def _up_to(seconds: float, event: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
