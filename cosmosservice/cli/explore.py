"""`cosmosservice explore`: serves the page to look at sessions, until Ctrl-C."""

from __future__ import annotations

import asyncio
import webbrowser

import click

from cosmosservice import CosmosSessionService
from cosmosservice.account.account import CosmosAccount
from cosmosservice.cli.console import Problem, UsageProblem, settings_of


async def explore(uri: str | None, *, port: int, write: bool, browser: bool) -> None:
    try:
        from cosmosservice.explore.server import Explorer
    except ModuleNotFoundError as missing:
        if missing.name not in ("jinja2", "markupsafe"):
            raise
        reason = f"The page needs {missing.name}: pip install 'cosmosservice[explore]'."
        raise UsageProblem(reason) from None
    from cosmosservice.explore.catalogue import Catalogue, Search
    from cosmosservice.explore.companions import Companions
    from cosmosservice.explore.meter import Meter

    settings_of(uri, existing=True)
    meter = Meter()
    async with CosmosAccount(uri=uri, ensure="verify", on_request_charge=meter.charged) as account:
        service = CosmosSessionService(account=account)
        await Catalogue(service).find(Search(), 1)  # errors are reported here, not in the browser
        explorer = Explorer(service, meter, await Companions.on(account), write=write)
        try:
            async with explorer.served(port) as address:
                click.echo(address)
                click.echo("Ctrl-C ends it.", err=True)
                if browser:
                    webbrowser.open(address)
                await asyncio.Event().wait()
        except OSError as problem:
            raise Problem(f"Port {port} cannot be used: {problem.strerror}.") from None
