"""`cosmosservice sessions …`: look at sessions, move them, delete them, bring them back."""

from __future__ import annotations

import contextlib
from typing import IO, Any

import click

from cosmosservice.cli.console import (
    Command,
    SessionName,
    json_option,
    run,
    uri_option,
)

some_app = click.option("--app", "app_name", help="Only of this app.")
some_user = click.option("--user", "user_id", help="Only of this user.")


def one_session(command: Command) -> Command:
    """--app, --user and SESSION, which together name one, and --uri."""
    app = click.option("--app", "app_name", required=True, help="Name of the app.")
    user = click.option("--user", "user_id", required=True, help="Id of the user.")
    session = click.argument("session_id", metavar="SESSION")
    return app(user(session(uri_option(command))))


@click.group()
def sessions() -> None:
    """Look at sessions, move them, delete them, bring them back."""


@sessions.command("list")
@some_app
@some_user
@click.option("--deleted", is_flag=True, help="Those that `restore` can bring back.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1))
@uri_option
@json_option
def list_(uri: str | None, app_name: str | None, user_id: str | None, **options: Any) -> None:
    """List sessions, the latest first."""
    from cosmosservice.cli import session_work

    run(session_work.list_sessions(uri, app_name, user_id, **options))


@sessions.command()
@one_session
@json_option
def show(uri: str | None, as_json: bool, **name: str) -> None:
    """Show one session as a timeline: who said what, tool calls, state, tokens, time."""
    from cosmosservice.cli import session_work

    run(session_work.show(uri, SessionName(**name), as_json=as_json))


@sessions.command()
@one_session
@click.option("--last", default=10, show_default=True, type=click.IntRange(0), help="Begin there.")
@click.option("--interval", default=1.0, show_default=True, help="Seconds between two looks.")
@json_option
def tail(uri: str | None, last: int, interval: float, as_json: bool, **name: str) -> None:
    """Follow the events of a session as they come, until Ctrl-C."""
    from cosmosservice.cli import session_work

    with contextlib.suppress(KeyboardInterrupt):
        run(
            session_work.tail(
                uri, SessionName(**name), last=last, interval=interval, as_json=as_json
            )
        )


@sessions.command()
@some_app
@some_user
@click.option("--session", "session_id", help="Only this one.")
@click.option("-o", "--output", type=click.File("wb"), default="-", help="A file; else stdout.")
@uri_option
def export(uri: str | None, output: IO[bytes], **chosen: str | None) -> None:
    """Write sessions with their events and state to a file, without loss."""
    from cosmosservice.cli import session_work

    run(session_work.export(uri, output=output, **chosen))


@sessions.command("import")
@click.argument("file", type=click.File("rb"))
@click.option("--dry-run", is_flag=True, help="Read everything, write nothing.")
@uri_option
@json_option
def import_(uri: str | None, file: IO[bytes], dry_run: bool, as_json: bool) -> None:
    """Put exported sessions into a store. Run again, it goes on where it stopped."""
    from cosmosservice.cli import session_work

    run(session_work.import_file(uri, file, dry_run=dry_run, as_json=as_json))


@sessions.command()
@one_session
def delete(uri: str | None, **name: str) -> None:
    """Delete a session. `restore` brings it back, `purge` removes what is left of it."""
    from cosmosservice.cli import session_work

    run(session_work.delete(uri, SessionName(**name)))
