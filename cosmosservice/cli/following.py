"""`cosmosservice memory follow`: adds new events of sessions to memory."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from cosmosservice import CosmosMemoryService, CosmosSessionService, SessionChange, SessionWatch
from cosmosservice.account.retries import BACKGROUND
from cosmosservice.cli import session_work
from cosmosservice.cli.console import UsageProblem, counted, err, print_json
from cosmosservice.cli.memory_work import imported, service_of
from cosmosservice.errors import ThrottledError, UnavailableError
from cosmosservice.hosting.concurrency import together
from cosmosservice.hosting.operation import Background
from cosmosservice.memory.continuations import Continuations
from cosmosservice.sessions.store.feed_continuation import Scope
from cosmosservice.sessions.store.keys import SessionKey

_AT_ONCE: Final = 16  # sessions
_MOST: Final = 500  # changes between two continuations


async def follow(
    uri: str | None,
    user_id: str | None,
    session_id: str | None,
    *,
    app_name: str,
    since: str | None,
    once: bool,
    interval: float,
    embedder: str | None,
    as_json: bool,
) -> None:
    made = None if embedder is None else imported(embedder)
    scope = Scope.named(app_name, user_id, session_id)
    async with (
        session_work.service_of(uri, background=True) as sessions,
        service_of(uri, writes=True, embedder=made) as memory,
    ):
        start = since or await _stored_continuation(memory, scope) or "beginning"
        try:
            watch = sessions.watch(
                app_name=app_name,
                user_id=user_id,
                session_id=session_id,
                since=start,
                interval=interval,
                follow=not once,
            )
            await watch.ready()
        except ValueError as wrong:
            raise UsageProblem(
                f"{wrong} To read everything again, which stores nothing twice, use --since"
                " beginning."
            ) from None
        follower = _Follower(sessions, memory)
        try:
            with err.status("Following …") as status:
                async for changes in _together(watch):
                    done = await _taken(follower, changes, patient=not once)
                    await _store_continuation(memory, scope, watch)
                    status.update(f"Following … {follower.total}")
                    if as_json:
                        print_json(done.fields)
            await _store_continuation(memory, scope, watch)
        finally:
            err.print(f"{follower.total}.")


@dataclass
class Followed:
    """What a batch of changes led to."""

    events: int = 0  # events read
    stored: int = 0  # new memories
    erased: int = 0  # documents of memories whose sessions were purged

    @property
    def fields(self) -> dict[str, int]:
        return {"events": self.events, "stored": self.stored, "erased": self.erased}

    def __str__(self) -> str:
        read = f"{counted(self.events, 'event')} read, {self.stored:,} stored as memories"
        gone = f", {counted(self.erased, 'document')} erased" if self.erased else ""
        return read + gone


class _Follower:
    """Adds events to memory, and erases the memories of purged sessions."""

    def __init__(self, sessions: CosmosSessionService, memory: CosmosMemoryService) -> None:
        self._sessions, self._memory = sessions, memory
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self.total = Followed()

    async def take(self, changes: list[SessionChange]) -> Followed:
        """Handles sessions concurrently, and the changes of each session in order."""
        of_sessions: dict[tuple[str, str], list[SessionChange]] = {}
        for change in changes:
            of_sessions.setdefault((change.user_id, change.session_id), []).append(change)
        done = Followed()
        await together(*(self._of_session(each, done) for each in of_sessions.values()))
        self.total.events += done.events
        self.total.stored += done.stored
        self.total.erased += done.erased
        return done

    async def _of_session(self, changes: list[SessionChange], done: Followed) -> None:
        async with self._slots:
            run: list[SessionChange] = []
            for change in changes:
                if run and run[0].incarnation != change.incarnation:
                    await self._add(run, done)
                    run = []
                if change.kind == "event":
                    run.append(change)
                elif change.kind == "purged":
                    await self._add(run, done)
                    run = []
                    await self._purged(change, done)
            await self._add(run, done)

    async def _add(self, run: list[SessionChange], done: Followed) -> None:
        events = [change.event for change in run if change.event is not None]
        if not events:
            return
        first = run[0]
        done.events += len(events)
        done.stored += await self._memory.remember(
            _session_of(first),
            events,
            incarnation=first.incarnation,
            beginning=first.revision == 1,
            others=False,
        )

    async def _purged(self, change: SessionChange, done: Followed) -> None:
        """Erases the memories of the incarnation that was purged."""
        done.erased += await self._memory.erase_session_memories(
            _session_of(change), change.incarnation
        )


def _session_of(change: SessionChange) -> SessionKey:
    return SessionKey(change.app_name, change.user_id, change.session_id)


async def _taken(follower: _Follower, changes: list[SessionChange], *, patient: bool) -> Followed:
    """A patient follower retries while the store does not answer."""
    for attempt in itertools.count(1):
        try:
            return await follower.take(changes)
        except (UnavailableError, ThrottledError) as problem:
            if not patient:
                raise
            err.print(
                f"Memories cannot be stored now ({type(problem).__name__}). They will be retried;"
                " nothing is lost."
            )
        await BACKGROUND.pause(attempt)
    raise AssertionError("unreachable")


async def _together(watch: SessionWatch) -> AsyncIterator[list[SessionChange]]:
    """The changes that are available without waiting, at least one."""
    async for first in watch:
        changes = [first]
        with contextlib.suppress(TimeoutError, StopAsyncIteration):
            while len(changes) < _MOST:
                async with asyncio.timeout(0):  # a cancelled anext loses nothing
                    changes.append(await anext(watch))
        yield changes


async def _stored_continuation(memory: CosmosMemoryService, scope: Scope) -> str | None:
    return await memory.in_store(
        Background("follow"), lambda store: Continuations(store.container).get(scope.digest)
    )


async def _store_continuation(
    memory: CosmosMemoryService, scope: Scope, watch: SessionWatch
) -> None:
    continuation = watch.continuation
    if continuation is not None:
        await memory.in_store(
            Background("follow"),
            lambda store: Continuations(store.container).put(scope.digest, continuation),
        )
