"""The requests to one container.

Nothing above this module knows HTTP; nothing in it knows ADK. It speaks in create, read, replace
with If-Match, delete and queries, all of which are safe to send twice: Cosmos DB decides by id and
etag, and the callers recognise their own writes.
"""

from __future__ import annotations

import contextlib
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cosmosservice.account.change_feed import FeedContinuation, FeedStart, continuations
from cosmosservice.account.charges import Observer, current_operation, operation_named
from cosmosservice.account.failures import BatchRefused, NotFound, PreconditionFailed
from cosmosservice.account.retries import REQUEST
from cosmosservice.account.sending import Sender, total_charge
from cosmosservice.errors import StorageError

if TYPE_CHECKING:
    from azure.cosmos.aio import ContainerProxy

    from cosmosservice.account.server_clock import ServerClock

Document = dict[str, Any]

_PAGE = 1_000  # results per page across partitions
# Results per page of one partition: more than the 4 MB of a page usually hold. Not -1, which means
# as many as fit: not every emulator knows it.
_WHOLE_PAGE = 5_000
_CONTINUATION = "x-ms-continuation"
_RANGE = "x-ms-documentdb-partitionkeyrangeid"
_IMPOSSIBLE_ETAG = '"00000000-0000-0000-0000-000000000000"'


class _NotModified:
    """The answer to a conditional read: the caller's version is current."""


NOT_MODIFIED = _NotModified()


class Write(NamedTuple):
    """A write of a transaction: a create or, with an etag, a replace with If-Match."""

    document: Document
    etag: str | None = None


class Put(NamedTuple):
    """A replace of a transaction without a condition: another of its writes must have one."""

    document: Document


class Delete(NamedTuple):
    """A delete of a transaction, with If-Match."""

    document_id: str
    etag: str


