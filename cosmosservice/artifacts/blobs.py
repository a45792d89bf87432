"""Payloads in Azure Blob Storage: a blob for each upload, in the folder of its scope."""

from __future__ import annotations

import base64
import itertools
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from cosmosservice.account.charges import current_operation
from cosmosservice.account.retries import BLOB
from cosmosservice.artifacts.bodies import BLOBS, MissingPiece
from cosmosservice.artifacts.digests import BLAKE3
from cosmosservice.artifacts.keys import Scope
from cosmosservice.errors import (
    AuthenticationError,
    ConfigurationError,
    ContainerMismatchError,
    StorageError,
    ThrottledError,
    UnavailableError,
)
from cosmosservice.hosting.deadline import answered

if TYPE_CHECKING:
    from azure.storage.blob.aio import ContainerClient

T = TypeVar("T")

PIECE_BYTES = 4 * 1024 * 1024
_SINGLE_PUT = 64 * 1024 * 1024
_SINGLE_GET = 32 * 1024 * 1024
_AT_ONCE = 4
_TRANSIENT = frozenset({408, 500, 502, 503, 504})


class BlobBodies:
    """One container of a storage account, on one event loop."""

    name = BLOBS
    digest = BLAKE3

    def __init__(
        self, client: ContainerClient, to_close: Any = None, piece_bytes: int = PIECE_BYTES
    ) -> None:
        self._client = client
        self._to_close = to_close
        self.piece_bytes = piece_bytes
        self.run = max(1, _SINGLE_GET // PIECE_BYTES)

    @classmethod
    def open(
        cls, where: str, container: str, credential: Any = None, piece_bytes: int = PIECE_BYTES
    ) -> BlobBodies:
        """`where`: the container's URL, or a connection string of the account."""
        options = client_options(piece_bytes)
        from azure.storage.blob.aio import ContainerClient

        if is_connection_string(where):
            client = ContainerClient.from_connection_string(where, container, **options)
            return cls(client, None, piece_bytes)
        made = None
        if urlsplit(where).query:  # a shared access signature
            credential = None
        elif credential is None:
            from cosmosservice.account.credentials import default_credential

            credential = made = default_credential()
        client = ContainerClient.from_container_url(where, credential=credential, **options)
        return cls(client, made, piece_bytes)

    async def close(self) -> None:
        await self._client.close()
        if self._to_close is not None:
            await self._to_close.close()

    async def ensure(self) -> None:
        """Creates the container if it does not exist."""
        from azure.core.exceptions import ResourceExistsError

        async def create() -> None:
            try:
                await self._client.create_container()
            except ResourceExistsError:
                return

        await _answered(create())

    async def examine(self) -> None:
        """Raises an error unless this identity may write, read and delete here. Leaves no blob
        behind."""
        name = "cosmosservice-doctor"
        await _answered(self._client.upload_blob(name, b"", overwrite=True))
        await self.get_range(name, 0, 1)
        await _answered(self._client.delete_blob(name))

    # --- Bodies

    async def put(self, scope: Scope, upload: str, number: int, data: bytes) -> None:
        blob = self._client.get_blob_client(_name(scope, upload))
        await _answered(blob.stage_block(_block(number), data, length=len(data)))

    async def put_all(self, scope: Scope, upload: str, data: bytes) -> None:
        from azure.core.exceptions import ResourceExistsError

        async def send() -> None:
            try:
                await self._client.upload_blob(
                    _name(scope, upload),
                    data,
                    length=len(data),
                    overwrite=False,
                    max_concurrency=_AT_ONCE,
                )
            except ResourceExistsError:
                return  # nobody else uses this name: the response was lost

        await _answered(send())

    async def seal(self, scope: Scope, upload: str, count: int) -> None:
        from azure.storage.blob import BlobBlock

        blob = self._client.get_blob_client(_name(scope, upload))
        blocks = [BlobBlock(_block(number)) for number in range(count)]
        await _answered(blob.commit_block_list(blocks))

    async def get(self, scope: Scope, upload: str, number: int, start: int, limit: int) -> bytes:
        return await self.get_range(_name(scope, upload), start, limit)

    async def get_range(self, name: str, start: int, length: int) -> bytes:
        from azure.core.exceptions import HttpResponseError, ResourceNotFoundError

        async def read() -> bytes:
            found = await self._client.download_blob(name, offset=start, length=length)
            # It is already in memory, and readall would copy it twice.
            parts = [bytes(each) async for each in found.chunks()]
            return parts[0] if len(parts) == 1 else b"".join(parts)

        try:
            return await _answered(read(), missing=True)
        except ResourceNotFoundError:
            raise MissingPiece("its blob is missing") from None
        except HttpResponseError:
            raise MissingPiece("its blob is shorter than the artifact says") from None

    async def remove(self, scope: Scope, upload: str, pieces: int | None = None) -> int:
        from azure.core.exceptions import ResourceNotFoundError

        name = _name(scope, upload)

        async def delete() -> int:
            try:
                await self._client.delete_blob(name)
            except ResourceNotFoundError:
                return 0
            return 1

        if await _answered(delete()):
            return 1
        # An empty blob in their place discards the blocks of an interrupted upload.
        found = [each async for each in self._names(name, include=["uncommittedblobs"])]
        if not found:
            return 0
        await _answered(self._client.upload_blob(name, b"", overwrite=True))
        return await _answered(delete())

    async def uploads(self, scope: Scope) -> AsyncIterator[str]:
        prefix = f"{scope.partition}/"
        async for name in self._names(prefix, include=["uncommittedblobs"]):
            yield name.removeprefix(prefix)

    async def copy(
        self, source: Scope, upload: str, target: Scope, name: str, sizes: Sequence[int]
    ) -> None:
        """Copies inside the storage account, without downloading."""
        from azure.core import MatchConditions
        from azure.core.exceptions import (
            ResourceExistsError,
            ResourceModifiedError,
            ResourceNotFoundError,
        )

        original = self._client.get_blob_client(_name(source, upload))
        blob = self._client.get_blob_client(_name(target, name))

        async def begin() -> None:
            try:
                await blob.start_copy_from_url(
                    original.url, match_condition=MatchConditions.IfMissing
                )
            except (ResourceExistsError, ResourceModifiedError):
                return  # begun before, by this or another process

        try:
            await _answered(begin(), missing=True)
        except ResourceNotFoundError:
            raise MissingPiece("its blob is missing") from None
        for look in itertools.count():
            await BLOB.pause(look)
            status = (await _answered(blob.get_blob_properties())).copy.status
            if status == "success":
                return
            if status != "pending":
                raise UnavailableError(
                    f"{current_operation.get()}: the copy of a blob ended as {status}. The fork is"
                    " not complete; reading it continues."
                )

    async def partitions(self) -> AsyncIterator[str]:
        """The scopes that have blobs."""
        last = None
        async for name in self._names("", include=["uncommittedblobs"]):
            partition, slash, _ = name.partition("/")
            if slash and partition != last:
                last = partition
                yield partition

    async def _names(self, prefix: str, include: list[str]) -> AsyncIterator[str]:
        pages = self._client.list_blobs(name_starts_with=prefix, include=include).by_page()
        while True:
            try:
                page = await _answered(anext(pages))
            except StopAsyncIteration:
                return
            async for each in page:
                yield str(each.name)


def client_options(piece_bytes: int) -> dict[str, Any]:
    """The SDK client's settings for sending and retrying."""
    try:
        import blake3  # noqa: F401
        from azure.storage.blob.aio import LinearRetry
    except ImportError as missing:
        raise ConfigurationError(
            f"Payloads in Blob Storage need {missing.name}: pip install 'cosmosservice[blobs]'."
        ) from None
    return {
        "retry_policy": LinearRetry(
            backoff=int(BLOB.first_pause), retry_total=BLOB.attempts - 1, random_jitter_range=0
        ),
        "max_single_put_size": _SINGLE_PUT,
        "max_single_get_size": _SINGLE_GET,
        "max_chunk_get_size": _SINGLE_GET,
        "max_block_size": piece_bytes,
    }


def is_connection_string(where: str) -> bool:
    return "=" in where.partition(";")[0] and "://" not in where.partition("=")[0]


def _name(scope: Scope, upload: str) -> str:
    return f"{scope.partition}/{upload}"


def _block(number: int) -> str:
    return base64.b64encode(f"{number:06d}".encode()).decode("ascii")


async def _answered(request: Awaitable[T], *, missing: bool = False) -> T:
    """Its response. Raises the package's exceptions; with `missing`, a missing range or blob is
    raised as the SDK's exception."""
    from azure.core.exceptions import (
        AzureError,
        ClientAuthenticationError,
        HttpResponseError,
        ResourceNotFoundError,
    )

    problem: Exception
    try:
        found = await request
        answered()
        return found
    except ResourceNotFoundError as error:
        if missing and _code(error) != "ContainerNotFound":
            raise
        problem = ContainerMismatchError(
            f"{current_operation.get()}: there is no such blob container, or this identity may not"
            " see it. Create it with the Bicep file in deploy/, or check COSMOSDB_ARTIFACT_BLOBS."
        )
    except (ClientAuthenticationError, HttpResponseError) as error:
        if missing and error.status_code == 416:
            raise
        problem = _translated(error.status_code, error)
    except (AzureError, TimeoutError) as error:
        problem = _translated(None, error)
    # Outside the handler: the SDK's exceptions carry the request with its authorization.
    raise problem


def _translated(status: int | None, error: Exception) -> StorageError:
    what = f"{current_operation.get()}: the request to Blob Storage"
    if status in (401, 403) or type(error).__name__ == "ClientAuthenticationError":
        return AuthenticationError(
            f"{what} was refused ({status or 401}): the identity needs the role Storage Blob Data"
            " Contributor on the container, or the key is wrong. No version was stored.",
            status=status or 401,
        )
    if status == 429 or _code(error) == "ServerBusy":
        return ThrottledError(
            f"{what} was throttled until the retries were used up. No version was stored.",
            status=status,
        )
    if status is None or status in _TRANSIENT:
        reason = f"answer {status}" if status else type(error).__name__
        return UnavailableError(
            f"{what} could not be completed ({reason}). No version was stored.", status=status
        )
    reason = str(getattr(error, "reason", None) or _code(error) or type(error).__name__)
    return StorageError(f"{what} failed with {status}: {reason}.", status=status)


def _code(error: Exception) -> str:
    return str(getattr(error, "error_code", "") or "")
