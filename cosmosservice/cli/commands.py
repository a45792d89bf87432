"""The commands of `cosmosservice`."""

from __future__ import annotations

import contextlib
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from cosmosservice.account.settings import EMBEDDED_DATABASE, PREFIX
from cosmosservice.cli import provision
from cosmosservice.cli.artifacts import artifacts
from cosmosservice.cli.console import (
    FAILED,
    Commands,
    Problem,
    UsageProblem,
    example,
    interruptible,
    json_option,
    out,
    print_json,
    run,
    settings_of,
    uri_option,
)
from cosmosservice.cli.layout import Folded, print_table
from cosmosservice.cli.memory import memory
from cosmosservice.cli.sessions import sessions
from cosmosservice.containers import CONTAINERS

if TYPE_CHECKING:
    from cosmosservice.cli.doctor import Finding

SERVICES_PY = """\
# Registers the scheme cosmosdb:// for --session_service_uri, --memory_service_uri and
# --artifact_service_uri.
import cosmosservice.adk  # noqa: F401
"""
SERVICES_YAML = """\
services:
  - scheme: cosmosdb
    type: session
    class: cosmosservice.adk.session_service
  - scheme: cosmosdb
    type: artifact
    class: cosmosservice.adk.artifact_service
  - scheme: cosmosdb
    type: memory
    class: cosmosservice.adk.memory_service
"""
CHECK = 20  # width of the name of a check
MARKS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "bold red")}


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


@cli.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def emulator(options: tuple[str, ...]) -> None:
    """Serve the Cosmos DB emulator on this machine, until Ctrl-C.

    It prints what to set in the shells that use it.
    """
    try:
        from cosmos_emulator.__main__ import main
    except ModuleNotFoundError as missing:
        reason = f"The emulator needs {missing.name}: pip install 'cosmosservice[emulator]'."
        raise UsageProblem(reason) from None
    name = "cosmosservice emulator"
    sys.argv = [name, *options]
    main(name, _announce)


def _announce(endpoint: str, key: str) -> None:
    settings = {"ENDPOINT": endpoint, "KEY": key, "DATABASE": EMBEDDED_DATABASE}
    for setting, value in settings.items():
        print(f"export {PREFIX}{setting}={shlex.quote(value)}", flush=True)
    click.echo("Paste these lines into the shell of your agent. Ctrl-C stops.", err=True)


@cli.command(epilog=example("doctor", "doctor --uri cosmosdb://embedded/sessions.db"))
@uri_option
@json_option
def doctor(uri: str | None, as_json: bool) -> None:
    """Check everything that the store needs, and say how to fix it.

    Settings, versions, connection, write regions, containers, indexing, access and latency.
    """
    if not run(_doctor(uri, as_json)):
        sys.exit(FAILED)


async def _doctor(uri: str | None, as_json: bool) -> bool:
    from cosmosservice.cli.doctor import examine

    healthy = True
    async for finding in examine(settings_of(uri, existing=True)):
        healthy = healthy and finding.status != "fail"
        if as_json:
            print_json(finding._asdict())
            continue
        out.print(_finding(finding), soft_wrap=True)
    return healthy


def _finding(finding: Finding) -> Folded:
    mark, style = MARKS[finding.status]
    found = Text(finding.found)
    if finding.advice:
        found.append(f"\n→ {finding.advice}", style)
    label = Text.assemble((f"{mark} ", style), (finding.check.ljust(CHECK), "bold"), " ")
    return Folded(found, label.cell_len, label)


