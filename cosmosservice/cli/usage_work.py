"""What `cosmosservice usage` does."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from dataclasses import asdict

from rich.text import Text

from cosmosservice import Usage, UsageReport
from cosmosservice.cli.console import err, out, print_json
from cosmosservice.cli.layout import Folded, fits, print_rows
from cosmosservice.cli.session_work import service_of
from cosmosservice.cli.timeline import one_line

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
        err.print("No events.")
        return
    head = [*rows[0][0], *_figures(*rows[0][1:], by)]
    cells = [[Text(each) for each in _cells(*row, by)] for row in rows]
    if fits(head, cells):
        print_rows(head, cells)
        return
    for names, sessions, usage in rows:
        out.print(Folded(Text(" / ".join(map(one_line, names.values())), "bold")), soft_wrap=True)
        said = [_said(name, n) for name, n in _figures(sessions, usage, by).items() if n]
        out.print(Folded(Text(", ".join(said)), 2), soft_wrap=True)


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


def _figures(sessions: int, usage: Usage, by: str) -> dict[str, int]:
    """What is shown of a row. Tokens have no other name there."""
    count = {} if by == "session" else {"sessions": sessions}
    return count | {
        "turns": usage.turns,
        "events": usage.events,
        "in": usage.input_tokens,
        "cached": usage.cached_tokens,
        "out": usage.output_tokens,
        "thoughts": usage.thought_tokens,
        "RU": round(usage.request_units),
    }


def _said(name: str, number: int) -> str:
    return f"{number:,} {name.removesuffix('s') if number == 1 else name}"


def _cells(names: dict[str, str], sessions: int, usage: Usage, by: str) -> list[str]:
    figures = _figures(sessions, usage, by).values()
    return [*map(one_line, names.values()), *(f"{number:,}" for number in figures)]
