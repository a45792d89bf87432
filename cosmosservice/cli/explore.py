"""`cosmosservice explore`: serves the page until Ctrl-C, or writes it to files."""

from __future__ import annotations

import asyncio
import contextlib
import webbrowser
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from cosmosservice import CosmosSessionService
from cosmosservice.account.account import CosmosAccount
from cosmosservice.cli.console import Problem, UsageProblem, counted, run, settings_of

if TYPE_CHECKING:
    from cosmosservice.explore.meter import Meter
    from cosmosservice.explore.static_site import StaticSite

_NAMED: Final = 20  # sessions that are named before an export


class Chosen(NamedTuple):
    """Which sessions an export has."""

    app_name: str | None
    user_id: str | None
    session_id: str | None
    limit: int


async def explore(uri: str | None, *, port: int, write: bool, browser: bool) -> None:
    async with _opened(uri) as (service, meter):
        from cosmosservice.explore.dependants import Dependants
        from cosmosservice.explore.server import Explorer

        explorer = Explorer(service, meter, await Dependants.on(service.account), write=write)
        try:
            async with explorer.served(port) as address:
                click.echo(address)
                click.echo("Ctrl-C ends it.", err=True)
                if browser:
                    webbrowser.open(address)
                await asyncio.Event().wait()
        except OSError as problem:
            raise Problem(f"Port {port} cannot be used: {problem.strerror}.") from None


def export(uri: str | None, folder: Path, chosen: Chosen, *, yes: bool) -> None:
    """Shows what the files contain, and asks, before it writes them."""
    if folder.exists() and any(folder.iterdir()):
        raise UsageProblem(f"{folder} is not empty. Name a new folder.")
    site = run(_read(uri, chosen))
    _describe(site, folder)
    if not yes:
        click.confirm("Write it?", abort=True)
    site.write(folder)
    click.echo(folder / "index.html")


async def _read(uri: str | None, chosen: Chosen) -> StaticSite:
    async with _opened(uri) as (service, meter):
        from cosmosservice.explore.catalogue import Catalogue, Search
        from cosmosservice.explore.dependants import Dependants
        from cosmosservice.explore.rendering import Static
        from cosmosservice.explore.static_site import static_site

        app, user, session, limit = chosen
        found = await Catalogue(service).find(Search(app, user, text=session or ""), limit)
        rows = [row for row in found.rows if session in (None, row.key.session_id)]
        if not rows:
            raise Problem("No session matches. Nothing was written.")
        narrow = app or user or session
        wanted = Static(rows[:limit], with_users=not session, with_all=not narrow)
        return await static_site(service, meter, await Dependants.on(service.account), wanted)


def _describe(site: StaticSite, folder: Path) -> None:
    """Says what is in an export."""
    from cosmosservice.cli.timeline import clean
    from cosmosservice.explore.texts import size

    lines = [f"{counted(len(site.sessions), 'session')} with {counted(site.events, 'event')}:"]
    lines += [f"  {' / '.join(row.key.name)}  {row.title}" for row in site.sessions[:_NAMED]]
    if len(site.sessions) > _NAMED:
        lines.append(f"  and {len(site.sessions) - _NAMED} more")
    lines.append("messages, tool calls, state and stored documents of each event")
    if site.users:
        users = counted(site.users, "user")
        lines.append(f"state, latest sessions, newest memories and artifacts of {users}")
    if site.artifacts:
        lines.append(f"{counted(site.artifacts, 'artifact')}, {size(site.artifact_bytes)}")
    lines.append(f"together {counted(len(site.files), 'file')}, {size(site.size)}, in {folder}")
    for line in lines:
        click.echo(clean(line), err=True)
    click.echo("Nothing is left out or masked: whoever has the files can read all of it.", err=True)


@contextlib.asynccontextmanager
async def _opened(uri: str | None) -> AsyncIterator[tuple[CosmosSessionService, Meter]]:
    """Errors are reported here, not in the browser."""
    try:
        from cosmosservice.explore.catalogue import Catalogue, Search
        from cosmosservice.explore.meter import Meter
        from cosmosservice.explore.server import Explorer  # noqa: F401  needs all of it
    except ModuleNotFoundError as missing:
        if missing.name not in ("jinja2", "markupsafe", "markdown_it"):
            raise
        reason = f"The page needs {missing.name}: pip install 'cosmosservice[explore]'."
        raise UsageProblem(reason) from None
    settings_of(uri, existing=True)
    meter = Meter()
    async with CosmosAccount(uri=uri, ensure="verify", on_request_charge=meter.charged) as account:
        service = CosmosSessionService(account=account)
        await Catalogue(service).find(Search(), 1)
        yield service, meter
