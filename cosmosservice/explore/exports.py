"""One session as a file that `cosmosservice sessions import` reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aiohttp import web
from google.adk.sessions import Session

from cosmosservice.data_converters import to_json
from cosmosservice.explore.addresses import session_of
from cosmosservice.explore.files import saved_as
from cosmosservice.explore.session_log import SessionLog
from cosmosservice.sessions.archive_lines import HEAD, session_lines

if TYPE_CHECKING:
    from cosmosservice.cosmos_session_service import CosmosSessionService

_AT_ONCE: Final = 500  # events


class Exports:
    """Only reads: unlike get_session, it repairs and renews nothing."""

    def __init__(self, service: CosmosSessionService) -> None:
        self._service = service

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/export", self.export)]

    async def export(self, request: web.Request) -> web.Response:
        key = session_of(request)
        log = SessionLog(self._service, key)
        head = await log.head()
        session = Session(
            app_name=key.app_name,
            user_id=key.user_id,
            id=key.session_id,
            state=head.state,
            last_update_time=head.last_update_time,
        )
        end = head.first
        while end < head.last:
            page = await log.page(head, after=end, count=_AT_ONCE)
            session.events += [each.event for each in page.entries if each.event is not None]
            end += _AT_ONCE
        lines = [HEAD, *session_lines(session)]
        response = web.Response(body=b"".join(to_json(each) + b"\n" for each in lines))
        response.content_type = "application/x-ndjson"
        response.headers["Content-Disposition"] = saved_as(f"{key.session_id}.jsonl")
        return response
