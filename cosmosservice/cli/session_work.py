"""What `cosmosservice sessions …` does. Imports ADK, so it is imported by the commands that run."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import time
from collections.abc import AsyncIterator
from typing import IO, Any

from google.adk.sessions import Session
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cosmosservice import CosmosArtifactService, CosmosMemoryService, CosmosSessionService
from cosmosservice.cli import archive
from cosmosservice.cli.console import (
    Problem,
    SessionName,
    bar,
    counted,
    err,
    out,
    print_json,
    settings_of,
)
from cosmosservice.cli.migrate import Migration, listed, loaded, print_report
from cosmosservice.cli.sources import apps_of
from cosmosservice.cli.timeline import clean, moment, session_view
from cosmosservice.sessions.administration import PurgeReport
from cosmosservice.sessions.store.repair import RepairReport


@contextlib.asynccontextmanager
async def service_of(
    uri: str | None, *, writes: bool = False
) -> AsyncIterator[CosmosSessionService]:
    """Only commands that store sessions create a store; reading one that is missing is an error."""
    settings_of(uri, existing=not writes)
    async with CosmosSessionService(uri=uri, ensure=None if writes else "verify") as service:
        yield service


async def existing(service: CosmosSessionService, name: SessionName) -> Session:
    session = await service.get_session(**name._asdict())
    if session is None:
        raise Problem(
            f"There is no session {name.session_id!r} of user {name.user_id!r} in app"
            f" {name.app_name!r}. `cosmosservice sessions list` shows those that are there."
        )
    return session


async def list_sessions(
    uri: str | None,
    app_name: str | None,
    user_id: str | None,
    *,
    deleted: bool,
    limit: int,
    continuation: str | None,
    as_json: bool,
) -> None:
    async with service_of(uri) as service:
        try:
            found, following = await service.list_latest(
                app_name=app_name,
                user_id=user_id,
                limit=limit,
                deleted=deleted,
                continuation=continuation,
            )
        except ValueError as error:
            raise Problem(str(error)) from None
    if as_json:
        for each in found:
            print_json(each)
    elif found:
        _print_sessions(found, time.time())
    else:
        err.print("No sessions.")
    if following is not None:
        err.print(f"There may be more: --continue {following}", soft_wrap=True)


def _print_sessions(found: list[dict[str, Any]], now: float) -> None:
    """One line each. On a terminal long titles are cut to fit; an id never is."""
    table = Table(box=None, pad_edge=False)
    rows = [
        (
            clean(str(each["session_id"])),
            clean(str(each["title"])),
            clean(str(each["app_name"])),
            clean(str(each["user_id"])),
            f"{each['records']:,}",
            ago(each["last_update_time"], now),
        )
        for each in found
    ]
    for name in ("session", "title", "app", "user", "records", "updated"):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*map(Text, row))
    needed = sum(max(cell_len(row[n]) for row in rows) + 8 for n in (0, 2, 3, 4, 5))
    table.columns[1].max_width = max(out.width - needed, 20) if out.is_terminal else None
    Console(width=100_000, highlight=False).print(table, soft_wrap=True)


def ago(timestamp: float, now: float) -> str:
    """`5 minutes ago`; beyond a month the date."""
    seconds = now - timestamp
    if not 0 <= seconds < 30 * 24 * 3600:
        return moment(timestamp) if seconds < 0 else moment(timestamp)[:10]
    for size, unit in ((24 * 3600, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{counted(int(seconds // size), unit)} ago"
    return "just now"


async def show(uri: str | None, name: SessionName, *, as_json: bool) -> None:
    async with service_of(uri) as service:
        session = await existing(service, name)
    if as_json:
        for line in archive.session_lines(session):
            print_json(line)
    else:
        out.print(session_view(session))


async def export(
    uri: str | None,
    app_name: str | None,
    user_id: str | None,
    session_id: str | None,
    output: IO[bytes],
) -> None:
    async with service_of(uri) as service:
        await service.catch_up()
        apps = [app_name] if app_name is not None else await apps_of(service, uri or "")
        chosen = [
            session
            for session in await listed(service, apps, user_id)
            if session_id in (None, session.id)
        ]
        count = await archive.write(loaded(service, chosen), output)
    err.print(f"{counted(count, 'session')} written.")


async def import_file(uri: str | None, file: IO[bytes], *, dry_run: bool, as_json: bool) -> None:
    async def from_file() -> AsyncIterator[Session]:
        for session in archive.read(file):
            yield session

    if dry_run:
        report = await Migration(None).run(from_file())
        print_report(report, dry_run=True, as_json=as_json)
        return
    async with service_of(uri, writes=True) as service:
        report = await Migration(service).run(from_file())
    print_report(report, dry_run=False, as_json=as_json)


async def delete(uri: str | None, name: SessionName) -> None:
    async with service_of(uri) as service:
        await existing(service, name)
        await service.delete_session(**name._asdict())
    err.print("Deleted. `cosmosservice sessions restore` brings it back.")


async def restore(uri: str | None, name: SessionName) -> None:
    async with service_of(uri) as service:
        await service.restore_session(**name._asdict())
    err.print("Restored.")


@contextlib.asynccontextmanager
async def everything_of(uri: str | None) -> AsyncIterator[CosmosSessionService]:
    """A session service whose purges erase memories and artifacts too."""
    async with service_of(uri) as service:
        companions = (
            CosmosMemoryService(account=service.account),
            CosmosArtifactService(account=service.account),
        )
        yield service
        del companions


async def purge_session(uri: str | None, name: SessionName) -> None:
    async with everything_of(uri) as service:
        _print_purged(await service.purge_session(**name._asdict()))


async def purge_user(uri: str | None, app_name: str, user_id: str, *, include_state: bool) -> None:
    async with everything_of(uri) as service:
        with bar("sessions") as progress:
            report = await service.purge_user(
                app_name=app_name, user_id=user_id, include_state=include_state, progress=progress
            )
    _print_purged(report)


async def purge_deleted(
    uri: str | None, app_name: str | None, older_than: datetime.timedelta
) -> None:
    async with everything_of(uri) as service:
        with bar("sessions") as progress:
            report = await service.purge_deleted(
                app_name=app_name, older_than=older_than, progress=progress
            )
    _print_purged(report)


def _print_purged(report: PurgeReport) -> None:
    documents = report.documents + report.companions
    if not documents:
        err.print("There was nothing to erase.")
        return
    what = f"{counted(report.sessions, 'session')}, {counted(documents, 'document')}"
    err.print(f"Erased: {what}.")


async def repair(
    uri: str | None,
    app_name: str | None,
    user_id: str | None,
    session_id: str | None,
    *,
    accept_loss: bool,
    as_json: bool,
) -> bool:
    """Whether all is well now."""
    async with service_of(uri) as service:
        if session_id is not None:
            names = [SessionName(str(app_name), str(user_id), session_id)]
        else:
            found = await service.list_names(app_name=app_name, user_id=user_id)
            names = [SessionName(*each) for each in found]
        healthy = True
        with bar("sessions") as progress:
            for done, name in enumerate(names, 1):
                report = await service.repair_session(**name._asdict(), accept_loss=accept_loss)
                healthy = healthy and report.healthy
                _print_repaired(name, report, as_json)
                progress(done, len(names))
    err.print(f"{counted(len(names), 'session')} checked.")
    return healthy


def _print_repaired(name: SessionName, report: RepairReport, as_json: bool) -> None:
    if as_json:
        print_json(name._asdict() | dataclasses.asdict(report) | {"healthy": report.healthy})
        return
    told = [
        text
        for holds, text in (
            (report.rebuilt, "its session document was rebuilt"),
            (report.finished, "a delete, restore or purge was finished"),
            (
                report.late,
                f"its session document had not followed {counted(report.late, 'record')}",
            ),
            (report.holes, f"documents are missing at {_some(report.holes)}"),
            (report.unreadable, f"events cannot be read at {_some(report.unreadable)}"),
        )
        if holds
    ]
    if told:
        line = f"{' / '.join(name)}: {'; '.join(told)}"
        style = "" if report.healthy else "red"
        out.print(clean(line), style=style, markup=False, soft_wrap=True)


def _some(places: list[int]) -> str:
    return ", ".join(map(str, places[:10])) + (" …" if len(places) > 10 else "")
