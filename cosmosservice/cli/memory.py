"""`cosmosservice memory …`: search, list, add and delete memories."""

from __future__ import annotations

import contextlib
import datetime
import sys
from collections.abc import Callable
from typing import Any

import click

from cosmosservice.cli.completion import complete_session
from cosmosservice.cli.console import (
    FAILED,
    Command,
    example,
    interval_option,
    json_option,
    run,
    uri_option,
)


def one_user(command: Command) -> Command:
    """--app and --user, and --uri."""
    app = click.option("--app", "app_name", metavar="APP", required=True, help="Name of the app.")
    user = click.option("--user", "user_id", metavar="USER", required=True, help="Id of the user.")
    return app(user(uri_option(command)))


def user_or_session(help_: str) -> Callable[[Command], Command]:
    """--session, which is enough if its id is unique, or --app and --user; and --uri."""

    def decorated(command: Command) -> Command:
        session = click.option(
            "--session", "session_id", metavar="ID", help=help_, shell_complete=complete_session
        )
        app = click.option("--app", "app_name", metavar="APP", help="Name of the app.")
        user = click.option("--user", "user_id", metavar="USER", help="Id of the user.")
        return app(user(session(uri_option(command))))

    return decorated


def moment(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> datetime.datetime | None:
    """`2026-05-01`, `2026-05-01T10:30`: local time, unless the text has a time zone."""
    if value is None:
        return None
    try:
        return datetime.datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(
            "must be a date or a time in ISO 8601: 2026-05-01, 2026-05-01T10:30.",
            context,
            parameter,
        ) from None


@click.group()
def memory() -> None:
    """Search, list, add and delete memories."""


@memory.command(epilog=example('memory search --app greeter --user ada "favourite tea"'))
@click.argument("query")
@user_or_session("Only this session. Its id is enough if it is unique.")
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1))
@click.option("--author", help="Only what this author said.")
@click.option("--since", callback=moment, help="Only what was said at this time or later.")
@click.option("--until", callback=moment, help="Only what was said at this time or earlier.")
@json_option
def search(uri: str | None, as_json: bool, **options: Any) -> None:
    """Search memories as an agent would, best matches first."""
    from cosmosservice.cli import memory_work

    run(memory_work.search(uri, as_json=as_json, **options))


@memory.command("list", epilog=example("memory list --app greeter --user ada --limit 10"))
@user_or_session("Only this session. Its id is enough if it is unique.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1))
@json_option
def list_(uri: str | None, limit: int, as_json: bool, **options: Any) -> None:
    """List the memories of a user or of a session, the latest first."""
    from cosmosservice.cli import memory_work

    run(memory_work.latest(uri, limit=limit, as_json=as_json, **options))


@memory.command(epilog=example('memory add --app greeter --user ada "Ada likes green tea"'))
@click.argument("text")
@one_user
@click.option("--author", help="Who said it.")
@click.option("--ttl", type=click.IntRange(1), help="Delete it after this many seconds.")
def add(
    uri: str | None, text: str, app_name: str, user_id: str, author: str | None, ttl: int | None
) -> None:
    """Add TEXT to the memories of a user."""
    from cosmosservice.cli import memory_work

    run(memory_work.add(uri, text, app_name, user_id, author=author, ttl=ttl))


@memory.command(epilog=example("memory forget --app greeter --user ada 50bf6c52-9ca3"))
@click.argument("memory_id", metavar="[MEMORY]", required=False)
@user_or_session("Erase all memories of this session. Its id is enough if it is unique.")
@click.option("--all", "everything", is_flag=True, help="Erase all memories of the user.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def forget(
    uri: str | None,
    memory_id: str | None,
    app_name: str | None,
    user_id: str | None,
    session_id: str | None,
    everything: bool,
    yes: bool,
) -> None:
    """Delete one MEMORY, those of a session, or all of a user.

    A deleted MEMORY does not come back when its session is added again.
    """
    from cosmosservice.cli import memory_work

    if [memory_id is not None, session_id is not None, everything].count(True) != 1:
        raise click.UsageError("Name one MEMORY, or give --session or --all.")
    app_name, user_id = run(memory_work.owner(uri, app_name, user_id, session_id))
    if memory_id is not None:
        if not run(memory_work.forget(uri, app_name, user_id, memory_id)):
            sys.exit(FAILED)
        return
    what = f"session {session_id!r}" if session_id is not None else "ALL sessions"
    if not yes:
        click.confirm(
            f"Erase the memories of {what} of user {user_id!r} for good?", abort=True, err=True
        )
    run(memory_work.purge(uri, app_name, user_id, session_id))


@memory.command(epilog=example("memory follow --app greeter"))
@click.option(
    "--app", "app_name", metavar="APP", help="Name of the app. Not needed for a --session."
)
@click.option("--user", "user_id", metavar="USER", help="Only this user.")
@click.option(
    "--session",
    "session_id",
    metavar="ID",
    help="Only this session. Its id is enough if it is unique.",
    shell_complete=complete_session,
)
@click.option("--once", is_flag=True, help="Stop when all existing events are added.")
@click.option(
    "--since",
    type=click.Choice(["beginning", "now"]),
    help="Where to begin. Default: where the last run stopped, or at the beginning.",
)
@interval_option
@click.option(
    "--embedder", metavar="MODULE:NAME", help="The embedder of the memory service, if it has one."
)
@uri_option
@json_option
def follow(
    uri: str | None,
    app_name: str | None,
    user_id: str | None,
    session_id: str | None,
    **options: Any,
) -> None:
    """Add new events of sessions to memory, until Ctrl-C.

    It follows an app, a --user or one --session. It continues where it stopped, even after a crash:
    nothing is stored twice. With --json it reports what was done, line by line.
    """
    from cosmosservice.cli import following, memory_work

    if session_id is not None:
        app_name, user_id = run(memory_work.owner(uri, app_name, user_id, session_id))
    if app_name is None:
        raise click.UsageError("Name a --session, or give --app.")
    with contextlib.suppress(KeyboardInterrupt):
        run(following.follow(uri, user_id, session_id, app_name=app_name, **options))


@memory.command(epilog=example("memory embed --embedder my_agent.embedding:embed"))
@click.option("--app", "app_name", metavar="APP", help="Only this app. Needs --user.")
@click.option("--user", "user_id", metavar="USER", help="Only this user. Needs --app.")
@click.option(
    "--embedder",
    required=True,
    metavar="MODULE:NAME",
    help="The embedder of the service, such as my_agent.embedding:embed.",
)
@uri_option
def embed(uri: str | None, app_name: str | None, user_id: str | None, embedder: str) -> None:
    """Compute missing vectors.

    A vector is missing if the embedder failed when its memory was added.
    """
    from cosmosservice.cli import memory_work

    if (app_name is None) != (user_id is None):
        raise click.UsageError("Give both --app and --user, or neither.")
    if not run(memory_work.embed(uri, app_name, user_id, embedder)):
        sys.exit(FAILED)
