"""The HTTP transport: the SDK's own, with an HTTP session of this package."""

from __future__ import annotations

import io
from typing import Any
from urllib.request import getproxies

import aiohttp
from azure.core.pipeline.transport import AioHttpTransport

# Seconds that an unused connection stays open, as in Microsoft's SDKs for other languages. A model
# often thinks for longer than aiohttp's 15, and the next event would have to wait for TCP and TLS.
# If the server has just closed the connection, the request is sent again.
KEEP_ALIVE = 60

# Characters from which a body is given to aiohttp as a stream. It warns of a string with more than
# a million bytes; a character has at most four.
LARGE = 256 * 1024


class Transport(AioHttpTransport):  # type: ignore[misc]  # azure-core loads it when asked
    """Keeps connections open longer, and reads the environment only if it names a proxy.

    By default aiohttp looks up the proxy in one thread and ~/.netrc in another before each request,
    which costs as much as the rest of the request. Credentials from ~/.netrc would also make a
    request fail, since it already has its own.
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

    def _get_request_data(self, request: Any) -> Any:
        data = super()._get_request_data(request)
        if isinstance(data, str) and len(data) >= LARGE:
            return io.BytesIO(data.encode())  # made for every attempt, which reads it once
        return data
