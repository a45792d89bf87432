"""The commands that prepare an account, and what ADK needs to find it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from cosmosservice.cli import provision
from cosmosservice.cli.console import (
    FAILED,
    Problem,
    UsageProblem,
    example,
    json_option,
    out,
    print_json,
    run,
    settings_of,
    uri_option,
)
from cosmosservice.cli.layout import Folded
from cosmosservice.containers import CONTAINERS

if TYPE_CHECKING:
    from cosmosservice.account.definitions import ContainerDefinition
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


@click.command(epilog=example("doctor", "doctor --uri cosmosdb://embedded/sessions.db"))
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
    last: Finding | None = None
    async for finding in examine(settings_of(uri, existing=True)):
        healthy = healthy and finding.status != "fail"
        if as_json:
            print_json(finding._asdict())
            continue
        if last is not None and last.advice != finding.advice:
            _print_advice(last)
        mark, style = MARKS[finding.status]
        label = Text.assemble((f"{mark} ", style), (finding.check.ljust(CHECK), "bold"), " ")
        out.print(Folded(Text(finding.found), label.cell_len, label), soft_wrap=True)
        last = finding
    if last is not None:
        _print_advice(last)
    return healthy


def _print_advice(finding: Finding) -> None:
    """Below the last of several findings that have the same advice."""
    if finding.advice:
        advice = Text(f"→ {finding.advice}", MARKS[finding.status][1])
        out.print(Folded(advice, CHECK + 3), soft_wrap=True)


@click.command(epilog=example("init", "init --update", "init --print az"))
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
@click.option(
    "--vectors",
    default=0,
    metavar="DIMENSIONS",
    type=click.IntRange(0, 4096),
    help="Let memories have vectors of so many dimensions: those of your embedder.",
)
@uri_option
def init(form: str | None, update: bool, vectors: int, uri: str | None) -> None:
    """Create the database and the containers, or print how.

    An existing container is left unchanged, or repaired with --update. Its partition key, and
    the vector policy of memories, are fixed when it is created.
    """
    settings = settings_of(uri)
    if form is not None:
        if settings.embedded_path is not None:
            raise UsageProblem("The embedded emulator needs no deployment: run without --print.")
        if form == "bicep":  # describes the desired state: it creates and updates
            click.echo(provision.bicep(settings, vectors=vectors))
        else:
            click.echo(provision.az_commands(settings, update=update, vectors=vectors))
        return
    if settings.key is None and settings.embedded_path is None:
        raise UsageProblem(
            "Entra ID may not create databases and containers through the data plane. Have"
            " somebody run what `cosmosservice init --print az` or `--print bicep` prints."
        )
    run(_create(uri, provision.definitions(vectors), update=update))
    names = ", ".join(each.name(settings) for each in CONTAINERS)
    click.echo(f"Database {settings.database} has the containers {names}.", err=True)


async def _create(
    uri: str | None, definitions: Sequence[ContainerDefinition], *, update: bool
) -> None:
    from cosmosservice.account.account import CosmosAccount

    async with CosmosAccount(uri=uri, ensure="create") as account:
        if update:
            for name, wrong in (await account.update_containers(definitions)).items():
                for each in wrong:
                    click.echo(f"Repaired container {name}: {each}", err=True)
        await account.open_containers(definitions)


@click.command("init-agent", epilog=example("init-agent my_agents"))
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
    uris = {"session": f"{uri}?remember=true", "memory": uri, "artifact": uri}
    services = [f"--{each}_service_uri={of}" for each, of in uris.items()]
    return shlex.join(["adk", "run" if one else "web", *services, str(folder)])
