"""Copies sessions, memories and artifacts of other services into a store, and checks the copy."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from google.adk.sessions import Session
from google.adk.sessions.base_session_service import BaseSessionService

from cosmosservice import (
    CosmosAccount,
    CosmosArtifactService,
    CosmosMemoryService,
    CosmosSessionService,
)
from cosmosservice.cli.artifact_copies import copy_artifacts
from cosmosservice.cli.console import Problem, bar, counted, err, out, print_json, settings_of
from cosmosservice.cli.memory_copies import copy_memories
from cosmosservice.cli.reports import TO_COPY, Copies
from cosmosservice.cli.sources import Source, apps_of, opened, reading
from cosmosservice.cli.timeline import one_line
from cosmosservice.sessions.importing import ImportOutcome
from cosmosservice.sessions.verifying import Verifier

SIDE_BY_SIDE = 8


@dataclass
class Report:
    """The results of a migration."""

    outcomes: Counter[str] = field(default_factory=Counter)
    events: int = 0
    verified: Verifier = field(default_factory=Verifier)
    problems: list[str] = field(default_factory=list)
    memories: Copies | None = None
    artifacts: Copies | None = None

    @property
    def interrupted(self) -> str:
        """The message after an interruption."""
        done = [counted(self.outcomes.total(), "session")]
        if self.memories is not None:
            done.append(counted(self.memories.outcomes.total(), "memory", "memories"))
        if self.artifacts is not None:
            done.append(counted(self.artifacts.outcomes.total(), "version") + " of artifacts")
        what = ", ".join(done)
        return f"{what} were copied and checked. Run it again: it continues where it stopped."

    @property
    def differences(self) -> list[str]:
        return [
            *self.problems,
            *(self.memories.problems if self.memories else ()),
            *(self.artifacts.problems if self.artifacts else ()),
        ]


class Migration:
    """With `target` None, a dry run: it reads everything and writes nothing."""

    def __init__(
        self,
        target: CosmosSessionService | None,
        report: Report | None = None,
        *,
        progress: Callable[[int], None] = lambda done: None,
    ) -> None:
        self._target = target
        self._progress = progress
        self.report = report or Report()

    async def run(self, sessions: AsyncIterator[Session]) -> Report:
        """Copies several sessions at a time, the events of each in order."""
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
            self.report.outcomes[TO_COPY] += 1
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

    def __init__(self, target_uri: str, apps: list[str], *, dry_run: bool) -> None:
        settings_of(target_uri)  # errors in it are reported before a source is read
        self._target_uri = target_uri
        self._apps = apps
        self._dry_run = dry_run
        self.report = Report()

    async def run(self, source_uris: Sequence[str]) -> Report:
        async with contextlib.AsyncExitStack() as stack:
            sources = [await stack.enter_async_context(opened(uri)) for uri in source_uris]
            account = None
            if not self._dry_run:
                account = await stack.enter_async_context(CosmosAccount(uri=self._target_uri))
            for source in sources:
                if source.sessions is not None:
                    await self._sessions(source.sessions, source.uri, account)
            for source in sources:
                with reading(source.uri):
                    await self._memories(source, account)
                    await self._artifacts(source, account)
        return self.report

    async def _sessions(
        self, source: BaseSessionService, uri: str, account: CosmosAccount | None
    ) -> None:
        with reading(uri):
            if isinstance(source, CosmosSessionService):
                await source.catch_up()
            found = await listed(source, self._apps or await apps_of(source, uri))
        target = None if account is None else CosmosSessionService(account=account)
        before = self.report.outcomes.total()
        with bar("sessions") as progress:
            migration = Migration(
                target, self.report, progress=lambda done: progress(done - before, len(found))
            )
            await migration.run(loaded(source, found, uri))
        gone = len(found) - (self.report.outcomes.total() - before)
        if gone:
            self.report.outcomes["deleted in the source since"] += gone

    async def _memories(self, source: Source, account: CosmosAccount | None) -> None:
        if source.memories is not None:
            self.report.memories = self.report.memories or Copies()
            target = None if account is None else CosmosMemoryService(account=account)
            await copy_memories(source.memories, target, self._apps, self.report.memories)

    async def _artifacts(self, source: Source, account: CosmosAccount | None) -> None:
        if source.artifacts is not None:
            self.report.artifacts = self.report.artifacts or Copies()
            target = None if account is None else CosmosArtifactService(account=account)
            await copy_artifacts(source.artifacts, target, self._apps, self.report.artifacts)


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
    """The same with their events. Sessions deleted since then are left out."""
    for each in sessions:
        with reading(uri):
            session = await source.get_session(
                app_name=each.app_name, user_id=each.user_id, session_id=each.id
            )
        if session is not None:
            yield session


def print_report(report: Report, *, dry_run: bool, as_json: bool) -> None:
    """Reports what was done. Raises if the copy differs from the source."""
    verified = report.verified
    others = {"memories": report.memories, "artifacts": report.artifacts}
    copied = {name: copies for name, copies in others.items() if copies is not None}
    if as_json:
        print_json(
            {
                "sessions": dict(report.outcomes),
                "events": report.events,
                **{name: dict(copies.outcomes) for name, copies in copied.items()},
                "verified": {
                    "sessions": verified.sessions,
                    "events": verified.events,
                    "users": verified.users,
                    "apps": verified.apps,
                },
                "problems": report.differences,
            }
        )
    else:
        if report.outcomes or not copied:
            counts = Copies(report.outcomes)
            out.print(f"{counted(counts.outcomes.total(), 'session')}{counts.outcomes_text}")
            out.print(counted(report.events, "event"))
        if report.memories is not None:
            number = counted(report.memories.outcomes.total(), "memory", "memories")
            out.print(f"{number}{report.memories.outcomes_text}")
        if report.artifacts is not None:
            number = counted(report.artifacts.outcomes.total(), "version")
            out.print(f"{number} of artifacts{report.artifacts.outcomes_text}")
        if report.outcomes and not dry_run:
            out.print(
                f"Verified, equal in source and target: {counted(verified.sessions, 'session')},"
                f" {counted(verified.events, 'event')}, state of"
                f" {counted(verified.users, 'user')} and {counted(verified.apps, 'app')}",
                soft_wrap=True,
            )
        for problem in report.differences:
            err.print(one_line(problem), markup=False, soft_wrap=True)
    if report.differences:
        number = counted(len(report.differences), "difference")
        raise Problem(f"{number} between the source and the target.")
