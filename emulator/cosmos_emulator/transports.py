"""Transports for Microsoft's SDK, without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

try:
    import aiohttp
    from azure.core.exceptions import (
        IncompleteReadError,
        ServiceRequestError,
        ServiceRequestTimeoutError,
        ServiceResponseError,
        ServiceResponseTimeoutError,
    )
    from azure.core.pipeline.transport import (
        AsyncHttpResponse,
        AsyncHttpTransport,
        HttpRequest,
        HttpResponse,
        HttpTransport,
    )
    from azure.core.utils import CaseInsensitiveDict
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"The transports of azure-cosmos need {missing.name}: pip install 'cosmos-emulator[azure]'",
        name=missing.name,
    ) from None

from cosmos_emulator.faults import ConnectionDropped
from cosmos_emulator.messages import Flaw, Request, Response

if TYPE_CHECKING:
    from cosmos_emulator.emulator import Emulator

DEFAULT_TIMEOUT = 300.0  # azure-core's, where a request names none


class EmulatorAsyncTransport(AsyncHttpTransport[HttpRequest, AsyncHttpResponse]):
    """Hands the requests of an `azure.cosmos.aio` client to an emulator."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator

    async def send(self, request: HttpRequest, **kwargs: Any) -> AsyncHttpResponse:
        try:
            response = await self._emulator.exchange_async(_incoming(request))
        except ConnectionDropped:
            # What azure-core's aiohttp transport raises when a server closes the connection.
            error = aiohttp.ServerDisconnectedError()
            raise ServiceRequestError(error, error=error) from error
        if response.flaw is not None:
            await _endure(response.flaw, kwargs)
        return _AsyncResponse(request, response)

    async def open(self) -> None:
        """There is nothing to open."""

    async def close(self) -> None:
        """The emulator outlives its clients."""

    async def __aenter__(self) -> EmulatorAsyncTransport:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None


class EmulatorTransport(HttpTransport[HttpRequest, HttpResponse]):
    """Hands the requests of an `azure.cosmos` client to an emulator."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator

    def send(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        try:
            response = self._emulator.exchange(_incoming(request))
        except ConnectionDropped:
            # What azure-core's requests transport raises when a server closes the connection.
            import requests  # only where something fails: it takes a moment to import
            import urllib3

            cause = urllib3.exceptions.ProtocolError("Connection aborted.")
            error = requests.exceptions.ConnectionError(cause)
            raise ServiceResponseError(error, error=error) from error
        if response.flaw is not None:
            self._endure(response.flaw, kwargs)
        return _SyncResponse(request, response)

    def open(self) -> None:
        """There is nothing to open."""

    def close(self) -> None:
        """The emulator outlives its clients."""

    def _endure(self, flaw: Flaw, options: dict[str, Any]) -> None:
        """Behaves like azure-core's requests transport when no answer comes."""
        import requests

        if flaw.kind == "cut":
            cut = requests.exceptions.ChunkedEncodingError("Connection broken: IncompleteRead")
            raise IncompleteReadError(cut, error=cut) from cut
        patience = _patience(flaw, options)
        if self._emulator.closed.wait(patience):
            error = requests.exceptions.ConnectionError("Connection aborted.")
            raise ServiceResponseError(error, error=error) from error
        if flaw.kind == "unreachable":
            late = requests.exceptions.ConnectTimeout(f"no connection in {patience} seconds")
            raise ServiceRequestTimeoutError(late, error=late) from late
        timeout = requests.exceptions.ReadTimeout(f"no answer in {patience} seconds")
        raise ServiceResponseTimeoutError(timeout, error=timeout) from timeout

    def __enter__(self) -> EmulatorTransport:
        return self

    def __exit__(self, *_: object) -> None:
        return None


async def _endure(flaw: Flaw, options: dict[str, Any]) -> None:
    """Behaves like azure-core's aiohttp transport when no answer comes."""
    if flaw.kind == "cut":
        cut = aiohttp.ClientPayloadError("Response payload is not completed")
        raise IncompleteReadError(cut, error=cut) from cut
    patience = _patience(flaw, options)
    if patience is None:
        await asyncio.Event().wait()  # Until the caller is cancelled.
    else:
        await asyncio.sleep(patience)
    if flaw.kind == "unreachable":
        late = aiohttp.ConnectionTimeoutError(f"no connection in {patience} seconds")
        raise ServiceRequestTimeoutError(late, error=late) from late
    timeout = aiohttp.SocketTimeoutError(f"no answer in {patience} seconds")
    raise ServiceResponseTimeoutError(timeout, error=timeout) from timeout


def _patience(flaw: Flaw, options: dict[str, Any]) -> float | None:
    """How long a client waits, by the options of its request; None: forever."""
    name = "connection_timeout" if flaw.kind == "unreachable" else "read_timeout"
    patience: float | None = options.get(name, DEFAULT_TIMEOUT)
    if flaw.drip is not None and (patience is None or flaw.drip < patience):
        return None  # Every blank that arrives restarts the timeout.
    return patience


def _incoming(request: HttpRequest) -> Request:
    data: Any = request.data
    body = data.encode() if isinstance(data, str) else bytes(data or b"")
    if not isinstance(request.headers, CaseInsensitiveDict):
        request.headers = CaseInsensitiveDict(request.headers)
    url = urlsplit(request.url)
    headers = dict(CaseInsensitiveDict.lowerkey_items(request.headers))
    return Request(request.method, url.path, headers, body)


class _AsyncResponse(AsyncHttpResponse):
    def __init__(self, request: HttpRequest, response: Response) -> None:
        _fill(self, request, response)

    async def load_body(self) -> None:
        """Does nothing: the body is already loaded."""

    def body(self) -> bytes:
        content: bytes = self.internal_response.body
        return content


class _SyncResponse(HttpResponse):
    def __init__(self, request: HttpRequest, response: Response) -> None:
        _fill(self, request, response)

    def body(self) -> bytes:
        content: bytes = self.internal_response.body
        return content

    def stream_download(self, pipeline: Any, **kwargs: Any) -> Iterator[bytes]:
        yield self.body()


def _fill(target: Any, request: HttpRequest, response: Response) -> None:
    """Sets what azure-core's base class of responses declares."""
    target.request = request
    target.internal_response = response
    target.status_code = response.status
    target.headers = CaseInsensitiveDict(response.headers)
    target.reason = None
    target.content_type = response.headers.get("content-type")
    target.block_size = None