@cli.command(epilog=example("init", "init --update", "init --print az"))
@click.option(
    "--print",
    "form",
    type=click.Choice(["az", "bicep"]),
    help="Change nothing: print commands or a template for an administrator.",
)
@click.option(
    "--update",
    is_flag=True,
    help="Repair the TTL setting and the indexing policy of existing containers.",
)
@uri_option
def init(form: str | None, update: bool, uri: str | None) -> None:
    """Create the database and the containers, or print how.

    An existing container is left unchanged, or repaired with --update. Its partition key, and
    the vector policy of memories, are fixed when it is created.
    """
    settings = settings_of(uri)
    if form is not None:
        if settings.embedded_path is not None:
            raise UsageProblem("The embedded emulator needs no deployment: run without --print.")
        if form == "bicep":  # describes the desired state: it creates and updates
            click.echo(provision.bicep(settings))
        else:
            click.echo(provision.az_commands(settings, update=update))
        return
    if settings.key is None and settings.embedded_path is None:
        raise UsageProblem(
            "Entra ID may not create databases and containers through the data plane. Have"
            " somebody run what `cosmosservice init --print az` or `--print bicep` prints."
        )
    run(_create(uri, update=update))
    names = ", ".join(each.name(settings) for each in CONTAINERS)
    click.echo(f"Database {settings.database} has the containers {names}.", err=True)


async def _create(uri: str | None, *, update: bool) -> None:
    from cosmosservice.account.account import CosmosAccount

    async with CosmosAccount(uri=uri, ensure="create") as account:
        if update:
            for name, wrong in (await account.update_containers(CONTAINERS)).items():
                for each in wrong:
                    click.echo(f"Repaired container {name}: {each}", err=True)
        await account.open_containers(CONTAINERS)


@cli.command("init-agent", epilog=example("init-agent my_agents"))
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--yaml", is_flag=True, help="Write services.yaml instead of services.py.")
def init_agent(folder: Path, yaml: bool) -> None:
    """Register the scheme cosmosdb:// for the agents in DIR.

    DIR is the folder of agents for `adk web` and `adk api_server`, and the agent's own folder for
    `adk run`.
    """
    name, text = ("services.yaml", SERVICES_YAML) if yaml else ("services.py", SERVICES_PY)
    if not folder.is_dir():
        raise UsageProblem(
            f"There is no folder {folder}. DIR is the folder that contains your agents, or for"
            " `adk run` the agent's own folder."
        )
    path = folder / name
    if path.exists() and "cosmosservice.adk" not in path.read_text(encoding="utf-8"):
        raise Problem(f"{path} exists. Add to it:\n\n{text}")
    if path.exists():
        click.echo(f"{path} registers cosmosdb:// already. Now run:", err=True)
    else:
        path.write_text(text, encoding="utf-8")
        click.echo(f"Wrote {path}. Now run:", err=True)
    click.echo(_adk_command(folder))


def _adk_command(folder: Path) -> str:
    """The command that starts the agents: `adk run` for one agent, `adk web` for several."""
    one = any(folder.joinpath(name).exists() for name in ("agent.py", "root_agent.yaml"))
    uri = "cosmosdb://embedded/sessions.db"
    services = [f"--{each}_service_uri={uri}" for each in ("session", "memory", "artifact")]
    return shlex.join(["adk", "run" if one else "web", *services, str(folder)])


@cli.command(epilog=example("explore --uri cosmosdb://embedded/sessions.db"))
@click.option(
    "--port",
    default=0,
    type=click.IntRange(0, 65535),
    help="Port to listen on. Default: any free port.",
)
@click.option("--write", is_flag=True, help="Allow forking sessions and erasing users.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser. Print the address only.")
@uri_option
def explore(uri: str | None, port: int, write: bool, no_browser: bool) -> None:
    """Look at sessions in the browser, until Ctrl-C.

    Only this machine can open the page, and it only reads. Its address contains a secret: anyone
    with the address can see all sessions.
    """
    from cosmosservice.cli import explore as work

    with contextlib.suppress(KeyboardInterrupt):
        run(work.explore(uri, port=port, write=write, browser=not no_browser))


@cli.command(
    epilog=example(
        "migrate sqlite:///session.db cosmosdb://myaccount.documents.azure.com/adk",
        "migrate --dry-run sqlite:///session.db file:///data/artifacts cosmosdb://embedded/new.db",
    )
)
@click.argument("source_uris", metavar="SOURCE_URI...", nargs=-1, required=True)
@click.argument("target_uri")
@click.option("--app", "apps", multiple=True, help="Only this app. Can be repeated.")
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

    It writes to its own session, in the app "cosmosservice-bench", and deletes it.
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
