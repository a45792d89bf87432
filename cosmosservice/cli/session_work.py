"""What `cosmosservice sessions …` does. Imports ADK, so it is imported by the commands that run."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

from google.adk.sessions import Session
from rich.text import Text

from cosmosservice import (
    CosmosAccount,
    CosmosArtifactService,
    CosmosMemoryService,
    CosmosSessionService,
)
from cosmosservice.cli.console import (
    LOW_PRIORITY,
    GivenName,
    Problem,
    SessionName,
    UsageProblem,
    bar,
    counted,
    err,
    out,
    print_continuation,
    print_json,
    settings_of,
)
from cosmosservice.cli.layout import Folded, fits, print_rows
from cosmosservice.cli.timeline import clean, moment, one_line, session_view
from cosmosservice.errors import CosmosServiceError
from cosmosservice.sessions.archive_lines import session_lines
from cosmosservice.sessions.store.repair import RepairReport

_TOO_MANY = 10  # failures in a row, after which nothing more is tried


@contextlib.asynccontextmanager
async def service_of(
    uri: str | None, *, writes: bool = False, background: bool = False
) -> AsyncIterator[CosmosSessionService]:
    """Only commands that store sessions create a store; reading one that is missing is an error. A
    file in which there are no sessions yet is none. The requests of one in the background have a
    low priority."""
    settings = settings_of(uri, existing=not writes)
    ensure: Any = None if writes or settings.embedded_path is not None else "verify"
    options = LOW_PRIORITY if background else None
    async with CosmosSessionService(uri=uri, ensure=ensure, client_options=options) as service:
        yield service


@contextlib.asynccontextmanager
async def everything_of(uri: str | None) -> AsyncIterator[CosmosSessionService]:
    """A session service whose purges erase memories and artifacts too, and whose forks copy
    artifacts."""
    async with service_of(uri) as service:
        dependants = (
            CosmosMemoryService(account=service.account),
            CosmosArtifactService(account=service.account),
        )
        yield service
        del dependants


async def named(
    service: CosmosSessionService, given: GivenName, *, deleted: bool | None = False
) -> SessionName:
    """The session that the user named. Its id is enough if no other app or user has the same.

    Searches deleted sessions, active sessions or (None) both.
    """
    if given.app_name is not None and given.user_id is not None:
        return SessionName(given.app_name, given.user_id, given.session_id)
    found = [
        SessionName(*name)
        for name, gone in await service.find_sessions(
            given.session_id, app_name=given.app_name, user_id=given.user_id
        )
        if deleted in (None, gone)
    ]
    if not found:
        raise no_session(given.session_id, deleted=deleted is True)
    if len(found) > 1:
        which = "".join(f"\n  --app {each.app_name!r} --user {each.user_id!r}" for each in found)
        raise UsageProblem(
            f"{len(found):,} sessions have the id {given.session_id!r}. Name one of them:{which}"
        )
    return found[0]


def no_session(session_id: str, *, deleted: bool = False) -> Problem:
    kind = "deleted session" if deleted else "session"
    option = " --deleted" if deleted else ""
    return Problem(
        f"There is no {kind} {session_id!r}. `cosmosservice sessions list{option}` shows those"
        " that are there."
    )


class OwnerName(NamedTuple):
    """A user of an app."""

    app_name: str
    user_id: str


async def owner_of(account: CosmosAccount, given: Mapping[str, Any]) -> OwnerName:
    """Whose memories or artifacts are meant: those of --app and --user, or of a session's user."""
    app_name, user_id, session_id = (given.get(each) for each in GivenName._fields)
    if app_name is not None and user_id is not None:
        return OwnerName(app_name, user_id)
    if session_id is None:
        raise UsageProblem("Name a --session, or give --app and --user.")
    service = CosmosSessionService(account=account)
    name = await named(service, GivenName(app_name, user_id, session_id), deleted=None)
    return OwnerName(name.app_name, name.user_id)


async def existing(service: CosmosSessionService, name: SessionName) -> Session:
    session = await service.get_session(**name._asdict())
    if session is None:
        raise Problem(
            f"There is no session {name.session_id!r} of user {name.user_id!r} in app"
            f" {name.app_name!r}. `cosmosservice sessions list` shows the existing ones."
        )
    return session


async def list_sessions(
    uri: str | None,
    app_name: str | None,
    user_id: str | None,
    *,
    deleted: bool,
    limit: int,
    continuation: str | None,
    as_json: bool,
) -> None:
    async with service_of(uri) as service:
        try:
            found, following = await service.list_latest(
                app_name=app_name,
                user_id=user_id,
                limit=limit,
                deleted=deleted,
                continuation=continuation,
            )
        except ValueError:
            raise UsageProblem(
                "--continue takes the token that the same list ended with, with the same --app,"
                " --user and --deleted."
            ) from None
    if as_json:
        for each in found:
            print_json(each)
    elif found:
        _print_sessions(found, time.time())
    else:
        err.print("No sessions.")
    if following is not None:
        chosen = {"--app": app_name, "--user": user_id, "--deleted": deleted, "--json": as_json}
        options = {**chosen, "--limit": limit, "--continue": following}
        print_continuation(["sessions", "list"], options, uri)


