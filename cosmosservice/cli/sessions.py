"""`cosmosservice sessions …`: inspect, move, delete and restore sessions."""

from __future__ import annotations

import contextlib
import datetime
import sys
from typing import IO, Any

import click

from cosmosservice.cli.completion import complete_session
from cosmosservice.cli.console import (
    FAILED,
    Command,
    GivenName,
    age,
    example,
    interruptible,
    interval_option,
    json_option,
    run,
    uri_option,
)

some_app = click.option("--app", "app_name", metavar="APP", help="Only this app.")
some_user = click.option("--user", "user_id", metavar="USER", help="Only this user.")
maybe_session = click.argument(
    "session_id", metavar="[SESSION]", required=False, shell_complete=complete_session
)
a_point = "a revision, the id of an event, or a time such as 2026-05-01T10:30."


def one_session(command: Command) -> Command:
    """SESSION, with --app and --user if its id is not unique, and --uri."""
    app = click.option(
        "--app", "app_name", metavar="APP", help="App name, if the id is not unique."
    )
    user = click.option(
        "--user", "user_id", metavar="USER", help="User id, if the session's id is not unique."
    )
    session = click.argument("session_id", metavar="SESSION", shell_complete=complete_session)
    return app(user(session(uri_option(command))))


@click.group()
def sessions() -> None:
    """Inspect, move, delete and restore sessions.

    A SESSION is named by its id. If several apps or users have a session with that id, --app and
    --user say which one.
    """


@sessions.command("list", epilog=example("sessions list --app greeter --limit 20"))
@some_app
@some_user
@click.option(
    "--deleted", is_flag=True, help="List deleted sessions instead. `restore` brings them back."
)
@click.option(
    "--limit",
    default=50,
    show_default=True,
    type=click.IntRange(1),
    help="Maximum number of sessions.",
)
@click.option("--continue", "continuation", metavar="TOKEN", help="Continue a previous list.")
@uri_option
@json_option
def list_(uri: str | None, app_name: str | None, user_id: str | None, **options: Any) -> None:
    """List sessions, the latest first."""
    from cosmosservice.cli import session_work

    run(session_work.list_sessions(uri, app_name, user_id, **options))


@sessions.command(epilog=example("sessions show first --last 10"))
@one_session
@click.option("--at", metavar="POINT", help=f"Show it as it was at {a_point}")
@click.option("--last", metavar="N", type=click.IntRange(1), help="Only the last N events.")
@json_option
def show(uri: str | None, at: str | None, last: int | None, as_json: bool, **name: Any) -> None:
    """Show a session as a timeline.

    Who said what, tool calls with arguments and results, state, tokens, time between events.
    """
    if at is not None:
        from cosmosservice.cli import history_work

        run(history_work.show_at(uri, GivenName(**name), at, last=last, as_json=as_json))
        return
    from cosmosservice.cli import session_work

    run(session_work.show(uri, GivenName(**name), last=last, as_json=as_json))


@sessions.command(epilog=example("sessions diff first 0 12"))
@one_session
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@json_option
def diff(uri: str | None, first: str, second: str, as_json: bool, **name: Any) -> None:
    """Show what changed in a session's state from point A to point B.

    A point is a revision (0: before the first event), the id of an event, or a time. Of user: and
    app: values it shows those that events of this session have set. Other sessions change them too.
    """
    from cosmosservice.cli import history_work

    run(history_work.diff(uri, GivenName(**name), first, second, as_json=as_json))


@sessions.command(epilog=example("sessions fork first --at 12 --new-session second"))
@one_session
@click.option("--at", metavar="POINT", help=f"Copy the history up to {a_point}")
@click.option(
    "--new-session",
    "new_session_id",
    metavar="ID",
    help="Id of the new session. Default: a generated one.",
)
@click.option(
    "--new-user",
    "new_user_id",
    metavar="USER",
    help="User of the new session. Default: the same user.",
)
@json_option
def fork(
    uri: str | None,
    at: str | None,
    new_session_id: str | None,
    new_user_id: str | None,
    as_json: bool,
    **name: Any,
) -> None:
    """Make a new session with the same history up to a point.

    Prints its id.
    """
    from cosmosservice.cli import history_work

    run(
        history_work.fork(
            uri,
            GivenName(**name),
            at=at,
            new_session_id=new_session_id,
            new_user_id=new_user_id,
            as_json=as_json,
        )
    )


@sessions.command(epilog=example("sessions tail --app greeter", "sessions tail first --last 20"))
@some_app
@some_user
@maybe_session
@click.option(
    "--since",
    metavar="now|beginning|CONTINUATION",
    help="Where to begin. Default: now; for a SESSION, its --last events.",
)
@click.option(
    "--last",
    default=10,
    show_default=True,
    type=click.IntRange(0),
    help="Past events of the SESSION to show first, without --since.",
)
@interval_option
@uri_option
@json_option
def tail(uri: str | None, app_name: str | None, user_id: str | None, **options: Any) -> None:
    """Follow new events of an app, until Ctrl-C.

    It follows an --app, a --user of it, or one SESSION. Deletes, restores and purges are shown too.
    With --json every line has a continuation, which --since accepts.
    """
    from cosmosservice.cli import tailing

    if options["session_id"] is None and app_name is None:
        raise click.UsageError("Name one SESSION, or give --app.")
    with contextlib.suppress(KeyboardInterrupt):
        run(tailing.tail(uri, app_name, user_id, **options))


