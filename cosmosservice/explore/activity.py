"""The page of plots."""

from __future__ import annotations

import datetime
import time
from typing import TYPE_CHECKING, Final

from aiohttp import web

from cosmosservice.explore import plots
from cosmosservice.explore.catalogue import Catalogue, Search

if TYPE_CHECKING:
    from cosmosservice.account.container import Document
    from cosmosservice.explore.meter import Meter
    from cosmosservice.explore.rendering import Rendering

DAYS: Final = 14
_EVENTS: Final = 5_000  # that are counted, of all apps
_SESSIONS: Final = 1_000
_OPERATIONS: Final = 9
_GOOD_SECONDS: Final = 30.0


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
        by_day = plots.days(of_app, datetime.date.today(), DAYS)
        return self._rendering.page(
            "activity.html",
            app=app,
            apps=self._catalogue.apps,
            days=DAYS,
            most_events=_EVENTS if len(events) == _EVENTS else 0,
            most_sessions=_SESSIONS if found.continuation else 0,
            plots=[
                plots.columns("Turns a day", by_day.turns),
                plots.columns("Tokens a day", by_day.tokens, ("in", "out")),
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
