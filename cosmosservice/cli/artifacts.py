"""`cosmosservice artifacts …`: list, read, save and delete artifacts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cosmosservice.cli.completion import complete_session
from cosmosservice.cli.console import (
    Command,
    example,
    json_option,
    run,
    uri_option,
)


def some_scope(command: Command) -> Command:
    """--session, --app and --user, and --uri."""
    session = click.option(
        "--session",
        "session_id",
        metavar="ID",
        help="Id of the session. Not needed for user: names.",
        shell_complete=complete_session,
    )
    app = click.option(
        "--app", "app_name", metavar="APP", help="App name, if the id is not unique."
    )
    user = click.option(
        "--user", "user_id", metavar="USER", help="User id, if the session's id is not unique."
    )
    return session(app(user(uri_option(command))))


one_version = click.option(
    "--version", type=click.IntRange(0), help="Version to read. Default: the latest."
)
name_argument = click.argument("filename", metavar="NAME")


@click.group()
def artifacts() -> None:
    """List, read, save and delete artifacts.

    The id of a session is enough if no other app or user has a session with that id. Without
    --session, --app and --user name a user.
    """


@artifacts.command("list", epilog=example("artifacts list --session s1"))
@some_scope
@json_option
def list_(uri: str | None, as_json: bool, **scope: Any) -> None:
    """List the artifacts of a session and of its user."""
    from cosmosservice.cli import artifact_work

    run(artifact_work.list_artifacts(uri, scope, as_json=as_json))


@artifacts.command(epilog=example("artifacts versions --session s1 tea.png"))
@some_scope
@name_argument
@json_option
def versions(uri: str | None, filename: str, as_json: bool, **scope: Any) -> None:
    """List the versions of an artifact."""
    from cosmosservice.cli import artifact_work

    run(artifact_work.versions(uri, scope | {"filename": filename}, as_json=as_json))


@artifacts.command(epilog=example("artifacts get --session s1 tea.png -o tea.png"))
@some_scope
@name_argument
@one_version
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Output file. Default: stdout.",
)
def get(
    uri: str | None, filename: str, version: int | None, output: Path | None, **scope: Any
) -> None:
    """Write the bytes of an artifact to a file or to stdout."""
    from cosmosservice.cli import artifact_work

    run(artifact_work.get(uri, scope | {"filename": filename, "version": version}, output))


@artifacts.command(epilog=example("artifacts put --app greeter --user ada --session s1 tea.png"))
@some_scope
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--name", "filename", help="Name of the artifact. Default: that of the file.")
@click.option("--mime-type", help="Default: guessed from the name.")
@json_option
def put(
    uri: str | None,
    file: Path,
    filename: str | None,
    mime_type: str | None,
    as_json: bool,
    **scope: Any,
) -> None:
    """Save a file as the next version of an artifact."""
    from cosmosservice.cli import artifact_work

    name = filename or file.name
    run(artifact_work.put(uri, scope | {"filename": name}, file, mime_type, as_json=as_json))


@artifacts.command(epilog=example("artifacts delete --session s1 tea.png"))
@some_scope
@name_argument
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def delete(uri: str | None, filename: str, yes: bool, **scope: Any) -> None:
    """Delete all versions of an artifact for good."""
    from cosmosservice.cli import artifact_work

    if not yes:
        click.confirm(f"Delete all versions of {filename!r} for good?", abort=True, err=True)
    run(artifact_work.delete(uri, scope | {"filename": filename}))


@artifacts.command(epilog=example("artifacts sweep"))
@uri_option
@json_option
def sweep(uri: str | None, as_json: bool) -> None:
    """Remove what interrupted saves and deletes left behind.

    Nothing that is in use is removed. Uploads interrupted less than a day ago stay.
    """
    from cosmosservice.cli import artifact_work

    run(artifact_work.sweep(uri, as_json=as_json))
