"""Payloads in Azure Blob Storage: a blob for each upload, in the folder of its scope."""

from __future__ import annotations

import base64
import itertools
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cosmosservice.account.charges import current_operation
from cosmosservice.account.retries import COPY
from cosmosservice.artifacts.bodies import BLOBS, MissingPiece
from cosmosservice.artifacts.digests import BLAKE3
from cosmosservice.artifacts.keys import Scope
from cosmosservice.errors import ConfigurationError, UnavailableError

try:
    import blake3  # noqa: F401
    from azure.core.exceptions import (
        HttpResponseError,
        ResourceExistsError,
        ResourceModifiedError,
        ResourceNotFoundError,
    )

    from cosmosservice.artifacts.blob_requests import (
        READ,
        REMOVAL,
        SINGLE_GET,
        UPLOAD,
        client_options,
        send,
    )
except ImportError as missing:
    raise ConfigurationError(
        f"Payloads in Blob Storage need {missing.name}: pip install 'cosmosservice[blobs]'."
    ) from None

if TYPE_CHECKING:
    from azure.storage.blob.aio import ContainerClient

PIECE_BYTES = 4 * 1024 * 1024
_AT_ONCE = 4


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
        self.run = max(1, SINGLE_GET // PIECE_BYTES)

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

        async def create() -> None:
            try:
                await self._client.create_container()
            except ResourceExistsError:
                return

        await send(UPLOAD, create)

    async def examine(self) -> None:
        """Raises an error unless this identity may write, read and delete here. Leaves no blob
        behind."""
        name = "cosmosservice-doctor"
        await send(UPLOAD, lambda: self._client.upload_blob(name, b"", overwrite=True))
        await self.get_range(name, 0, 1)
        await send(REMOVAL, lambda: self._client.delete_blob(name))

    # --- Bodies

    async def put(self, scope: Scope, upload: str, number: int, data: bytes) -> None:
        blob = self._client.get_blob_client(_name(scope, upload))
        await send(UPLOAD, lambda: blob.stage_block(_block(number), data, length=len(data)))

    async def put_all(self, scope: Scope, upload: str, data: bytes) -> None:
        async def put() -> None:
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

        await send(UPLOAD, put)

    async def seal(self, scope: Scope, upload: str, count: int) -> None:
        from azure.storage.blob import BlobBlock

        blob = self._client.get_blob_client(_name(scope, upload))
        blocks = [BlobBlock(_block(number)) for number in range(count)]
        await send(UPLOAD, lambda: blob.commit_block_list(blocks))

    async def get(self, scope: Scope, upload: str, number: int, start: int, limit: int) -> bytes:
        return await self.get_range(_name(scope, upload), start, limit)

    async def get_range(self, name: str, start: int, length: int) -> bytes:
        async def read() -> bytes:
            found = await self._client.download_blob(name, offset=start, length=length)
            # It is already in memory, and readall would copy it twice.
            parts = [bytes(each) async for each in found.chunks()]
            return parts[0] if len(parts) == 1 else b"".join(parts)

        try:
            return await send(READ, read, missing=(404, 416))
        except ResourceNotFoundError:
            raise MissingPiece("its blob is missing") from None
        except HttpResponseError:
            raise MissingPiece("its blob is shorter than the artifact says") from None

    async def remove(self, scope: Scope, upload: str, pieces: int | None = None) -> int:
        name = _name(scope, upload)

        async def delete() -> int:
            try:
                await self._client.delete_blob(name)
            except ResourceNotFoundError:
                return 0
            return 1

        if await send(REMOVAL, delete):
            return 1
        # An empty blob instead discards the blocks of an interrupted upload.
        found = [each async for each in self._names(name, include=["uncommittedblobs"])]
        if not found:
            return 0
        await send(UPLOAD, lambda: self._client.upload_blob(name, b"", overwrite=True))
        return await send(REMOVAL, delete)

    async def uploads(self, scope: Scope) -> AsyncIterator[str]:
        prefix = f"{scope.partition}/"
        async for name in self._names(prefix, include=["uncommittedblobs"]):
            yield name.removeprefix(prefix)

    async def copy(
        self, source: Scope, upload: str, target: Scope, name: str, sizes: Sequence[int]
    ) -> None:
        """Copies inside the storage account, without downloading."""
        from azure.core import MatchConditions

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
            await send(UPLOAD, begin, missing=(404,))
        except ResourceNotFoundError:
            raise MissingPiece("its blob is missing") from None
        for look in itertools.count():
            await COPY.pause(look)
            status = (await send(READ, blob.get_blob_properties)).copy.status
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
                page = await send(READ, pages.__anext__)
            except StopAsyncIteration:
                return
            async for each in page:
                yield str(each.name)


def is_connection_string(where: str) -> bool:
    return "=" in where.partition(";")[0] and "://" not in where.partition("=")[0]


def _name(scope: Scope, upload: str) -> str:
    return f"{scope.partition}/{upload}"


def _block(number: int) -> str:
    return base64.b64encode(f"{number:06d}".encode()).decode("ascii")
