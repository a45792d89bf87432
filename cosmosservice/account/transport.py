"""How requests travel: the SDK's own transport with an HTTP session of ours."""

from __future__ import annotations

from urllib.request import getproxies

import aiohttp
from azure.core.pipeline.transport import AioHttpTransport

# Seconds that an unused connection stays open, as in Microsoft's SDKs of other languages. A model
# often thinks for longer than aiohttp's 15, and the next event would have to wait for TCP and TLS.
# Should the other side have closed it just then, the request is sent again.
KEEP_ALIVE = 60


class Transport(AioHttpTransport):  # type: ignore[misc]  # azure-core loads it when asked
    """Keeps connections longer, and reads the environment only if that names a proxy.

    Otherwise aiohttp asks a thread for the proxy and another one for ~/.netrc before every request:
    as much work as all the rest of it. And credentials of ~/.netrc do not belong there: a request
    with two kinds of credentials fails.
    """

    session: aiohttp.ClientSession | None

    async def open(self) -> None:
        if self.session is None:
            self.session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(keepalive_timeout=KEEP_ALIVE),
                trust_env=not getproxies().keys().isdisjoint(("http", "https")),
                # As the SDK has it: Cosmos DB sets no cookies, and azure-core decompresses.
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        await super().open()
