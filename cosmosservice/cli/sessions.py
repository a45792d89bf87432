"""`cosmosservice sessions …`: look at sessions, move them, delete them, bring them back."""

from __future__ import annotations

import contextlib
import datetime
import sys
from typing import IO, Any

import click

from cosmosservice.cli.console import (
    FAILED,
    Command,
    SessionName,
    age,
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
@click.option("--continue", "continuation", metavar="TOKEN", help="Go on where a list ended.")
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
    """Show a session as a timeline.

    Who said what, tool calls with arguments and results, state, tokens, time between events.
    """
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
    """Write sessions to a file, without loss."""
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


@sessions.command()
@one_session
def restore(uri: str | None, **name: str) -> None:
    """Bring a deleted session back as it was."""
    from cosmosservice.cli import session_work

    run(session_work.restore(uri, SessionName(**name)))


@sessions.command()
@some_app
@some_user
@click.argument("session_id", metavar="[SESSION]", required=False)
@click.option("--all", "whole_user", is_flag=True, help="All sessions of the user.")
@click.option("--include-state", is_flag=True, help="With --all: the user's state as well.")
@click.option("--deleted", is_flag=True, help="All deleted sessions, of --app or of all apps.")
@click.option(
    "--older-than",
    metavar="AGE",
    default="30d",
    show_default=True,
    callback=age,
    help="With --deleted: deleted before that, such as 12h or 90d.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@uri_option
def purge(
    uri: str | None,
    app_name: str | None,
    user_id: str | None,
    session_id: str | None,
    whole_user: bool,
    include_state: bool,
    deleted: bool,
    older_than: datetime.timedelta,
    yes: bool,
) -> None:
    """Erase sessions for good.

    One SESSION, --all of a user, or those that were --deleted long ago.
    """
    from cosmosservice.cli import session_work as work

    if [session_id is not None, whole_user, deleted].count(True) != 1:
        raise click.UsageError("Name one SESSION, or say --all, or --deleted.")
    if deleted:
        what = f"all sessions that were deleted more than {older_than} ago"
        purging = work.purge_deleted(uri, app_name, older_than)
    elif app_name is None or user_id is None:
        raise click.UsageError("Say whose: --app and --user.")
    elif session_id is not None:
        what = f"session {session_id!r} of user {user_id!r}"
        purging = work.purge_session(uri, SessionName(app_name, user_id, session_id))
    else:
        what = f"ALL sessions of user {user_id!r}" + (" and the user's state" * include_state)
        purging = work.purge_user(uri, app_name, user_id, include_state=include_state)
    with contextlib.closing(purging):
        if not yes:
            click.confirm(f"Erase {what} for good?", abort=True, err=True)
        run(purging)


@sessions.command()
@some_app
@some_user
@click.argument("session_id", metavar="[SESSION]", required=False)
@click.option(
    "--accept-loss",
    is_flag=True,
    help="Go on without large events whose body is missing, and what they changed in the state.",
)
@uri_option
@json_option
def repair(
    uri: str | None,
    app_name: str | None,
    user_id: str | None,
    session_id: str | None,
    accept_loss: bool,
    as_json: bool,
) -> None:
    """Bring session documents in line with their logs.

    Says what is wrong. One session, or all of them. Readers repair what they meet: this is for
    looking.
    """
    from cosmosservice.cli import session_work

    if session_id is not None and (app_name is None or user_id is None):
        raise click.UsageError("Say whose: --app and --user.")
    work = session_work.repair(
        uri, app_name, user_id, session_id, accept_loss=accept_loss, as_json=as_json
    )
    if not run(work):
        sys.exit(FAILED)
