"""`cosmosservice sessions …`: inspect, move, delete and restore sessions."""

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
    """Inspect, move, delete and restore sessions."""


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
@click.option("--at", metavar="POINT", help="As it was then: a revision, an event's id, a time.")
@json_option
def show(uri: str | None, at: str | None, as_json: bool, **name: str) -> None:
    """Show a session as a timeline.

    Who said what, tool calls with arguments and results, state, tokens, time between events.
    """
    if at is not None:
        from cosmosservice.cli import history_work

        run(history_work.show_at(uri, SessionName(**name), at, as_json=as_json))
        return
    from cosmosservice.cli import session_work

    run(session_work.show(uri, SessionName(**name), as_json=as_json))


@sessions.command()
@one_session
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@json_option
def diff(uri: str | None, first: str, second: str, as_json: bool, **name: str) -> None:
    """Show what changed in a session's state from point A to point B.

    A point is a revision (0: before the first event), the id of an event, or a time.
    """
    from cosmosservice.cli import history_work

    run(history_work.diff(uri, SessionName(**name), first, second, as_json=as_json))


@sessions.command()
@one_session
@click.option("--at", metavar="POINT", help="Up to there: a revision, an event's id, a time.")
@click.option("--new-session", "new_session_id", help="Its id; a new one if left out.")
@click.option("--new-user", "new_user_id", help="For another user.")
@json_option
def fork(
    uri: str | None,
    at: str | None,
    new_session_id: str | None,
    new_user_id: str | None,
    as_json: bool,
    **name: str,
) -> None:
    """Make a new session with the same history up to a point, and print its id."""
    from cosmosservice.cli import history_work

    run(
        history_work.fork(
            uri,
            SessionName(**name),
            at=at,
            new_session_id=new_session_id,
            new_user_id=new_user_id,
            as_json=as_json,
        )
    )


@sessions.command()
@click.option("--app", "app_name", required=True, help="Name of the app.")
@some_user
@click.argument("session_id", metavar="[SESSION]", required=False)
@click.option(
    "--since",
    metavar="now|beginning|CONTINUATION",
    help="Where to begin. Default: now, for a SESSION after its --last events.",
)
@click.option(
    "--last",
    default=10,
    show_default=True,
    type=click.IntRange(0),
    help="Events of the SESSION to begin with, without --since.",
)
@click.option(
    "--interval",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="Seconds between two reads.",
)
@uri_option
@json_option
def tail(uri: str | None, app_name: str, user_id: str | None, **options: Any) -> None:
    """Follow the events of an app as they come, until Ctrl-C.

    Of an app, of a --user, or of one SESSION. Deletes, restores and purges are shown, too. With
    --json every line has the continuation from which --since goes on.
    """
    from cosmosservice.cli import tailing

    if options["session_id"] is not None and user_id is None:
        raise click.UsageError("A SESSION needs the --user to whom it belongs.")
    with contextlib.suppress(KeyboardInterrupt):
        run(tailing.tail(uri, app_name, user_id, **options))


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
    """Put exported sessions into a store. Run again, it continues where it stopped."""
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
        raise click.UsageError("Name one SESSION, or give --all or --deleted.")
    if deleted:
        what = f"all sessions that were deleted more than {older_than} ago"
        purging = work.purge_deleted(uri, app_name, older_than)
    elif app_name is None or user_id is None:
        raise click.UsageError("Name the app and the user: --app, --user.")
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
    help="Continue without large events whose body is missing, and their state changes.",
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
    """Bring session documents in line with their logs, and report damage.

    One session, or all of them. It writes: late documents, interrupted deletes and purges, lost
    places. Readers repair what they find, so there is no need to run it regularly.
    """
    from cosmosservice.cli import session_work

    if session_id is not None and (app_name is None or user_id is None):
        raise click.UsageError("Name the app and the user: --app, --user.")
    work = session_work.repair(
        uri, app_name, user_id, session_id, accept_loss=accept_loss, as_json=as_json
    )
    if not run(work):
        sys.exit(FAILED)
