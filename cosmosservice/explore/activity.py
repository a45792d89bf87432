"""The page of plots."""

from __future__ import annotations

import datetime
import time
from typing import TYPE_CHECKING, Final

from aiohttp import web

from cosmosservice.explore import plots
from cosmosservice.explore.catalogue import Catalogue, Search
from cosmosservice.explore.measures import Measure, measures

if TYPE_CHECKING:
    from cosmosservice.account.container import Document
    from cosmosservice.explore.meter import Meter
    from cosmosservice.explore.rendering import Rendering

DAYS: Final = 14
_EVENTS: Final = 5_000  # that are counted, of all apps
_SESSIONS: Final = 1_000
_OPERATIONS: Final = 9
_GOOD_SECONDS: Final = 30.0
_ROWS: Final = 30  # agents and tools


class Activity:
    """It only reads, and no more than these."""

    def __init__(self, catalogue: Catalogue, meter: Meter, rendering: Rendering) -> None:
        self._catalogue = catalogue
        self._meter = meter
        self._rendering = rendering
        self._known: list[Document] = []
        self._read_at = 0.0

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/activity", self.page)]

    async def page(self, request: web.Request) -> web.Response:
        app = request.query.get("app", "")
        events = await self._events()
        found = await self._catalogue.find(Search(app_name=app or None), _SESSIONS)
        of_app = [each for each in events if app in ("", each.get("app_name"))]
        found_measures = measures(of_app, datetime.date.today(), DAYS)
        days = found_measures.days
        return self._rendering.page(
            "activity.html",
            app=app,
            apps=self._catalogue.apps,
            days=DAYS,
            most_events=_EVENTS if len(events) == _EVENTS else 0,
            most_sessions=_SESSIONS if found.continuation else 0,
            agents=_first(found_measures.agents),
            tools=_first(found_measures.tools),
            plots=[
                plots.columns("Turns a day", {day: [each.turns] for day, each in days.items()}),
                plots.columns(
                    "Tokens a day", {day: each.tokens for day, each in days.items()}, ("in", "out")
                ),
                plots.columns(
                    "Seconds of a turn",
                    {day: (each.p50, each.p95) for day, each in days.items()},
                    ("p50", "p95"),
                    stacked=False,
                    unit=" s",
                ),
                plots.columns(
                    "Errors a day",
                    {day: (each.errors, each.failures) for day, each in days.items()},
                    ("of models", "of tools"),
                ),
            ],
            last_plots=[
                plots.rows(
                    "Sessions by number of events", plots.sizes(row.records for row in found.rows)
                ),
                plots.rows("Request units of this page, by operation", self._units()),
            ],
        )

    async def _events(self) -> list[Document]:
        """Cached for a moment, so that looking at one app after the other does not cost a query
        each time."""
        now = time.time()
        if now - self._read_at > _GOOD_SECONDS:
            self._known = await self._catalogue.activity(now - DAYS * 24 * 3600, _EVENTS)
            self._read_at = now
        return self._known

    def _units(self) -> dict[str, float]:
        """The most expensive operations, and the sum of the others."""
        units = sorted(self._meter.by_operation.items(), key=lambda each: -each[1])
        rest = sum(each for _, each in units[_OPERATIONS:])
        return dict(units[:_OPERATIONS]) | ({"others": rest} if rest else {})


def _first(found: dict[str, Measure]) -> dict[str, Measure]:
    return dict(list(found.items())[:_ROWS])
