"""Copies all sessions of one service into another, session by session, and checks the copy."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from google.adk.sessions import Session
from google.adk.sessions.base_session_service import BaseSessionService

from cosmosservice import CosmosSessionService
from cosmosservice.cli.console import Problem, bar, counted, err, out, print_json, settings_of
from cosmosservice.cli.sources import apps_of, opened, reading
from cosmosservice.cli.timeline import clean
from cosmosservice.sessions.importing import ImportOutcome
from cosmosservice.sessions.verifying import Verifier

SIDE_BY_SIDE = 8


@dataclass
class Report:
    """What came of it."""

    outcomes: Counter[str] = field(default_factory=Counter)
    events: int = 0
    verified: Verifier = field(default_factory=Verifier)
    problems: list[str] = field(default_factory=list)

    @property
    def told(self) -> str:
        """What an interruption left."""
        copied = counted(self.outcomes.total(), "session")
        return f"{copied} were copied and checked. Run it again: it continues where it stopped."


class Migration:
    """`target` None: a dry run, which reads everything and writes nothing."""

    def __init__(
        self,
        target: CosmosSessionService | None,
        *,
        progress: Callable[[int], None] = lambda done: None,
    ) -> None:
        self._target = target
        self._progress = progress
        self.report = Report()

    async def run(self, sessions: AsyncIterator[Session]) -> Report:
        """Several sessions at a time; each one in order."""
        waiting: asyncio.Queue[Session | None] = asyncio.Queue(SIDE_BY_SIDE)

        async def work() -> None:
            while (session := await waiting.get()) is not None:
                await self._copy(session)
                self._progress(self.report.outcomes.total())

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(SIDE_BY_SIDE):
                    group.create_task(work())
                async for session in sessions:
                    await waiting.put(session)
                for _ in range(SIDE_BY_SIDE):
                    await waiting.put(None)
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None  # the first one stops the others
        if self._target is not None:
            self.report.problems += await self._target.verify_shared(self.report.verified)
        return self.report

    async def _copy(self, session: Session) -> None:
        self.report.events += len(session.events)
        if self._target is None:
            self.report.outcomes["to copy"] += 1
            return
        outcome = await self._target.import_session(session)
        self.report.outcomes[outcome] += 1
        if outcome is ImportOutcome.DIFFERENT:
            self._problem(session, "the target has another session of this id; it was left alone")
            return
        wrong = await self._target.verify_session(session, self.report.verified)
        if wrong:
            self._problem(session, wrong)

    def _problem(self, session: Session, what: str) -> None:
        where = f"{session.app_name} / {session.user_id} / {session.id}"
        self.report.problems.append(f"{where}: {what}")


class Migrate:
    """One run of `cosmosservice migrate`."""

    def __init__(self, *, dry_run: bool, as_json: bool) -> None:
        self._dry_run = dry_run
        self._as_json = as_json
        self._report = Report()

    async def run(self, source_uri: str, target_uri: str, apps: list[str]) -> None:
        settings_of(target_uri)  # a mistake in it is reported before the source is read
        async with contextlib.AsyncExitStack() as stack:
            source = await stack.enter_async_context(opened(source_uri))
            with reading(source_uri):
                if isinstance(source, CosmosSessionService):
                    await source.catch_up()
                found = await listed(source, apps or await apps_of(source, source_uri))
            target = None
            if not self._dry_run:
                target = await stack.enter_async_context(CosmosSessionService(uri=target_uri))
            progress = stack.enter_context(bar("sessions"))
            migration = Migration(target, progress=lambda done: progress(done, len(found)))
            self._report = migration.report
            await migration.run(loaded(source, found, source_uri))
        gone = len(found) - self._report.outcomes.total()
        if gone:
            self._report.outcomes["deleted in the source since"] = gone
        print_report(self._report, dry_run=self._dry_run, as_json=self._as_json)

    @property
    def told(self) -> str:
        return self._report.told


async def listed(
    source: BaseSessionService, apps: list[str], user_id: str | None = None
) -> list[Session]:
    """The sessions without their events."""
    found: list[Session] = []
    for app_name in apps:
        found += (await source.list_sessions(app_name=app_name, user_id=user_id)).sessions
    return found


async def loaded(
    source: BaseSessionService, sessions: list[Session], uri: str = ""
) -> AsyncIterator[Session]:
    """The same with their events; what was deleted since is left out."""
    for each in sessions:
        with reading(uri):
            session = await source.get_session(
                app_name=each.app_name, user_id=each.user_id, session_id=each.id
            )
        if session is not None:
            yield session


def print_report(report: Report, *, dry_run: bool, as_json: bool) -> None:
    """Says what was done; raises if the copy is not what the source is."""
    verified = report.verified
    if as_json:
        print_json(
            {
                "sessions": dict(report.outcomes),
                "events": report.events,
                "verified": {
                    "sessions": verified.sessions,
                    "events": verified.events,
                    "users": verified.users,
                    "apps": verified.apps,
                },
                "problems": report.problems,
            }
        )
    else:
        counts = [f"{count:,} {outcome}" for outcome, count in report.outcomes.items()]
        total = counted(report.outcomes.total(), "session")
        out.print(f"{total} ({', '.join(counts)})" if counts else "No sessions.")
        out.print(counted(report.events, "event"))
        if not dry_run:
            out.print(
                f"Read again and found alike: {counted(verified.sessions, 'session')},"
                f" {counted(verified.events, 'event')}, state of"
                f" {counted(verified.users, 'user')} and {counted(verified.apps, 'app')}",
                soft_wrap=True,
            )
        for problem in report.problems:
            err.print(clean(problem), markup=False, soft_wrap=True)
    if report.problems:
        number = counted(len(report.problems), "difference")
        raise Problem(f"{number} between the source and the target.")
