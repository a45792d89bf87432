"""As much of Blob Storage as an artifact service needs, on a real socket: it can fall silent."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from urllib.parse import unquote
from xml.sax.saxutils import escape

from aiohttp import web

URL_PATH = "/account/artifacts/"


class BlobServer:
    """`mood` says how it answers: `well`, `silent` (it takes the connection and reads nothing),
    `stalls` (headers and half of the body, then nothing) or `slow` (a part every `pause`)."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.blocks: dict[str, dict[str, bytes]] = {}
        self.requests: list[str] = []
        self.mood = "well"
        self.pause = 0.2
        self.url = ""
        self._ended = asyncio.Event()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        name = unquote(request.path.removeprefix(URL_PATH))
        self.requests.append(f"{request.method} {request.query.get('comp', '')}".strip())
        if self.mood == "silent":
            await self._ended.wait()
            return web.Response(status=503)
        if self.mood == "stalls" and request.method != "GET":
            return await self._stalled(request, web.StreamResponse(headers={"Content-Length": "9"}))
        if request.query.get("comp") == "list":
            return await self._send(request, 200, self._listing(request.query.get("prefix", "")))
        if request.method == "PUT":
            return await self._put(request, name)
        if name not in self.blobs:
            return web.Response(status=404, headers={"x-ms-error-code": "BlobNotFound"})
        if request.method == "DELETE":
            del self.blobs[name]
            return web.Response(status=202)
        data = self.blobs[name]
        first, last = request.headers["x-ms-range"].removeprefix("bytes=").split("-")
        wanted = data[int(first) : int(last) + 1]
        if not wanted:
            return web.Response(status=416, headers={"x-ms-error-code": "InvalidRange"})
        end = int(first) + len(wanted) - 1
        return await self._send(request, 206, wanted, f"bytes {first}-{end}/{len(data)}")

    async def _put(self, request: web.Request, name: str) -> web.Response:
        parts = []
        async for part in request.content.iter_chunked(2 * 1024 * 1024):
            parts.append(part)
            if self.mood == "slow":
                await asyncio.sleep(self.pause)
        body = b"".join(parts)
        if request.query.get("comp") == "block":
            self.blocks.setdefault(name, {})[request.query["blockid"]] = body
        elif request.query.get("comp") == "blocklist":
            self.blobs[name] = b"".join(each for _, each in sorted(self.blocks.pop(name).items()))
        else:
            self.blobs[name] = body
        return web.Response(status=201)

    async def _send(
        self, request: web.Request, status: int, body: bytes, content_range: str = ""
    ) -> web.StreamResponse:
        headers = {"Content-Length": str(len(body)), "ETag": '"1"', "x-ms-blob-type": "BlockBlob"}
        headers |= {"Content-Range": content_range} if content_range else {}
        headers["Content-Type"] = "application/octet-stream" if content_range else "application/xml"
        response = web.StreamResponse(status=status, headers=headers)
        if self.mood == "stalls":
            return await self._stalled(request, response, body[: len(body) // 2])
        await response.prepare(request)
        count = 20 if self.mood == "slow" else 1
        size = -(-len(body) // count)
        for start in range(0, len(body), size):
            await response.write(body[start : start + size])
            if self.mood == "slow":
                await asyncio.sleep(self.pause)
        return response

    async def _stalled(
        self, request: web.Request, response: web.StreamResponse, body: bytes = b""
    ) -> web.StreamResponse:
        await response.prepare(request)
        if body:
            await response.write(body)
        await self._ended.wait()
        return response

    def _listing(self, prefix: str) -> bytes:
        names = (escape(each) for each in sorted(self.blobs) if each.startswith(prefix))
        blobs = "".join(
            f"<Blob><Name>{each}</Name><Properties><BlobType>BlockBlob</BlobType></Properties></Blob>"
            for each in names
        )
        return (
            '<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="artifacts">'
            f"<Blobs>{blobs}</Blobs><NextMarker/></EnumerationResults>"
        ).encode()


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[BlobServer]:
    server = BlobServer()
    application = web.Application(client_max_size=1 << 30)
    application.router.add_route("*", "/{rest:.*}", server._answer)
    runner = web.AppRunner(application, shutdown_timeout=0)
    await runner.setup()
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
    listening.bind(("127.0.0.1", 0))
    await web.SockSite(runner, listening).start()
    port = listening.getsockname()[1]
    server.url = f"http://127.0.0.1:{port}{URL_PATH.rstrip('/')}?sig=none"
    try:
        yield server
    finally:
        server._ended.set()
        await runner.cleanup()
