"""Access control: only requests from this machine, with the page's address, from no other site."""

from __future__ import annotations

import hashlib
import hmac
import html
import secrets
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

OPEN: Final = "/open"
STATIC: Final = "/static/"

# Only scripts and styles from the page's own files; no other site may frame it or get its forms.
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # without a referrer, a form's origin is unknown
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_OPENED: Final = """\
<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Sessions</title><link rel="icon" href="data:,">
<meta http-equiv="refresh" content="0;url={0}"><p><a href="{0}">Sessions</a></p></html>
"""


class Guard:
    """The secret in the address, the cookie that replaces it, and the token of forms."""

    def __init__(self, *, write: bool, first: str = "/") -> None:
        self.write = write
        self._first = html.escape(first)
        self.secret = secrets.token_urlsafe(24)
        self.form_token = secrets.token_urlsafe(24)
        self._cookie = secrets.token_urlsafe(24)
        # All ports of a host share cookies, so each server has its own.
        self._name = "explore-" + hashlib.sha256(self.secret.encode()).hexdigest()[:12]

    async def protect(self, request: web.Request, response: web.StreamResponse) -> None:
        """Adds headers to every response before it is sent, even to one that never ends."""
        response.headers.update(_HEADERS)
        if request.path.startswith(STATIC):  # not secret: cached, and revalidated
            response.headers["Cache-Control"] = "no-cache"

    @property
    def path(self) -> str:
        """The path that opens the page, as part of the address that the command prints."""
        return f"{OPEN}?key={self.secret}"

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not _is_local(request):
            return _refused("This page is only served to this machine.")
        if request.path == OPEN:
            return self._open(request)
        if request.path.startswith(STATIC):
            return await handler(request)
        if not _same(request.cookies.get(self._name, ""), self._cookie):
            return _refused("Open the address that `cosmosservice explore` printed.")
        if request.method not in ("GET", "HEAD"):
            problem = await self._problem_of_write(request)
            if problem is not None:
                return _refused(problem)
        return await handler(request)

    def _open(self, request: web.Request) -> web.Response:
        if not _same(request.query.get("key", ""), self.secret):
            return _refused("Open the address that `cosmosservice explore` printed.")
        # Not a redirect: after a click on another site the browser would withhold the cookie.
        response = web.Response(text=_OPENED.format(self._first), content_type="text/html")
        response.set_cookie(self._name, self._cookie, httponly=True, samesite="Strict", path="/")
        return response

    async def _problem_of_write(self, request: web.Request) -> str | None:
        if not self.write:
            return "This page is read-only. To allow changes: cosmosservice explore --write"
        origin = request.headers.get("Origin")
        if origin is not None and origin != f"http://{request.host}":
            return "The form was sent by another site. Nothing was changed."
        form = await request.post()
        if not _same(str(form.get("token", "")), self.form_token):
            return "The form has expired: reload the page. Nothing was changed."
        return None


def _is_local(request: web.Request) -> bool:
    """Checks the host name: another site may point its own name to this machine."""
    address = request.transport.get_extra_info("sockname") if request.transport else None
    hosts = () if address is None else (f"127.0.0.1:{address[1]}", f"localhost:{address[1]}")
    return request.host in hosts


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


def _refused(reason: str) -> web.Response:
    return web.Response(status=403, text=reason + "\n")
