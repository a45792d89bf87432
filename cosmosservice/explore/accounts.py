"""The page of what apps, users and sessions have used."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from cosmosservice.explore.addresses import number_of
from cosmosservice.explore.reads import Reads
from cosmosservice.explore.rendering import url
from cosmosservice.sessions.store.usage import Usage, UsageReport

_MOST_APPS: Final = 50
_MOST_ROWS: Final = 100
_DAY: Final = 24 * 3600


@dataclass(frozen=True)
class Row:
    name: str
    address: str
    sessions: int
    usage: Usage


class Accounts(Reads):
    def routes(self) -> list[web.RouteDef]:
        return [web.get("/usage", self.page)]

    async def page(self, request: web.Request) -> web.Response:
        app, days = request.query.get("app", ""), number_of(request, "days") or 0
        since = time.time() - days * _DAY if days else None
        known = self._catalogue.apps if app else await self._service.list_apps()
        chosen = [app] if app else known[:_MOST_APPS]
        reports = [await self._service.usage(app_name=each, since=since) for each in chosen]
        of_apps = [
            Row(each.app_name, url("/usage", app=each.app_name, days=days or None), *_sums(each))
            for each in reports
        ]
        tables = [] if app else [("App", _shown(of_apps))]
        if app:
            tables = [("User", _shown(_users(reports[0]))), ("Session", _shown(_rows(reports[0])))]
        return self._rendering.page(
            "usage.html",
            app=app,
            days=days,
            apps=known,
            left_out=0 if app else len(known) - len(chosen),
            total=sum((row.usage for row in of_apps), Usage()),
            sessions=sum(row.sessions for row in of_apps),
            tables=tables,
        )


def _sums(report: UsageReport) -> tuple[int, Usage]:
    return len(report.sessions), report.total


def _users(report: UsageReport) -> list[Row]:
    counts: dict[str, int] = {}
    for each in report.sessions:
        counts[each.user_id] = counts.get(each.user_id, 0) + 1
    return [
        Row(user, url("/user", app=report.app_name, user=user), counts[user], usage)
        for user, usage in report.by_user.items()
    ]


def _rows(report: UsageReport) -> list[Row]:
    return [
        Row(
            each.title or each.session_id,
            url("/session", app=report.app_name, user=each.user_id, session=each.session_id),
            1,
            each.usage,
        )
        for each in report.sessions
    ]


def _shown(rows: list[Row]) -> tuple[list[Row], int]:
    """Those that used the most, and how many are left out."""
    ranked = sorted(rows, key=lambda row: (-row.usage.tokens, -row.usage.events, row.name))
    return ranked[:_MOST_ROWS], max(0, len(rows) - _MOST_ROWS)
