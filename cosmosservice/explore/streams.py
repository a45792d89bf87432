"""Server-sent events: tells an open page that its content has changed. The page then requests its
content again, so that there is only one way to render it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from aiohttp import web

from cosmosservice.errors import CosmosServiceError
from cosmosservice.explore.addresses import search_of, session_of
from cosmosservice.explore.live import Live, News, TooManyListenersError
from cosmosservice.explore.rendering import anchor
from cosmosservice.explore.session_log import SessionLog
from cosmosservice.sessions.store.keys import SessionKey

if TYPE_CHECKING:
    from cosmosservice.cosmos_session_service import CosmosSessionService
    from cosmosservice.explore.catalogue import Catalogue

_LOOK: Final = 1.0  # seconds after which a disconnected browser is noticed
_ALIVE: Final = 15.0  # seconds after which an unresponsive one is noticed
_REST: Final = 0.5  # seconds between two messages

Version = Callable[[], Awaitable[str]]


class Streams:
    """One address for all pages. For the page of a session, it names the session."""

    def __init__(self, service: CosmosSessionService, catalogue: Catalogue, live: Live) -> None:
        self._service = service
        self._catalogue = catalogue
        self._live = live

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/live", self.stream)]

    async def stream(self, request: web.Request) -> web.StreamResponse:
        version: Version
        topic: SessionKey | None
        concerns: Callable[[SessionKey], bool]
        if "session" in request.query:
            topic = session_of(request)
            log = SessionLog(self._service, topic)
            version, concerns = log.version, topic.__eq__
        else:
            topic, search = None, search_of(request)
            version, concerns = (lambda: self._catalogue.version(search)), search.may_hold
        try:
            with self._live.listening(topic, concerns) as listener:
                response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
                await response.prepare(request)
                shown: str | None = request.query.get("version", "")
                silent = 0.0
                while not (self._live.closed or _has_gone(request)):
                    news = await listener.news(_LOOK)
                    if news.status == "live" and shown is not None:
                        # Changes between the page's load and the start of the watch.
                        news.missed |= await _is_newer(version, shown)
                        shown = None
                    silent = 0.0 if news else silent + _LOOK
                    if news or silent >= _ALIVE:
                        await response.write(_message(news))
                        silent = 0.0
                        await asyncio.sleep(_REST)
        except TooManyListenersError:
            raise web.HTTPServiceUnavailable(reason="Too many pages are open.") from None
        except ConnectionResetError:  # the browser has disconnected
            pass
        return response


def _has_gone(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


async def _is_newer(version: Version, shown: str) -> bool:
    try:
        return await version() != shown
    except CosmosServiceError:
        return True


def _message(news: News) -> bytes:
    lines = []
    if news.status is not None:
        lines += [f"event: {news.status}", "data:", ""]
    if news.changed or news.missed:
        changed = {anchor(key): revision for key, revision in news.changed.items()}
        lines += ["event: changed", f"data: {json.dumps(changed)}", ""]
    return "\n".join([*(lines or [":", ""]), ""]).encode()
