"""The pages: what each address shows."""

from __future__ import annotations

import datetime
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from cosmosservice.explore import plots
from cosmosservice.explore.addresses import number_of, search_of, session_of, user_of
from cosmosservice.explore.catalogue import Catalogue, Search
from cosmosservice.explore.conversation import ImageBudget, part_blocks, turns
from cosmosservice.explore.rendering import session_parameters, url
from cosmosservice.explore.session_log import PAGE, Head, LogPage, SessionLog, compared
from cosmosservice.explore.texts import value_text
from cosmosservice.sessions.store.documents import DELETED
from cosmosservice.sessions.store.keys import SessionKey

if TYPE_CHECKING:
    from cosmosservice.cosmos_session_service import CosmosSessionService
    from cosmosservice.explore.companions import Companions
    from cosmosservice.explore.meter import Meter
    from cosmosservice.explore.rendering import Rendering

DAYS: Final = 14
_EVENTS: Final = 5_000  # that a plot counts
_SESSIONS: Final = 1_000


class Views:
    """Pages that only read."""

    def __init__(
        self,
        service: CosmosSessionService,
        companions: Companions,
        meter: Meter,
        rendering: Rendering,
    ) -> None:
        self._service = service
        self._companions = companions
        self._meter = meter
        self._rendering = rendering
        self.catalogue = Catalogue(service)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/", self.sessions),
            web.get("/sessions.json", self.newest),
            web.get("/session", self.session),
            web.get("/session.json", self.revision),
            web.get("/state", self.state),
            web.get("/raw", self.raw),
            web.get("/artifact", self.artifact),
            web.get("/user", self.user),
            web.get("/activity", self.activity),
        ]

    async def sessions(self, request: web.Request) -> web.Response:
        wanted, query = search_of(request), request.query
        found = await self.catalogue.find(wanted, continuation=query.get("continue") or None)
        search = {name: query.get(name, "") for name in ("q", "app", "user", "from", "to")}
        search["deleted"] = "yes" if wanted.status == DELETED else ""
        first = "continue" not in query
        newest = found.rows[0].last_update_time if found.rows else 0.0
        return self._rendering.page(
            "sessions.html",
            found=found,
            search=search,
            apps=self.catalogue.apps,
            # An older page does not change.
            live=url("/sessions.json", **search) if first else "",
            version=str(newest),
            older=url("/", **search, **{"continue": found.continuation}),
            newer="" if first else url("/", **search),
        )

    async def newest(self, request: web.Request) -> web.Response:
        newest = await self.catalogue.newest(search_of(request))
        return web.json_response({"version": str(newest)})

    async def session(self, request: web.Request) -> web.Response:
        log = SessionLog(self._service, session_of(request))
        head = await log.head()
        at, after, before = (number_of(request, name) for name in ("at", "after", "before"))
        if at is not None and after is None and before is None:
            page = await log.page(head, after=at - PAGE // 2)
        else:
            page = await log.page(head, after=after, before=before)
        return self._rendering.page(
            "session.html",
            head=head,
            log=page,
            turns=turns(page.entries),
            artifacts=await self._artifact_names(head.key),
            live=url("/session.json", head.key),
            version=str(head.last),
            names=session_parameters(head.key),
            **await self._state(log, head, at, page),
        )

    async def revision(self, request: web.Request) -> web.Response:
        end = await SessionLog(self._service, session_of(request)).end()
        return web.json_response({"version": str(end)})

    async def state(self, request: web.Request) -> web.Response:
        """The state alone, for the slider."""
        log = SessionLog(self._service, session_of(request))
        head = await log.head()
        values = await self._state(log, head, number_of(request, "at"), None)
        return self._rendering.page("state.html", head=head, **values)

    async def _state(
        self, log: SessionLog, head: Head, at: int | None, page: LogPage | None
    ) -> dict[str, Any]:
        shared = {key: value for key, value in head.state.items() if _is_shared(key)}
        if at is not None and not head.deleted:
            values = await log.state_at(at)
        else:
            own = {key: value for key, value in head.state.items() if not _is_shared(key)}
            values = compared(own, own)
            if page is not None and page.later is None:  # the last event is at hand
                values = [replace(each, mark=page.mark_of(each.key)) for each in values]
        return {
            "at": head.last if at is None else at,
            "values": values,
            "shared": compared(shared, shared),
        }

    async def raw(self, request: web.Request) -> web.Response:
        log = SessionLog(self._service, session_of(request))
        head = await log.head()
        revision = number_of(request, "revision")
        if revision is None:
            document = await log.document()
        else:
            document = await log.event_document(head, revision)
        text = value_text(document, 2, whole=True)
        return self._rendering.page("raw.html", head=head, revision=revision, text=text)

    async def user(self, request: web.Request) -> web.Response:
        key = user_of(request)
        state = await self._service.get_user_state(app_name=key.app_name, user_id=key.user_id)
        wanted = Search(app_name=key.app_name, user_id=key.user_id)
        searched = request.query.get("memory", "")
        return self._rendering.page(
            "user.html",
            key=key,
            values=compared(state, state),
            found=await self.catalogue.find(wanted, 10),
            memory=self._companions.memory is not None,
            searched=searched,
            memories=await self._memories(key, searched) if searched else None,
            artifacts=await self._artifact_names(key),
        )

    async def _memories(self, key: SessionKey, searched: str) -> list[Any]:
        """What a search of the agent would find."""
        if self._companions.memory is None:
            return []
        found = await self._companions.memory.search_memory(
            app_name=key.app_name, user_id=key.user_id, query=searched
        )
        budget = ImageBudget()
        return [
            (entry.author, entry.timestamp, [
                block
                for part in entry.content.parts or []
                for block in part_blocks(part, budget)
            ])
            for entry in found.memories
        ]  # fmt: skip

    async def _artifact_names(self, key: SessionKey) -> list[str] | None:
        """Of a session or, without one, of all sessions; None if the store keeps none."""
        if self._companions.artifacts is None:
            return None
        return await self._companions.artifacts.list_artifact_keys(
            app_name=key.app_name, user_id=key.user_id, session_id=key.session_id or None
        )

    async def artifact(self, request: web.Request) -> web.Response:
        key, name = user_of(request), request.query.get("name", "")
        service = self._companions.artifacts
        if service is None:
            raise web.HTTPNotFound
        place = {"app_name": key.app_name, "user_id": key.user_id, "filename": name}
        session = key.session_id or None
        versions = await service.list_versions(**place, session_id=session)
        version = number_of(request, "version")
        part = await service.load_artifact(**place, session_id=session, version=version)
        blocks = [] if part is None else list(part_blocks(part, ImageBudget()))
        return self._rendering.page(
            "artifact.html",
            key=key,
            name=name,
            versions=versions,
            version=versions[-1] if version is None and versions else version,
            blocks=blocks,
        )

    async def activity(self, request: web.Request) -> web.Response:
        app = request.query.get("app", "")
        now = time.time()
        events = await self.catalogue.activity(app, now - DAYS * 24 * 3600, _EVENTS)
        found = await self.catalogue.find(Search(app_name=app or None), _SESSIONS)
        by_day = plots.days(events, datetime.date.today(), DAYS)
        units = sorted(self._meter.by_operation.items(), key=lambda each: -each[1])
        return self._rendering.page(
            "activity.html",
            app=app,
            apps=self.catalogue.apps,
            cut=len(events) == _EVENTS,
            newest_events=_EVENTS,
            newest_sessions=_SESSIONS if found.continuation else 0,
            plots=[
                plots.columns("Turns a day", by_day.turns),
                plots.columns("Tokens a day", by_day.tokens),
                plots.rows(
                    "Sessions by number of events", plots.sizes(row.records for row in found.rows)
                ),
                plots.rows("Request units of this page, by operation", dict(units)),
            ],
        )


def _is_shared(key: str) -> bool:
    return key.startswith(("user:", "app:"))
