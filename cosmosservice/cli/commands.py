"""The commands of `cosmosservice`."""

from __future__ import annotations

import contextlib
import datetime
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cosmosservice.account.settings import EMBEDDED_DATABASE, PREFIX
from cosmosservice.cli.artifacts import artifacts
from cosmosservice.cli.completion import complete_session
from cosmosservice.cli.console import (
    Commands,
    UsageProblem,
    age_or_none,
    example,
    interruptible,
    json_option,
    print_json,
    run,
    uri_option,
)
from cosmosservice.cli.layout import print_table
from cosmosservice.cli.memory import memory
from cosmosservice.cli.selftest import selftest
from cosmosservice.cli.sessions import sessions
from cosmosservice.cli.setup import doctor, init, init_agent

if TYPE_CHECKING:
    pass


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="cosmosservice")
def cli() -> None:
    """Sessions, memory and artifacts of ADK agents in Azure Cosmos DB.

    COSMOSDB_* in the environment or in .env, or --uri, say where they are.
    Exit codes: 0 success, 1 failure, 2 the command or the settings are wrong, 130 it was
    interrupted.
    """


cli.add_command(sessions)
cli.add_command(artifacts)
cli.add_command(memory)
cli.add_command(selftest)
for command in (doctor, init, init_agent):
    cli.add_command(command)


@cli.command(epilog=example("emulator --path data.db", "emulator --port 0 --lag 0-0.5"))
@click.option("--port", default=8081, show_default=True, help="Port to listen on. 0: any free one.")
@click.option("--path", metavar="FILE", help="SQLite file of the documents. Default: in memory.")
@click.option("--key", help="Master key in base64. Default: that of Microsoft's emulator.")
@click.option("--partitions", type=int, help="Physical partitions of each new container.")
@click.option(
    "--lag", metavar="SECONDS", help="How far replicas lag: 0.5, a range such as 0-0.5, or inf."
)
@click.option("--seed", type=int, help="Seed of the random lags.")
@click.option("--like", metavar="NAME", help="Behave as another server: vnext.")
@click.option("--serverless", is_flag=True, help="An account without provisioned throughput.")
@click.option(
    "--enforce-throughput",
    is_flag=True,
    help="Answer 429 beyond the request units per second that are provisioned.",
)
@click.option("--tls", metavar="FILE", help="Serve https. FILE has the certificate and its key.")
def emulator(**options: object) -> None:
    """Serve the Cosmos DB emulator on this machine, until Ctrl-C.

    It prints what to set in the shells that use it.
    """
    try:
        from cosmos_emulator.__main__ import main
    except ModuleNotFoundError as missing:
        reason = f"The emulator needs {missing.name}: pip install 'cosmosservice[emulator]'."
        raise UsageProblem(reason) from None
    name = "cosmosservice emulator"
    sys.argv = [name, *_as_arguments(options)]
    main(name, _announce)


def _as_arguments(options: Mapping[str, object]) -> Iterator[str]:
    for option, value in options.items():
        if value is not None and value is not False:
            yield f"--{option.replace('_', '-')}"
            if value is not True:
                yield str(value)


def _announce(endpoint: str, key: str) -> None:
    settings = {"ENDPOINT": endpoint, "KEY": key, "DATABASE": EMBEDDED_DATABASE}
    for setting, value in settings.items():
        print(f"export {PREFIX}{setting}={shlex.quote(value)}", flush=True)
    click.echo("Paste these lines into the shell of your agent. Ctrl-C stops.", err=True)


@cli.command(epilog=example("demo", "demo --short"))
@click.option("--short", is_flag=True, help="By itself, without the page.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser. Print the address only.")
def demo(short: bool, no_browser: bool) -> None:
    """Watch a conversation survive: kills, collisions, the past.

    It needs no account and no model, and shows the session in the browser as it grows. Keys kill a
    writer in the middle of a turn, let two collide, go back, fork, remember and erase. Without a
    terminal it plays by itself.
    """
    try:
        from cosmosservice.cli.demo.play import play
    except ModuleNotFoundError as missing:
        reason = f"The demo needs {missing.name}: pip install 'cosmosservice[explore]'."
        raise UsageProblem(reason) from None
    with contextlib.suppress(KeyboardInterrupt):
        run(play(short=short, browser=not no_browser))


