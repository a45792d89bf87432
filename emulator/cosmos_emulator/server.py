"""The HTTP server: on loopback, unless told otherwise."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ssl
from collections.abc import Collection
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

try:
    from aiohttp import web
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "The server needs aiohttp: pip install 'cosmos-emulator[server]'", name="aiohttp"
    ) from None

from cosmos_emulator.auth import LOOPBACK
from cosmos_emulator.emulator import Emulator
from cosmos_emulator.errors import Forbidden
from cosmos_emulator.explorer.pages import Explorer
from cosmos_emulator.faults import ConnectionDropped
from cosmos_emulator.messages import Flaw, Request, Response

HOST = "127.0.0.1"
# Above the service's limits, so that the gateway gets to refuse in the service's own words.
MAX_HEADER = 64 * 1024
MAX_BODY = 32 * 1024 * 1024

# What a client costs that has not proved who it is.
MOST_CONNECTIONS = 500
IDLE_SECONDS = 75.0  # without a request, also the first one
BODY_SECONDS = 30.0
UNSIGNED_BODY = 64 * 1024  # bytes that are read before the signature is checked

# How often to check whether the client of an unanswered connection has left.
POLL = 0.02


class PortInUse(Exception):
    """Another program listens on the port."""


class Server:
    """Serves one emulator on one port; port 0 takes any that is free. Requests must name it by a
    loopback name or by one of `allowed_hosts`."""

    def __init__(
        self,
        emulator: Emulator,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        *,
        host: str = HOST,
        allowed_hosts: Collection[str] = (),
        explorer: Explorer | None = None,
    ) -> None:
        """`allowed_hosts`: names by which clients may address the server, besides those of
        loopback; `*` allows any."""
        self._emulator = emulator
        self._host = host
        self._allowed = {*LOOPBACK, host.lower(), *(name.lower() for name in allowed_hosts)}
        self._is_allowed = lru_cache(maxsize=16)(self._names_this_server)
        self._explorer = explorer
        self._port = port
        self._tls = tls
        self._runner: web.AppRunner | None = None
        self._stopping = asyncio.Event()

    @property
    def endpoint(self) -> str:
        return f"{self._scheme}://{self._host}:{self._port}/"

    @property
    def _scheme(self) -> str:
        return "https" if self._tls else "http"

    async def start(self) -> str:
        """Starts listening; returns the endpoint."""
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(
            app,
            access_log=None,
            max_line_size=MAX_HEADER,
            max_field_size=MAX_HEADER,
            keepalive_timeout=IDLE_SECONDS,
            lingering_time=1.0,
        )
        await runner.setup()
        _limit_connections(runner.server)
        try:
            await web.TCPSite(runner, self._host, self._port, ssl_context=self._tls).start()
        except OSError as error:
            await runner.cleanup()
            if error.errno == errno.EADDRINUSE:
                raise PortInUse(f"port {self._port} is in use by another program") from error
            raise
        self._runner = runner
        self._port = runner.addresses[0][1]
        return self.endpoint

    async def stop(self) -> None:
        self._stopping.set()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def _names_this_server(self, host: str) -> bool:
        """Whether a Host header names this server. A web page whose own name is made to resolve to
        this address would otherwise read the store, because the default key is public."""
        name = (urlsplit(f"//{host}").hostname or "").lower()
        return name in self._allowed or name.endswith(".localhost") or "*" in self._allowed

    async def _handle(self, incoming: web.Request) -> web.StreamResponse:
        if not self._is_allowed(incoming.host):
            refusal = Forbidden(
                f"The host '{incoming.host[:100]}' is not allowed. Start the emulator with "
                "--allow-host to serve it under this name."
            ).response("")
            return web.Response(status=403, headers=refusal.headers, body=refusal.body)
        if self._explorer is not None and self._explorer.serves(incoming):
            return await self._explorer.handle(incoming)
        request = Request(
            incoming.method,
            incoming.raw_path,
            {name.lower(): value for name, value in incoming.headers.items()},
            awaited=lambda: _is_there(incoming),
        )
        try:
            await self._read_body(incoming, request)
        except TimeoutError:
            return _hang_up(incoming)
        try:
            response = await self._emulator.exchange_async(
                request, f"{self._scheme}://{incoming.host}/"
            )
        except ConnectionDropped:
            return _hang_up(incoming)
        if response.flaw is not None:
            return await self._send_flawed(incoming, response, response.flaw)
        return web.Response(
            status=response.status, headers=response.headers, body=response.body or None
        )

    async def _read_body(self, incoming: web.Request, request: Request) -> None:
        """What a stranger sends is not read: the gateway refuses it without its body."""
        length = incoming.content_length
        is_small = length is not None and length <= UNSIGNED_BODY
        if incoming.can_read_body and (is_small or self._emulator.recognises(request)):
            if incoming.content.is_eof():  # it is here already
                request.body = await incoming.read()
                return
            async with asyncio.timeout(BODY_SECONDS):
                request.body = await incoming.read()

    async def _send_flawed(
        self, incoming: web.Request, response: Response, flaw: Flaw
    ) -> web.StreamResponse:
        """Sends as much as the flaw allows, and waits for the client to leave."""
        if flaw.kind in ("endless", "cut"):
            answer = web.StreamResponse(status=response.status, headers=response.headers)
            if flaw.kind == "cut":
                answer.content_length = len(response.body)
            else:
                answer.enable_chunked_encoding()
            with contextlib.suppress(ConnectionError):
                await answer.prepare(incoming)
                await answer.write(response.body[: len(response.body) // 2])
                while flaw.kind == "endless" and await self._stays(incoming, flaw.drip or POLL):
                    if flaw.drip is not None:
                        await answer.write(b" ")
            if flaw.kind == "cut" and incoming.transport is not None:
                incoming.transport.close()  # What was written still goes out.
            elif incoming.transport is not None:
                incoming.transport.abort()
            return answer
        while await self._stays(incoming, POLL):
            pass
        return _hang_up(incoming)

    async def _stays(self, incoming: web.Request, seconds: float) -> bool:
        """Waits; returns whether client and server are still there."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
        return _is_there(incoming) and not self._stopping.is_set()


def _limit_connections(server: web.Server | None) -> None:
    assert server is not None, "the runner has been set up"
    connection_made = server.connection_made

    def connected(handler: Any, transport: asyncio.Transport) -> None:
        connection_made(handler, transport)
        if len(server.connections) > MOST_CONNECTIONS:
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, transport.close)  # once the handler has begun to wait

    server.connection_made = connected  # type: ignore[method-assign]  # aiohttp has no setting


def _is_there(incoming: web.Request) -> bool:
    """Whether the client has not left."""
    transport = incoming.transport
    return not (transport is None or transport.is_closing())


def _hang_up(incoming: web.Request) -> web.StreamResponse:
    """Closes the socket; aiohttp requires a response, which is never sent."""
    if incoming.transport is not None:
        incoming.transport.abort()
    return web.Response()
