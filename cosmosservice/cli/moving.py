"""What `cosmosservice sessions export` and `import` do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import IO

from google.adk.sessions import Session

from cosmosservice.cli import archive
from cosmosservice.cli.console import bar, counted, err
from cosmosservice.cli.migrate import Migration, listed, loaded, print_report
from cosmosservice.cli.session_work import service_of
from cosmosservice.cli.sources import apps_of


class Export:
    """Writes complete sessions, one after the other."""

    def __init__(self, output: IO[bytes]) -> None:
        self._output = output
        self.written = 0
        self.total = 0

    async def run(
        self, uri: str | None, app_name: str | None, user_id: str | None, session_id: str | None
    ) -> None:
        async with service_of(uri) as service:
            await service.catch_up()
            apps = [app_name] if app_name is not None else await apps_of(service, uri or "")
            chosen = [
                session
                for session in await listed(service, apps, user_id)
                if session_id in (None, session.id)
            ]
            self.total = len(chosen)
            with bar("sessions") as progress:
                async for _ in archive.write(loaded(service, chosen), self._output):
                    self.written += 1
                    progress(self.written, self.total)
        err.print(f"{counted(self.written, 'session')} written.")

    @property
    def interrupted(self) -> str:
        if not self.written:
            return "Nothing was written."
        return (
            f"{self.written:,} of {counted(self.total, 'session')} were written. The file can be"
            " imported as it is; to have all of them, export again."
        )


class Import:
    """Puts sessions from a file into a store, or only reads them."""

    def __init__(self, *, dry_run: bool) -> None:
        self._dry_run = dry_run
        self._migration = Migration(None)

    async def run(self, uri: str | None, file: IO[bytes], *, as_json: bool) -> None:
        async def from_file() -> AsyncIterator[Session]:
            for session in archive.read(file):
                yield session

        if self._dry_run:
            report = await self._migration.run(from_file())
        else:
            async with service_of(uri, writes=True) as service:
                self._migration = Migration(service)
                report = await self._migration.run(from_file())
        print_report(report, dry_run=self._dry_run, as_json=as_json)

    @property
    def interrupted(self) -> str:
        return self._migration.report.interrupted
