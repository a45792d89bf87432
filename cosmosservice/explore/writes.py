"""Changes that the page makes if started with --write: forks, and the erasure of a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from cosmosservice.explore.addresses import number, session_of, user_of
from cosmosservice.explore.rendering import url
from cosmosservice.sessions.store.keys import SessionKey

if TYPE_CHECKING:
    from cosmosservice.cosmos_session_service import CosmosSessionService
    from cosmosservice.explore.rendering import Rendering


class Writes:
    """The guard has checked that these requests come from forms of this page."""

    def __init__(self, service: CosmosSessionService, rendering: Rendering) -> None:
        self._service = service
        self._rendering = rendering

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/fork", self.fork), web.post("/erase", self.erase)]

    async def fork(self, request: web.Request) -> web.Response:
        key, form = session_of(request), await request.post()
        made = await self._service.fork_session(
            app_name=key.app_name,
            user_id=key.user_id,
            session_id=key.session_id,
            at=number("at", str(form.get("at", ""))),
        )
        raise web.HTTPSeeOther(
            url("/session", SessionKey.named(made.app_name, made.user_id, made.id))
        )

    async def erase(self, request: web.Request) -> web.Response:
        key, form = user_of(request), await request.post()
        if form.get("confirm") != key.user_id:
            raise ValueError("The text is not the user's id. Nothing was erased.")
        # Including the user's data in the other services on the same account.
        report = await self._service.purge_user(
            app_name=key.app_name, user_id=key.user_id, include_state=True
        )
        return self._rendering.page("erased.html", report=report)
