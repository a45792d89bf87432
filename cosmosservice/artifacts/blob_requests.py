"""How requests to Blob Storage are sent: attempts, deadline, and the error that a failure becomes.

A request of many megabytes takes as long as the network needs. So every byte that is sent or
received counts as an answer, and the deadline ends only what stands still.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ResourceNotFoundError,
)
from azure.core.pipeline.transport import AioHttpTransport
from azure.storage.blob.aio import LinearRetry

from cosmosservice.account.charges import current_operation
from cosmosservice.account.retries import REQUEST
from cosmosservice.errors import (
    AuthenticationError,
    ContainerMismatchError,
    StorageError,
    ThrottledError,
    UnavailableError,
)
from cosmosservice.hosting.deadline import answered, attempt_in_time, moved, remaining

T = TypeVar("T")

UPLOAD, READ, REMOVAL = "upload", "read", "removal"
_OUTCOMES = {
    UPLOAD: "No version was stored.",
    READ: "Nothing was stored by this request.",
    REMOVAL: "Whether the bytes were removed is not known; sending it again is safe.",
}

_SINGLE_PUT = 64 * 1024 * 1024
SINGLE_GET = 32 * 1024 * 1024
_BLOCK = 256 * 1024
_LOOK_SECONDS = 0.1  # how often a long response is looked at
_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})


def client_options(piece_bytes: int) -> dict[str, Any]:
    """The SDK client's settings. It does not retry: `send` does, within the deadline."""
    return {
        "transport": Transport(),
        "retry_policy": LinearRetry(retry_total=0),
        "max_single_put_size": _SINGLE_PUT,
        "max_single_get_size": SINGLE_GET,
        "max_chunk_get_size": SINGLE_GET,
        "max_block_size": piece_bytes,
    }


class Transport(AioHttpTransport):  # type: ignore[misc]
    """Tells the deadline of the operation of every byte that moves."""

    async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
        body = request.data
        if isinstance(body, bytes) and len(body) > _BLOCK:
            request.data = _in_blocks(body)
        try:
            response: Any = await super().send(request, stream=stream, **options)
        finally:
            request.data = body  # the SDK may send it again, with a token
        moved()
        if stream:
            await _read(response)
        return response


async def _in_blocks(body: bytes) -> AsyncIterator[bytes]:
    view = memoryview(body)
    for start in range(0, len(body), _BLOCK):
        yield bytes(view[start : start + _BLOCK])
        moved()  # asked for the next one, once the socket has taken this one


async def _read(response: Any) -> None:
    """Reads the body into the response, where the SDK then finds it."""
    content = response.internal_response.content
    reading = asyncio.ensure_future(response.read())
    try:
        while not reading.done():
            before = content.total_bytes
            await asyncio.wait([reading], timeout=_LOOK_SECONDS)
            if content.total_bytes > before:
                moved()
        await reading
    finally:
        reading.cancel()


async def send(
    kind: str, request: Callable[[], Awaitable[T]], *, missing: tuple[int, ...] = ()
) -> T:
    """The response. Sends again where that may help. Raises the package's exceptions; for a
    missing range or blob, the SDK's, if its status is one of `missing`."""
    problem: Exception | None = None
    for attempt in REQUEST:
        await REQUEST.pause(attempt)
        if not remaining():
            break
        try:
            found = await attempt_in_time(request(), last=REQUEST.is_last(attempt))
            answered()
            return found
        except HttpResponseError as error:
            status = error.status_code
            if status is not None:
                answered()
            if status in missing and _code(error) != "ContainerNotFound":
                raise
            problem = _translated(kind, error)
            if status is not None and status not in _TRANSIENT:
                break
        except (AzureError, TimeoutError) as error:
            problem = _translated(kind, error)
            if isinstance(error, ClientAuthenticationError):
                break
    if problem is None:
        problem = UnavailableError(
            f"{_what(kind)} was not sent: the operation has reached its timeout. Nothing was"
            " stored by this request."
        )
    # Outside the handler: the SDK's exceptions carry the request with its authorization.
    raise problem


def _what(kind: str) -> str:
    return f"{current_operation.get()}: the {kind} in Blob Storage"


def _translated(kind: str, error: Exception) -> Exception:
    status = getattr(error, "status_code", None)
    what, outcome = _what(kind), _OUTCOMES[kind]
    if isinstance(error, ResourceNotFoundError):
        return ContainerMismatchError(
            f"{current_operation.get()}: there is no such blob container, or this identity may not"
            " see it. Create it with the Bicep file in deploy/, or check COSMOSDB_ARTIFACT_BLOBS."
        )
    if status in (401, 403) or isinstance(error, ClientAuthenticationError):
        return AuthenticationError(
            f"{what} was refused ({status or 401}): the identity needs the role Storage Blob Data"
            f" Contributor on the container, or the key is wrong. {outcome}",
            status=status or 401,
        )
    if status == 429 or _code(error) == "ServerBusy":
        return ThrottledError(
            f"{what} was throttled until the retries were used up. {outcome}", status=status
        )
    if status is None or status in _TRANSIENT:
        silence = "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
        reason = f"answer {status}" if status else silence
        return UnavailableError(
            f"{what} could not be completed ({reason}). {outcome}", status=status
        )
    reason = str(getattr(error, "reason", None) or _code(error) or type(error).__name__)
    return StorageError(f"{what} failed with {status}: {reason}. {outcome}", status=status)


def _code(error: Exception) -> str:
    return str(getattr(error, "error_code", "") or "")
