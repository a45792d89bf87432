"""Who may see the page: a browser that was given its address, and no other site in it."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

PREFIX: Final = "/_explorer"
COOKIE: Final = "cosmos-emulator-explorer"
# A form of another site cannot send it, and a script of one would have to ask first.
OWN_HEADER: Final = "x-explorer"

# Only the page's own script and style; nobody frames it, and it sends no form.
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
# Not a redirect: after a click on another site the browser would withhold the cookie.
_OPENED: Final = f"""\
<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Cosmos emulator</title><link rel="icon" href="data:,">
<meta http-equiv="refresh" content="0;url={PREFIX}/"><p><a href="{PREFIX}/">Data</a></p></html>
"""

Handler = Callable[[web.Request], Awaitable[web.Response]]


class Guard:
    """The secret in the address, and the cookie that replaces it."""

    def __init__(self) -> None:
        self._secret = secrets.token_urlsafe(24)
        self._cookie = secrets.token_urlsafe(24)

    @property
    def path(self) -> str:
        """What opens the page: part of the address that the command prints."""
        return f"{PREFIX}/open?key={self._secret}"

    async def guarded(self, request: web.Request, handler: Handler) -> web.Response:
        response = await self._decided(request, handler)
        response.headers.update(_HEADERS)
        return response

    async def _decided(self, request: web.Request, handler: Handler) -> web.Response:
        if request.path == f"{PREFIX}/open":
            if not _same(request.query.get("key", ""), self._secret):
                return refusal("Open the address that the emulator printed.")
            response = web.Response(text=_OPENED, content_type="text/html")
            response.set_cookie(COOKIE, self._cookie, httponly=True, samesite="Strict", path=PREFIX)
            return response
        if not _same(request.cookies.get(COOKIE, ""), self._cookie):
            return refusal("Open the address that the emulator printed.")
        if request.method == "POST" and OWN_HEADER not in request.headers:
            return refusal("Only the page itself may ask.")
        return await handler(request)


def refusal(reason: str) -> web.Response:
    return web.Response(status=403, text=f"{reason}\n")


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())
