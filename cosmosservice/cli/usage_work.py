"""What `cosmosservice usage` does."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from dataclasses import asdict

from cosmosservice import Usage, UsageReport
from cosmosservice.cli.console import out, print_json
from cosmosservice.cli.layout import print_table
from cosmosservice.cli.session_work import service_of
from cosmosservice.cli.timeline import clean

Row = tuple[dict[str, str], int, Usage]  # the names, the number of sessions, what they have used


async def show_usage(
    uri: str | None,
    app_name: str | None,
    user_id: str | None,
    age: datetime.timedelta | None,
    by: str,
    *,
    as_json: bool,
) -> None:
    since = None if age is None else datetime.datetime.now(datetime.UTC) - age
    rows: list[Row] = []
    async with service_of(uri) as service:
        for app in [app_name] if app_name is not None else sorted(await service.list_apps()):
            report = await service.usage(app_name=app, user_id=user_id, since=since)
            rows += (row for row in _rows(report, by) if row[2] != Usage() or app_name)
    if as_json:
        for names, sessions, usage in rows:
            print_json(names | {"sessions": sessions} | _plain(usage))
        return
    if not rows:
        out.print("No sessions.")
        return
    head = [*rows[0][0], "sessions", "turns", "events", "in", "cached", "out", "thoughts", "RU"]
    print_table(head, [_cells(*row) for row in rows])


def _rows(report: UsageReport, by: str) -> Iterator[Row]:
    app = {"app": report.app_name}
    if by == "app":
        yield app, len(report.sessions), report.total
    elif by == "user":
        for user, usage in report.by_user.items():
            count = sum(each.user_id == user for each in report.sessions)
            yield app | {"user": user}, count, usage
    else:
        for each in report.sessions:
            yield app | {"user": each.user_id, "session": each.session_id}, 1, each.usage


def _plain(usage: Usage) -> dict[str, float | int | None]:
    """Without the time, and without a number that JSON does not have."""
    return {
        name: round(value, 2) if isinstance(value, float) else value
        for name, value in asdict(usage).items()
        if name != "since" and not math.isinf(value)
    }


def _cells(names: dict[str, str], sessions: int, usage: Usage) -> list[str]:
    numbers = (
        *(sessions, usage.turns, usage.events, usage.input_tokens, usage.cached_tokens),
        *(usage.output_tokens, usage.thought_tokens, round(usage.request_units)),
    )
    return [*map(clean, names.values()), *(f"{number:,}" for number in numbers)]