def _print_sessions(found: list[dict[str, Any]], now: float) -> None:
    """One line for each session if there is room. Otherwise its title is below its id."""
    head = ("session", "title", "app", "user", "events", "updated")
    rows = [
        tuple(
            Text(one_line(str(each)))
            for each in (
                session["session_id"],
                session["title"],
                session["app_name"],
                session["user_id"],
                f"{session['events']:,}",
                ago(session["last_update_time"], now),
            )
        )
        for session in found
    ]
    if fits(head, rows):
        print_rows(head, rows)
        return
    for (name, title, app, user, _, updated), session in zip(rows, found, strict=True):
        name.stylize("bold")
        updated.stylize("dim")
        out.print(name, updated, sep="  ", soft_wrap=True)
        if title:
            out.print(Folded(title, 2), soft_wrap=True)
        events = counted(session["events"], "event")
        out.print(Text.assemble("  ", app, " / ", user, f"  {events}", style="dim"), soft_wrap=True)


def ago(timestamp: float, now: float) -> str:
    """`5 minutes ago`, or the date after a month."""
    seconds = now - timestamp
    if not 0 <= seconds < 30 * 24 * 3600:
        return moment(timestamp) if seconds < 0 else moment(timestamp)[:10]
    for size, unit in ((24 * 3600, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{counted(int(seconds // size), unit)} ago"
    return "just now"


async def show(uri: str | None, given: GivenName, *, last: int | None, as_json: bool) -> None:
    async with service_of(uri) as service:
        session = await existing(service, await named(service, given))
    print_session(session, last, as_json=as_json)


def print_session(session: Session, last: int | None, *, as_json: bool) -> None:
    if not as_json:
        out.print(session_view(session, last), soft_wrap=True)
        return
    if last is not None:
        session = session.model_copy(update={"events": session.events[-last:]})
    for line in session_lines(session):
        print_json(line)


async def delete(uri: str | None, given: GivenName) -> None:
    async with service_of(uri) as service:
        name = await named(service, given)
        await existing(service, name)
        await service.delete_session(**name._asdict())
    err.print("Deleted. `cosmosservice sessions restore` brings it back.")


async def restore(uri: str | None, given: GivenName) -> None:
    async with service_of(uri) as service:
        name = await named(service, given, deleted=True)
        await service.restore_session(**name._asdict())
    err.print("Restored.")


async def repair(
    uri: str | None,
    app_name: str | None,
    user_id: str | None,
    session_id: str | None,
    *,
    accept_loss: bool,
    as_json: bool,
) -> bool:
    """Whether everything is in order now."""
    async with service_of(uri) as service:
        if session_id is not None:
            given = GivenName(app_name, user_id, session_id)
            names = [await named(service, given, deleted=None)]
        else:
            found = await service.list_names(app_name=app_name, user_id=user_id)
            names = [SessionName(*each) for each in found]
        healthy, in_a_row = True, 0
        with bar("sessions") as progress:
            for done, name in enumerate(names, 1):
                try:
                    report = await service.repair_session(**name._asdict(), accept_loss=accept_loss)
                except CosmosServiceError as problem:
                    healthy, in_a_row = False, in_a_row + 1
                    if session_id is not None or in_a_row == _TOO_MANY:
                        raise
                    _print_not_repaired(name, str(problem), as_json)
                else:
                    healthy, in_a_row = healthy and report.healthy, 0
                    _print_repaired(name, report, as_json)
                progress(done, len(names))
    err.print(f"{counted(len(names), 'session')} checked.")
    return healthy


def _print_repaired(name: SessionName, report: RepairReport, as_json: bool) -> None:
    if as_json:
        print_json(name._asdict() | dataclasses.asdict(report) | {"healthy": report.healthy})
        return
    findings = [
        text
        for holds, text in (
            (report.rebuilt, "its session document was rebuilt"),
            (report.finished, "a delete, restore or purge was finished"),
            (
                report.late,
                f"its session document had not followed {counted(report.late, 'event')}",
            ),
            (report.holes, f"documents are missing at {_some(report.holes)}"),
            (report.unreadable, f"events cannot be read at {_some(report.unreadable)}"),
        )
        if holds
    ]
    if findings:
        line = f"{' / '.join(map(one_line, name))}: {'; '.join(findings)}"
        style = "" if report.healthy else "red"
        out.print(clean(line), style=style, markup=False, soft_wrap=True)


def _print_not_repaired(name: SessionName, problem: str, as_json: bool) -> None:
    if as_json:
        print_json(name._asdict() | {"healthy": False, "problem": problem})
    else:
        line = f"{' / '.join(map(one_line, name))}: could not be repaired: {one_line(problem)}"
        out.print(clean(line), style="red", markup=False, soft_wrap=True)


def _some(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:10])) + (" …" if len(numbers) > 10 else "")
