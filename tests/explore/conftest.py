from __future__ import annotations

from contextlib import AsyncExitStack

import aiohttp
import pytest

from cosmosservice import CosmosAccount, CosmosSessionService
from cosmosservice.explore.dependants import Dependants
from cosmosservice.explore.meter import Meter
from cosmosservice.explore.server import Explorer
from tests.explore.support import Visitor


@pytest.fixture
async def visit(emulator):
    """`visit(**options)`: serves the page on the test's own emulator, and returns its visitor."""
    async with AsyncExitStack() as stack:

        async def open_page(*, dependants=False, **options):
            meter = Meter()
            account = await stack.enter_async_context(
                CosmosAccount.embedded(emulator, on_request_charge=meter.charged)
            )
            service = CosmosSessionService(account=account)
            if dependants:
                options["dependants"] = await Dependants.on(account)
            explorer = Explorer(service, meter, **options)
            address = await stack.enter_async_context(explorer.served())
            http = await stack.enter_async_context(
                aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))
            )
            async with http.get(address) as response:
                assert response.status == 200
            return Visitor(http, address, explorer, service, options.get("dependants"), meter)

        yield open_page