@sessions.command(
    epilog=example(
        "sessions export --app greeter -o greeter.jsonl",
        "sessions export --with deleted --with memories -o all.jsonl",
    )
)
@some_app
@some_user
@click.option(
    "--session",
    "session_id",
    metavar="ID",
    help="Only this session.",
    shell_complete=complete_session,
)
@click.option(
    "-o", "--output", type=click.File("wb"), default="-", help="Output file. Default: stdout."
)
@click.option(
    "--with",
    "also",
    multiple=True,
    type=click.Choice(["deleted", "memories", "artifacts"]),
    help="Take these along, too. Can be repeated.",
)
@uri_option
def export(uri: str | None, output: IO[bytes], also: tuple[str, ...], **chosen: str | None) -> None:
    """Write sessions to a file, without loss.

    Deleted sessions, memories and artifacts are left out, unless they are wanted --with them.
    `import` brings back what is in the file.
    """
    from cosmosservice.cli.moving import Export

    exporting = Export(output, also)
    with interruptible(lambda: exporting.interrupted):
        run(exporting.run(uri, **chosen))


@sessions.command("import", epilog=example("sessions import greeter.jsonl"))
@click.argument("file", type=click.File("rb"))
@click.option("--dry-run", is_flag=True, help="Read everything, write nothing.")
@uri_option
@json_option
def import_(uri: str | None, file: IO[bytes], dry_run: bool, as_json: bool) -> None:
    """Import what was exported into a store. A second run continues where the first stopped."""
    from cosmosservice.cli.moving import Import

    importing = Import(dry_run=dry_run)
    with interruptible(lambda: importing.interrupted):
        run(importing.run(uri, file, as_json=as_json))


@sessions.command(epilog=example("sessions delete first"))
@one_session
def delete(uri: str | None, **name: Any) -> None:
    """Delete a session. `restore` brings it back, `purge` erases what is left of it."""
    from cosmosservice.cli import session_work

    run(session_work.delete(uri, GivenName(**name)))


@sessions.command(epilog=example("sessions restore first"))
@one_session
def restore(uri: str | None, **name: Any) -> None:
    """Restore a deleted session."""
    from cosmosservice.cli import session_work

    run(session_work.restore(uri, GivenName(**name)))


@sessions.command(
    epilog=example(
        "sessions purge first",
        "sessions purge --app greeter --user ada --all --include-state",
        "sessions purge --user ada --all-apps",
        "sessions purge --deleted --older-than 90d",
    )
)
@some_app
@some_user
@maybe_session
@click.option("--all", "whole_user", is_flag=True, help="Erase all sessions of the user.")
@click.option(
    "--all-apps",
    is_flag=True,
    help="Erase the --user in every app, with state, after showing what there is.",
)
@click.option("--include-state", is_flag=True, help="With --all: erase the user's state too.")
@click.option(
    "--deleted", is_flag=True, help="Erase all deleted sessions of --app, or of all apps."
)
@click.option(
    "--older-than",
    metavar="AGE",
    default="30d",
    show_default=True,
    callback=age,
    help="With --deleted: only those deleted longer ago, such as 12h or 90d.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@uri_option
@json_option
def purge(
    uri: str | None,
    app_name: str | None,
    user_id: str | None,
    session_id: str | None,
    whole_user: bool,
    all_apps: bool,
    include_state: bool,
    deleted: bool,
    older_than: datetime.timedelta,
    yes: bool,
    as_json: bool,
) -> None:
    """Erase sessions for good, with their memories and artifacts.

    One SESSION, --all of a user in one app or in --all-apps, or those that were --deleted long
    ago. If interrupted, run it again.
    """
    from cosmosservice.cli.purging import Purge

    if [session_id is not None, whole_user, all_apps, deleted].count(True) != 1:
        raise click.UsageError("Name one SESSION, or give --all, --all-apps or --deleted.")
    purging = Purge(uri, sure=yes, as_json=as_json)
    if deleted:
        work = purging.deleted(app_name, older_than)
    elif all_apps:
        if user_id is None or app_name is not None:
            raise click.UsageError("--all-apps needs --user, and no --app.")
        work = purging.person(user_id)
    elif session_id is not None:
        work = purging.session(GivenName(app_name, user_id, session_id))
    elif app_name is None or user_id is None:
        raise click.UsageError("--all needs --app and --user.")
    else:
        work = purging.user(app_name, user_id, include_state=include_state)
    with interruptible(lambda: purging.interrupted):
        run(work)


@sessions.command(epilog=example("sessions repair first", "sessions repair --app greeter --json"))
@some_app
@some_user
@maybe_session
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
    """Bring session documents in line with their logs.

    One session, or all of them. It reports damage, and it writes: late documents, interrupted
    deletes and purges, missing events. Readers repair what they find, so there is no need to
    run it regularly.
    """
    from cosmosservice.cli import session_work

    work = session_work.repair(
        uri, app_name, user_id, session_id, accept_loss=accept_loss, as_json=as_json
    )
    if not run(work):
        sys.exit(FAILED)
