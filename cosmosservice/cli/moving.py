"""What `cosmosservice sessions export` and `import` do."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from itertools import groupby
from typing import IO, Any, cast

from google.adk.sessions import Session

from cosmosservice import CosmosArtifactService, CosmosMemoryService, CosmosSessionService
from cosmosservice.account.container import Document
from cosmosservice.cli import archive, archived
from cosmosservice.cli.archived import ARTIFACTS, DELETED, MEMORIES, Chosen, Memory, Version
from cosmosservice.cli.console import bar, counted, err
from cosmosservice.cli.migrate import Migration, listed, loaded, print_report
from cosmosservice.cli.reports import TO_COPY, Copies
from cosmosservice.cli.session_work import no_session, service_of
from cosmosservice.cli.sources import apps_of
from cosmosservice.sessions.archive_lines import HEAD


class Export:
    """Writes complete sessions, one after the other, and then what else was wanted."""

    def __init__(self, output: IO[bytes], also: Collection[str]) -> None:
        self._output = output
        self._also = also
        self.written = 0
        self.total = 0
        self._others: Counter[str] = Counter()

    async def run(
        self, uri: str | None, app_name: str | None, user_id: str | None, session_id: str | None
    ) -> None:
        chosen = Chosen(app_name, user_id, session_id)
        async with service_of(uri, background=True) as service:
            await service.catch_up()
            apps = [app_name] if app_name is not None else await self._apps(service, uri)
            found = [
                session
                for session in await listed(service, apps, user_id)
                if session_id in (None, session.id)
            ]
            self.total = len(found)
            self._output.write(archive.line(HEAD))
            with bar("sessions") as progress:
                async for _ in archive.write(loaded(service, found), self._output):
                    self.written += 1
                    progress(self.written, self.total)
            if DELETED in self._also:
                gone = archived.deleted_sessions(service, apps, chosen)
                async for _ in archive.write(gone, self._output, deleted=True):
                    self._others["deleted session"] += 1
            if MEMORIES in self._also:
                memories = CosmosMemoryService(account=service.account)
                await self._write(archived.memory_lines(memories, chosen), archived.is_memory)
            if ARTIFACTS in self._also:
                artifacts = CosmosArtifactService(account=service.account)
                await self._write(archived.artifact_lines(artifacts, chosen))
        also = [counted(self._others["deleted session"], "deleted session")]
        also = also if DELETED in self._also else []
        if MEMORIES in self._also:
            also.append(counted(self._others["memory"], "memory", "memories"))
        if ARTIFACTS in self._also:
            also.append(counted(self._others["artifact"], "version") + " of artifacts")
        if session_id is not None and not self.written and not self._others:
            raise no_session(session_id)
        err.print(f"{', '.join([counted(self.written, 'session'), *also])} written.")

    async def _apps(self, service: CosmosSessionService, uri: str | None) -> list[str]:
        """With deleted sessions, those that have no others too."""
        return await (service.list_apps() if DELETED in self._also else apps_of(service, uri or ""))

    async def _write(
        self, lines: AsyncIterator[Document], counts: Callable[[Document], bool] = bool
    ) -> None:
        async for each in lines:
            self._output.write(archive.line(each))
            if counts(each):
                self._others.update(each.keys())
        self._output.flush()

    @property
    def interrupted(self) -> str:
        if not self.written:
            return "Nothing was written."
        return (
            f"{self.written:,} of {counted(self.total, 'session')} were written. The file can be"
            " imported as it is; to have all of them, export again."
        )


class Import:
    """Puts what is in a file into a store, or only reads it."""

    def __init__(self, *, dry_run: bool) -> None:
        self._dry_run = dry_run
        self._migration = Migration(None)

    async def run(self, uri: str | None, file: IO[bytes], *, as_json: bool) -> None:
        if self._dry_run:
            await self._read(file, None)
        else:
            async with service_of(uri, writes=True) as service:
                self._migration = Migration(service)
                await self._read(file, service)
        print_report(self._migration.report, dry_run=self._dry_run, as_json=as_json)

    async def _read(self, file: IO[bytes], service: CosmosSessionService | None) -> None:
        report = self._migration.report
        for kind, group in groupby(archive.read(file), type):
            if kind is Session:
                await self._migration.run(_one_by_one(cast(Iterable[Session], group)))
            elif kind is archive.Deleted:
                for each in cast(Iterable[archive.Deleted], group):
                    await self._deleted(each.session, service)
            elif kind is Memory:
                report.memories = report.memories or Copies()
                target = None
                if service is not None:
                    target = CosmosMemoryService(account=service.account)
                documents = (each.document for each in cast(Iterable[Memory], group))
                await archived.put_memories(documents, target, report.memories)
            else:
                report.artifacts = report.artifacts or Copies()
                into = None
                if service is not None:
                    into = CosmosArtifactService(account=service.account)
                for _, versions in groupby(cast(Iterable[Version], group), _name):
                    await archived.put_artifact(versions, into, report.artifacts)

    async def _deleted(self, session: Session, service: CosmosSessionService | None) -> None:
        """Imports the session, and deletes it again."""
        outcomes = self._migration.report.outcomes
        if service is None:
            outcomes[f"deleted, {TO_COPY}"] += 1
            return
        names = {"app_name": session.app_name, "user_id": session.user_id}
        if ((*names.values(), session.id), True) in await service.find_sessions(
            session.id, **names
        ):
            outcomes["deleted, already there"] += 1
            return
        problems = len(self._migration.report.problems)
        await self._migration.run(_one_by_one([session]))
        if len(self._migration.report.problems) == problems:
            await service.delete_session(**names, session_id=session.id)

    @property
    def interrupted(self) -> str:
        return self._migration.report.interrupted


def _name(version: Version) -> list[Any]:
    return list(version.name.values())


async def _one_by_one(sessions: Iterable[Session]) -> AsyncIterator[Session]:
    for each in sessions:
        yield each
