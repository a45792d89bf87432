"""The HTTP server, on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ssl

from aiohttp import web

from .emulator import Emulator
from .faults import ConnectionDropped
from .messages import Flaw, Request, Response

HOST = "127.0.0.1"
# Above the service's limits, so that the gateway gets to refuse in the service's own words.
MAX_HEADER = 64 * 1024
MAX_BODY = 32 * 1024 * 1024

# How often to check whether the client of an unanswered connection has left.
POLL = 0.02


class PortInUse(Exception):
    """Another program listens on the port."""


class Server:
    """Serves one emulator on one port; port 0 takes any that is free."""

    def __init__(
        self, emulator: Emulator, port: int = 0, tls: ssl.SSLContext | None = None
    ) -> None:
        self._emulator = emulator
        self._port = port
        self._tls = tls
        self._runner: web.AppRunner | None = None
        self._stopping = asyncio.Event()

    @property
    def endpoint(self) -> str:
        return f"{self._scheme}://{HOST}:{self._port}/"

    @property
    def _scheme(self) -> str:
        return "https" if self._tls else "http"

    async def start(self) -> str:
        """Start listening; returns the endpoint."""
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(
            app, access_log=None, max_line_size=MAX_HEADER, max_field_size=MAX_HEADER
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, HOST, self._port, ssl_context=self._tls).start()
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

    async def _handle(self, incoming: web.Request) -> web.StreamResponse:
        request = Request(
            incoming.method,
            incoming.raw_path,
            {name.lower(): value for name, value in incoming.headers.items()},
            await incoming.read(),
        )
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

    async def _send_flawed(
        self, incoming: web.Request, response: Response, flaw: Flaw
    ) -> web.StreamResponse:
        """Send as much as the flaw allows, and wait for the client to leave."""
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
        """Wait; returns whether client and server are still there."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
        transport = incoming.transport
        return not (self._stopping.is_set() or transport is None or transport.is_closing())


def _hang_up(incoming: web.Request) -> web.StreamResponse:
    """Close the socket; aiohttp requires a response, which is never sent."""
    if incoming.transport is not None:
        incoming.transport.abort()
    return web.Response()
