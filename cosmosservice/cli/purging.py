"""What `cosmosservice sessions purge` does."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
from collections.abc import Iterator, Sequence

import click

from cosmosservice.cli.console import GivenName, Problem, bar, counted, err, print_json
from cosmosservice.cli.persons import found_of
from cosmosservice.cli.session_work import everything_of, named
from cosmosservice.sessions.administration import Progress, PurgeFailure, PurgeReport


class Purge:
    """Asks first, unless `sure`; then erases sessions with their memories and artifacts."""

    def __init__(self, uri: str | None, *, sure: bool, as_json: bool) -> None:
        self._uri = uri
        self._sure = sure
        self._as_json = as_json
        self._done = 0
        self._total = 0

    async def session(self, given: GivenName) -> None:
        async with everything_of(self._uri) as service:
            name = await named(service, given, deleted=None)
            session = await service.get_session(**name._asdict())
            events = "" if session is None else f" ({counted(len(session.events), 'event')})"
            self._ask(
                f"session {name.session_id!r}{events} of user {name.user_id!r} in app"
                f" {name.app_name!r}, with its memories and artifacts,"
            )
            self._total = 1
            report = await service.purge_session(**name._asdict())
        self._print(report)

    async def user(self, app_name: str, user_id: str, *, include_state: bool) -> None:
        async with everything_of(self._uri) as service:
            count, deleted = [
                await service.count_sessions(app_name=app_name, user_id=user_id, deleted=deleted)
                for deleted in (False, True)
            ]
            also = f" and {deleted:,} deleted" if deleted else ""
            state = ", with the user's state," * include_state
            self._ask(
                f"all of user {user_id!r} in app {app_name!r}: {counted(count, 'session')}{also},"
                f" all memories and artifacts{state or ','}"
            )
            with self._progress() as progress:
                report = await service.purge_user(
                    app_name=app_name,
                    user_id=user_id,
                    include_state=include_state,
                    progress=progress,
                )
        self._print(report)

    async def person(self, user_id: str) -> None:
        """Everything of a user in every app, state included."""
        async with everything_of(self._uri) as service:
            found = await found_of(service, user_id)
            if found and not self._sure:
                err.print(f"Of user {user_id!r} there is:", markup=False, soft_wrap=True)
                for each in found:
                    err.print(f"  {each.text}", markup=False, soft_wrap=True)
                apps = counted(len(found), "app")
                self._ask(f"all of user {user_id!r} in {apps}, with the user's state,")
            reports = []
            for number, each in enumerate(found, 1):
                with self._progress(f"app {number:,} of {len(found):,}") as progress:
                    reports.append(
                        await service.purge_user(
                            app_name=each.app_name,
                            user_id=user_id,
                            include_state=True,
                            progress=progress,
                        )
                    )
        self._print(_sum(reports))

    async def deleted(self, app_name: str | None, older_than: datetime.timedelta) -> None:
        async with everything_of(self._uri) as service:
            count = await service.count_deleted(app_name=app_name, older_than=older_than)
            where = "all apps" if app_name is None else f"app {app_name!r}"
            self._ask(
                f"{counted(count, 'session')} of {where}, deleted more than {_age(older_than)} ago,"
                " with their memories and artifacts,"
            )
            with self._progress() as progress:
                report = await service.purge_deleted(
                    app_name=app_name, older_than=older_than, progress=progress
                )
        self._print(report)

    @property
    def interrupted(self) -> str:
        """The message after an interruption."""
        if not self._total:
            return "Nothing was erased."
        return (
            f"{self._done:,} of {counted(self._total, 'session')} were erased for good. To erase"
            " the rest, run it again: it finishes what was under way."
        )

    @contextlib.contextmanager
    def _progress(self, what: str = "sessions") -> Iterator[Progress]:
        with bar(what) as show:

            def progress(done: int, total: int) -> None:
                self._done, self._total = done, total
                show(done, total)

            yield progress

    def _ask(self, what: str) -> None:
        if not self._sure:
            click.confirm(f"Erase {what} for good?", abort=True, err=True)

    def _print(self, report: PurgeReport) -> None:
        documents = report.documents + report.dependants
        if self._as_json:
            print_json(dataclasses.asdict(report))
        elif documents:
            what = f"{counted(report.sessions, 'session')}, {counted(documents, 'document')}"
            err.print(f"Erased: {what}.")
        else:
            err.print("There was nothing to erase.")
        if report.failed:
            which = "".join(f"\n  {_named(each)}: {each.reason}" for each in report.failed)
            raise Problem(f"Not everything could be erased. Run it again.{which}")


def _sum(reports: Sequence[PurgeReport]) -> PurgeReport:
    return PurgeReport(
        sessions=sum(each.sessions for each in reports),
        documents=sum(each.documents for each in reports),
        dependants=sum(each.dependants for each in reports),
        failed=tuple(failure for each in reports for failure in each.failed),
    )


def _named(failure: PurgeFailure) -> str:
    if failure.session_id is None:
        what = "What belongs to no session"
    else:
        what = f"Session {failure.session_id!r}"
    return f"{what} of user {failure.user_id!r} in app {failure.app_name!r}"


def _age(age: datetime.timedelta) -> str:
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if age.total_seconds() % size == 0 and age:
            return counted(int(age.total_seconds() // size), unit)
    return counted(int(age.total_seconds()), "second")
