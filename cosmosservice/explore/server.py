"""The application, and the server that runs it on this machine's own address."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aiohttp import web

from cosmosservice.errors import CosmosServiceError, SessionNotFoundError
from cosmosservice.explore.accounts import Accounts
from cosmosservice.explore.activity import Activity
from cosmosservice.explore.catalogue import Catalogue
from cosmosservice.explore.comparing import Comparing
from cosmosservice.explore.dependants import Dependants
from cosmosservice.explore.editing import Editing
from cosmosservice.explore.exports import Exports
from cosmosservice.explore.guard import Guard, Handler
from cosmosservice.explore.live import Live
from cosmosservice.explore.meter import Meter, new_page
from cosmosservice.explore.people import People
from cosmosservice.explore.rendering import Rendering, Static
from cosmosservice.explore.streams import Streams
from cosmosservice.explore.views import Views
from cosmosservice.explore.writes import Writes

if TYPE_CHECKING:
    from cosmosservice.cosmos_session_service import CosmosSessionService

logger = logging.getLogger("cosmosservice")

HOST: Final = "127.0.0.1"
_FORM_BYTES: Final = 1_000_000


class Explorer:
    """The page for one service, whose `on_request_charge` is the meter's."""

    def __init__(
        self,
        service: CosmosSessionService,
        meter: Meter,
        dependants: Dependants | None = None,
        *,
        write: bool = False,
        static: Static | None = None,
        first: str = "/",
    ) -> None:
        """The browser is led to the page `first`."""
        self.guard = guard = Guard(write=write, first=first)
        self._rendering = Rendering(write=write, static=static, token=guard.form_token)
        self.app = web.Application(
            middlewares=[guard.middleware, self._explained], client_max_size=_FORM_BYTES
        )
        self.app.on_response_prepare.append(guard.protect)
        self.app.on_shutdown.append(self._ended)
        dependants = dependants or Dependants()
        self.live = Live(service)
        self.catalogue = catalogue = Catalogue(service)
        for part in (
            Views(service, catalogue, dependants, self._rendering),
            People(service, catalogue, dependants, self._rendering),
            Activity(catalogue, meter, self._rendering),
            Accounts(service, catalogue, dependants, self._rendering),
            Streams(service, catalogue, self.live),
            Writes(service, self._rendering),
            Editing(service, self._rendering),
            Comparing(service, self._rendering),
            Exports(service),
        ):
            self.app.add_routes(part.routes())
        self.app.router.add_static("/static/", Path(__file__).parent / "static")

    async def _ended(self, _: web.Application) -> None:
        self.live.close()

    @contextlib.asynccontextmanager
    async def served(self, port: int = 0) -> AsyncIterator[str]:
        """Its address, with the secret, for as long as it is served."""
        # No access log: the addresses contain user ids.
        runner = web.AppRunner(self.app, access_log=None, shutdown_timeout=2.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, HOST, port).start()
            yield f"http://{HOST}:{runner.addresses[0][1]}{self.guard.path}"
        finally:
            await runner.cleanup()

    @web.middleware
    async def _explained(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Shows errors as pages. Their texts may name users, so they are not logged."""
        new_page()
        try:
            return await handler(request)
        except SessionNotFoundError as problem:
            status, reason = 404, str(problem)
        except ValueError as problem:
            status, reason = 400, str(problem)
        except CosmosServiceError as problem:
            status, reason = 502, str(problem)
        except web.HTTPSeeOther as answer:
            return web.Response(status=answer.status, headers={"Location": str(answer.location)})
        except web.HTTPException as answer:
            status, reason = answer.status, answer.reason
        except ConnectionResetError:  # the browser has disconnected
            raise
        except Exception as problem:
            logger.error("explore: a page failed (%s).", type(problem).__name__)
            status, reason = 500, f"This page failed ({type(problem).__name__})."
        return self._rendering.page("problem.html", status, reason=reason)