class Container:
    """One container, and the requests that services send to it."""

    def __init__(
        self, proxy: ContainerProxy, partition_key: str, observer: Observer, clock: ServerClock
    ) -> None:
        self._proxy = proxy
        self._key_field = partition_key.removeprefix("/")
        self._sender = Sender(proxy, observer, clock)
        self.name = proxy.id

    async def learn_resource_id(self) -> None:
        """Reads once, before anything is written.

        The SDK stores session tokens by the resource id of the container, which it learns from a
        read. If the first answer is that of a write without content, it does not know the id, and
        from then on it stores the tokens of all such containers under one key. It would then demand
        versions that this container never had, or return older ones than this client has written.
        """
        with operation_named("connect"), contextlib.suppress(NotFound):
            await self.read("none", "none")

    async def create(self, document: Document) -> str:
        """Creates the document and returns its etag. Raises Conflict if the id exists."""
        return (await self.add(document)).get("etag", "")

    async def add(self, document: Document) -> Mapping[str, str]:
        """Creates a document that never changes. Returns the headers of the answer."""
        return await self._sender.send(
            "create",
            lambda hook: self._proxy.create_item(document, no_response=True, response_hook=hook),
        )

    async def read(
        self, document_id: str, partition: str, etag: str | None = None
    ) -> Document | _NotModified:
        """The document; NOT_MODIFIED if it still has the given etag. Raises NotFound."""
        found: Document = {}

        async def send(hook: Any) -> None:
            nonlocal found
            condition = _if_modified(etag)
            # A plain dict: the SDK's own also keeps the headers, about 4 KB.
            found = dict(
                await self._proxy.read_item(document_id, partition, response_hook=hook, **condition)
            )

        await self._sender.send("read", send)
        return found or NOT_MODIFIED

    async def replace(self, document: Document, etag: str) -> str:
        """Replaces the document if it still has the etag. Raises PreconditionFailed, NotFound."""
        from azure.core import MatchConditions

        headers = await self._sender.send(
            "replace",
            lambda hook: self._proxy.replace_item(
                document["id"],
                document,
                etag=etag,
                match_condition=MatchConditions.IfNotModified,
                no_response=True,
                response_hook=hook,
            ),
        )
        return headers.get("etag", "")

    async def probe(self, document_id: str, partition: str) -> bool:
        """A probe, which is a read barrier: whether the document exists now, whatever a read has
        returned.

        A replace that cannot succeed is decided on the newest version and changes nothing. Its
        answer brings the session token up to date: what this client reads in the partition from
        now on is at least as new.
        """
        try:
            await self.replace({"id": document_id, self._key_field: partition}, _IMPOSSIBLE_ETAG)
        except PreconditionFailed:
            return True
        except NotFound:
            return False
        raise StorageError(
            f"{current_operation.get()}: container {self.name!r} cannot be used: the server does"
            " not check If-Match."
        )

    async def probe_everywhere(self) -> None:
        """Sends one probe to every physical range of the container, with a partition key in that
        range. After this, nothing that this client reads in the container is older than now."""
        ranges = [each async for each in self._proxy.read_feed_ranges()]
        while ranges:
            partition = secrets.token_hex(8)
            own = await self._proxy.feed_range_from_partition_key(partition)
            for each in ranges:
                if await self._proxy.is_feed_range_subset(each, own):
                    await self.probe("probe", partition)
                    ranges.remove(each)
                    break

    async def delete(self, document_id: str, partition: str, etag: str | None = None) -> None:
        """Deletes the document. Raises NotFound, and PreconditionFailed if an etag was given."""
        from azure.core import MatchConditions

        condition: dict[str, Any] = (
            {"etag": etag, "match_condition": MatchConditions.IfNotModified} if etag else {}
        )
        await self._sender.send(
            "delete",
            lambda hook: self._proxy.delete_item(
                document_id, partition, response_hook=hook, **condition
            ),
        )

    async def batch(self, partition: str, writes: Sequence[Write | Put | Delete]) -> None:
        """Does all writes or none. Raises BatchRefused if none. The last must not be a delete."""
        from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

        refused: BatchRefused | None = None

        async def send(hook: Any) -> None:
            nonlocal refused
            # Created for every attempt: the SDK removes the etags from it.
            operations = [_operation(each) for each in writes]
            try:
                await self._proxy.execute_item_batch(operations, partition, response_hook=hook)
            except CosmosBatchOperationError as error:
                status = error.status_code or 0
                if status not in (404, 409, 412):
                    failed: Any = CosmosHttpResponseError  # its constructor has no types
                    raise failed(status_code=status, message=error.message) from None
                hook(error.headers or {}, None)
                refused = BatchRefused(error.error_index or 0, status)

        await self._sender.send("batch", send)
        # The SDK keeps no session token of a transaction: without this, the client might not read
        # its own writes.
        last = writes[-1]
        assert not isinstance(last, Delete)
        await self.probe(last.document["id"], partition)
        if refused is not None:
            raise refused

    async def query(
        self,
        text: str,
        parameters: Mapping[str, Any],
        partition: str | None = None,
    ) -> list[Document]:
        """All results, in pages as large as Cosmos DB makes them."""
        if partition is None:
            return await self._query_across(text, parameters)
        found: list[Document] = []
        async for page in self.pages(text, parameters, partition):
            found += page
        return found

    async def count(
        self, text: str, parameters: Mapping[str, Any], partition: str | None = None
    ) -> int:
        """The sum of the numbers that a query returns, one for each range."""
        found: list[Any] = await self.query(text, parameters, partition)
        # Some emulators wrap each in an object.
        return sum(next(iter(n.values())) if isinstance(n, dict) else n for n in found)

    async def pages(
        self, text: str, parameters: Mapping[str, Any], partition: str
    ) -> AsyncIterator[list[Document]]:
        """Results of one partition, page by page: 4 MB each, one round trip each."""
        seen: list[Mapping[str, str]] = []  # of one page; several if the first were empty
        pager = self._pager(
            text, parameters, seen, max_item_count=_WHOLE_PAGE, partition_key=partition
        )
        page: list[Document] | None = []

        async def send(charged: Any) -> None:
            nonlocal page
            seen.clear()
            try:
                page = [item async for item in await anext(pager)]
            except StopAsyncIteration:
                page = None
            if seen:
                charged(total_charge(seen), None)

        more = True
        while more:
            await self._sender.send("query", send)
            if page is None:
                return
            yield page
            # The SDK knows it too, but prepares a whole request before it says so.
            more = not seen or _CONTINUATION in seen[-1]

    async def _query_across(self, text: str, parameters: Mapping[str, Any]) -> list[Document]:
        """All results of all partitions.

        The SDK itself merges the partitions if their results must be sorted or limited. There, a
        page size of -1 would return nothing, and a failed request loses what was read of that page.
        So after a failure the whole query starts again.
        """
        found: list[Document] = []

        async def send(charged: Any) -> None:
            found.clear()
            seen: list[Mapping[str, str]] = []
            async for page in self._pager(text, parameters, seen, max_item_count=_PAGE):
                found.extend([item async for item in page])
            charged(total_charge(seen), None)

        await self._sender.send("query", send)
        return found

    async def changes(
        self, since: FeedStart | FeedContinuation, count: int
    ) -> tuple[list[Document], list[FeedContinuation]]:
        """Up to `count` changed documents in their newest version, in the order of the changes,
        and the continuations, one per range. The page comes from the last of these
        ranges. There are several at the beginning, and after a range was split.

        If there are no documents, no range has anything new. Raises ValueError if `since` is in
        another container, even one that had the same name.
        """
        page: list[Document] = []
        seen: list[Mapping[str, str]] = []

        def hook(headers: Mapping[str, str], _: Any) -> None:
            # Without it, the SDK would read the first page for ever.
            if "etag" not in headers:
                raise StorageError(
                    f"{current_operation.get()}: the change feed of container {self.name!r} cannot"
                    " be read: the server does not say how far it was read (no etag)."
                )
            seen.append(headers)

        async def send(charged: Any) -> None:
            seen.clear()
            page.clear()
            found = self._proxy.query_items_change_feed(
                max_item_count=count, response_hook=hook, **since.options()
            )
            with contextlib.suppress(StopAsyncIteration):  # nothing new
                page.extend([item async for item in await anext(found.by_page())])
            charged({**seen[-1], **total_charge(seen)}, None)

        await self._sender.send("change feed", send)
        # The SDK puts its continuation into the headers of the last answer.
        return page, continuations(seen[-1]["etag"])

    def _pager(
        self,
        text: str,
        parameters: Mapping[str, Any],
        seen: list[Mapping[str, str]],
        **options: Any,
    ) -> AsyncIterator[AsyncIterator[Document]]:
        """Puts the headers of every answer into `seen`. Raises StorageError if the pages never
        end, as those of an emulator whose last page leads back to the first."""
        tokens: Counter[tuple[str, str]] = Counter()

        def hook(headers: Mapping[str, str], _: Any) -> None:
            seen.append(headers)
            if token := headers.get(_CONTINUATION):
                pair = headers.get(_RANGE, ""), token
                tokens[pair] += 1
                # An answer may have come once for each attempt.
                if tokens[pair] > REQUEST.attempts:
                    raise StorageError(
                        f"{current_operation.get()}: the query in container {self.name!r} does not"
                        " end: the server returns the same pages again and again. Nothing was"
                        " stored by this request."
                    )

        named = [{"name": f"@{name}", "value": value} for name, value in parameters.items()]
        found = self._proxy.query_items(text, parameters=named, response_hook=hook, **options)
        return found.by_page()


def _operation(write: Write | Put | Delete) -> tuple[Any, ...]:
    if isinstance(write, Delete):
        return "delete", (write.document_id,), {"if_match_etag": write.etag}
    if isinstance(write, Put):
        return "replace", (write.document["id"], write.document)
    document, etag = write
    if etag is None:
        return "create", (document,)
    return "replace", (document["id"], document), {"if_match_etag": etag}


def _if_modified(etag: str | None) -> dict[str, Any]:
    if etag is None:
        return {}
    from azure.core import MatchConditions

    return {"etag": etag, "match_condition": MatchConditions.IfModified}