@cli.command(
    epilog=example(
        "explore --uri cosmosdb://embedded/sessions.db", "explore --export report --session ID"
    )
)
@click.option(
    "--port",
    default=0,
    type=click.IntRange(0, 65535),
    help="Port to listen on. Default: any free port.",
)
@click.option(
    "--write", is_flag=True, help="Allow forking and editing sessions, and erasing users."
)
@click.option("--no-browser", is_flag=True, help="Do not open a browser. Print the address only.")
@click.option(
    "--export",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the pages to a new folder instead, to be read without a server.",
)
@click.option("--app", "app_name", metavar="APP", help="With --export: only this app.")
@click.option("--user", "user_id", metavar="USER", help="With --export: only this user.")
@click.option(
    "--session",
    "session_id",
    metavar="ID",
    help="With --export: only this session.",
    shell_complete=complete_session,
)
@click.option(
    "--limit",
    default=20,
    show_default=True,
    type=click.IntRange(1, 500),
    help="With --export: how many sessions, the newest first.",
)
@click.option("--yes", is_flag=True, help="With --export: do not ask before writing.")
@uri_option
def explore(
    uri: str | None,
    port: int,
    write: bool,
    no_browser: bool,
    folder: Path | None,
    app_name: str | None,
    user_id: str | None,
    session_id: str | None,
    limit: int,
    yes: bool,
) -> None:
    """Look at sessions in the browser, until Ctrl-C.

    Only this machine can open the page, and it only reads. Its address contains a secret: anyone
    with the address can see all sessions.

    With --export, it writes the pages to a folder, after it has said what they contain.
    """
    from cosmosservice.cli import explore as work

    if folder is not None:
        work.export(uri, folder, work.Chosen(app_name, user_id, session_id, limit), yes=yes)
        return
    if app_name or user_id or session_id:
        raise click.UsageError("--app, --user and --session belong to --export.")
    with contextlib.suppress(KeyboardInterrupt):
        run(work.explore(uri, port=port, write=write, browser=not no_browser))


@cli.command(
    epilog=example(
        "migrate sqlite:///session.db cosmosdb://embedded/new.db",
        "migrate --dry-run file:///data cosmosdb://embedded/new.db",
    )
)
@click.argument("source_uris", metavar="SOURCE_URI...", nargs=-1, required=True)
@click.argument("target_uri")
@click.option("--app", "apps", metavar="APP", multiple=True, help="Only this app. Can be repeated.")
@click.option("--dry-run", is_flag=True, help="Read everything, write nothing.")
@json_option
def migrate(
    source_uris: tuple[str, ...],
    target_uri: str,
    apps: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
) -> None:
    """Copy sessions, memories and artifacts into a store.

    Everything in each SOURCE_URI is copied to TARGET_URI. A source is what `adk web` takes for a
    service: sqlite:// (sessions, memories, or both), postgresql+asyncpg:// (sessions), file://
    (artifacts), cosmosdb:// (all three). The target is cosmosdb://. Ids, timestamps, order and
    state are kept. A second run continues where the first stopped. If the source is an account
    with its own key, put the key into COSMOSDB_SOURCE_KEY.
    """
    from cosmosservice.cli import migrate as work

    migration = work.Migrate(target_uri, list(apps), dry_run=dry_run)
    with interruptible(lambda: migration.report.interrupted):
        report = run(migration.run(source_uris))
    work.print_report(report, dry_run=dry_run, as_json=as_json)


@cli.command(epilog=example("usage", "usage --app shop --by user --since 30d"))
@click.option("--app", "app_name", metavar="APP", help="Only this app.")
@click.option("--user", "user_id", metavar="USER", help="Only this user.")
@click.option(
    "--since",
    callback=age_or_none,
    metavar="AGE",
    help="Only the events of the last days or hours: 30d, 12h.",
)
@click.option(
    "--by",
    type=click.Choice(["app", "user", "session"]),
    default="app",
    show_default=True,
    help="One row for each.",
)
@uri_option
@json_option
def usage(
    app_name: str | None,
    user_id: str | None,
    since: datetime.timedelta | None,
    by: str,
    uri: str | None,
    as_json: bool,
) -> None:
    """Show turns, tokens and request units.

    Tokens are those that the events report. Request units are an estimate of what storing the
    events has cost. Deleted sessions count until they are purged.
    """
    from cosmosservice.cli.usage_work import show_usage

    run(show_usage(uri, app_name, user_id, since, by, as_json=as_json))


@cli.command(epilog=example("bench --turns 100"))
@click.option("--turns", default=25, show_default=True, type=click.IntRange(1))
@click.option(
    "--peers",
    is_flag=True,
    help="Compare with ADK's other session services instead, as make bench does.",
)
@uri_option
@json_option
def bench(turns: int, peers: bool, uri: str | None, as_json: bool) -> None:
    """Measure a conversation on the store: time and request units.

    It writes to its own sessions, in the app "cosmosservice-bench", and erases them for good.
    """
    if peers:
        from cosmosservice.cli.bench import beside_peers

        sys.exit(beside_peers(as_json=as_json))
    rows = run(_bench(turns, uri))
    if as_json:
        print_json(rows)
        return
    print_table(
        ("operation", "count", "median ms", "slowest ms", "RU each"),
        (
            (
                row["operation"],
                f"{row['count']:,}",
                *(f"{row[name]:,.2f}" for name in ("p50_ms", "max_ms", "request_units")),
            )
            for row in rows
        ),
    )


async def _bench(turns: int, uri: str | None) -> list[dict[str, Any]]:
    from cosmosservice import CosmosSessionService
    from cosmosservice.cli.bench import Bench

    measured = Bench()
    async with CosmosSessionService(uri=uri, on_request_charge=measured.charged) as service:
        await measured.run(service, turns)
    return measured.rows()
