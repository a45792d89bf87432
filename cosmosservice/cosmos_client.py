"""The connection to Cosmos DB: one client, two containers, and every request's charge.

Nothing above this module knows HTTP; nothing in it knows ADK. It speaks in create, read, replace
with If-Match, delete and queries inside one partition, all of which are safe to send twice:
Cosmos decides by id and etag, and the callers recognise their own writes.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cosmosservice.documents import Document
from cosmosservice.errors import (
    AuthenticationError,
    ContainerMismatchError,
    StorageError,
    ThrottledError,
    TooLargeError,
    UnavailableError,
)

if TYPE_CHECKING:
    from azure.cosmos.aio import ContainerProxy

logger = logging.getLogger("cosmosservice")

# The operation of the service on whose behalf requests are sent: for charges and messages.
current_operation: ContextVar[str] = ContextVar("current_operation", default="connect")

# The status of every HTTP answer to the request under way: the SDK sends again by itself.
_answers: ContextVar[list[int] | None] = ContextVar("answers", default=None)

_CHARGE = "x-ms-request-charge"
_PAGE = 1_000  # results a page across partitions
_ATTEMPTS = 4
_BACKOFF = 0.1  # seconds, doubled with every attempt, jittered
_TRANSIENT = frozenset({408, 410, 449, 500, 502, 503, 504})
# Sub-statuses of 404: the replica has not seen yet what this client has, so that it cannot tell
# whether there is such a document; there is no such database or container.
_REPLICA_BEHIND, _OWNER_MISSING = 1002, 1003


def note_answer(response: Any) -> None:
    """To be the client's raw_response_hook."""
    answers = _answers.get()
    if answers is not None:
        answers.append(response.http_response.status_code)


class Conflict(Exception):
    """409: the id exists."""


class PreconditionFailed(Exception):
    """412: somebody changed the document since it was read."""


class NotFound(Exception):
    """404: there is no such document."""


class RequestCharge(NamedTuple):
    """What one request cost, for `on_request_charge`."""

    operation: str  # of the service: append_event, get_session …
    request: str  # create, read, replace, delete, query
    container: str
    status: int
    request_units: float
    sub_status: int = 0  # Cosmos DB's finer reason, if it gave one
    retries: int = 0  # failures before this answer that are not told of already


class Observer(Protocol):
    """Is told of every answered request."""

    def request(self, charge: RequestCharge, seconds: float) -> None: ...


class _NotModified:
    """The answer to a conditional read: what you have is current."""


NOT_MODIFIED = _NotModified()


class Container:
    """One container, with the five things that the service does to one."""

    def __init__(self, proxy: ContainerProxy, observer: Observer) -> None:
        self._proxy = proxy
        self._observer = observer
        self.name = proxy.id

    async def create(self, document: Document) -> str:
        """Creates the document and returns its etag. Raises Conflict if the id exists."""
        return (await self.add(document)).get("etag", "")

    async def add(self, document: Document) -> Mapping[str, str]:
        """The same for one that is never changed: its etag stays among the headers."""
        return await self._send(
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
            found = await self._proxy.read_item(
                document_id, partition, response_hook=hook, **condition
            )

        await self._send("read", send)
        return found or NOT_MODIFIED

    async def replace(self, document: Document, etag: str) -> str:
        """Replaces the document if it still has the etag. Raises PreconditionFailed, NotFound."""
        from azure.core import MatchConditions

        headers = await self._send(
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

    async def delete(self, document_id: str, partition: str, etag: str | None = None) -> None:
        """Deletes the document. Raises NotFound, and PreconditionFailed if an etag was given."""
        from azure.core import MatchConditions

        condition: dict[str, Any] = (
            {"etag": etag, "match_condition": MatchConditions.IfNotModified} if etag else {}
        )
        await self._send(
            "delete",
            lambda hook: self._proxy.delete_item(
                document_id, partition, response_hook=hook, **condition
            ),
        )

    async def query(
        self,
        text: str,
        parameters: Mapping[str, Any],
        partition: str | None = None,
    ) -> list[Document]:
        """All results, in pages as large as Cosmos makes them."""
        if partition is None:
            return await self._query_across(text, parameters)
        found: list[Document] = []
        async for page in self.pages(text, parameters, partition):
            found += page
        return found

    async def pages(
        self, text: str, parameters: Mapping[str, Any], partition: str
    ) -> AsyncIterator[list[Document]]:
        """Results of one partition, page by page: 4 MB each, one round trip each."""
        seen: list[Mapping[str, str]] = []  # of one page: several, if the first ones were empty
        pager = self._pager(text, parameters, seen, max_item_count=-1, partition_key=partition)
        page: list[Document] | None = []

        async def send(charged: Any) -> None:
            nonlocal page
            seen.clear()
            try:
                page = [item async for item in await anext(pager)]
            except StopAsyncIteration:
                page = None
            if seen:  # no request was needed to learn that the page before was the last
                charged(_sum(seen), None)

        while True:
            await self._send("query", send)
            if page is None:
                return
            yield page

    async def _query_across(self, text: str, parameters: Mapping[str, Any]) -> list[Document]:
        """All results of all partitions.

        The SDK merges the partitions itself when their results must be sorted or cut. It takes no
        -1 there (it would return nothing), and when a request fails it drops what it had of that
        page. So a failure begins the whole query anew.
        """
        found: list[Document] = []

        async def send(charged: Any) -> None:
            found.clear()
            seen: list[Mapping[str, str]] = []
            async for page in self._pager(text, parameters, seen, max_item_count=_PAGE):
                found.extend([item async for item in page])
            charged(_sum(seen), None)

        await self._send("query", send)
        return found

    def _pager(
        self,
        text: str,
        parameters: Mapping[str, Any],
        seen: list[Mapping[str, str]],
        **options: Any,
    ) -> AsyncIterator[AsyncIterator[Document]]:
        """Puts the headers of every answer into `seen`."""

        def hook(headers: Mapping[str, str], _: Any) -> None:
            seen.append(headers)

        named = [{"name": f"@{name}", "value": value} for name, value in parameters.items()]
        found = self._proxy.query_items(text, parameters=named, response_hook=hook, **options)
        return found.by_page()

    async def _send(self, request: str, send: Callable[[Any], Awaitable[Any]]) -> Mapping[str, str]:
        """Sends, again where that may help, tells the observer, and translates errors."""
        clock = asyncio.get_running_loop().time
        answers: list[int] = []
        _answers.set(answers)
        for attempt in range(1, _ATTEMPTS + 1):
            seen: Mapping[str, str] = {}

            def hook(headers: Mapping[str, str], _: Any) -> None:
                nonlocal seen
                seen = headers

            started = clock()
            try:
                await send(hook)
            except Exception as error:
                failure = Failure(error)
            else:
                if seen:
                    self._observe(request, answers, seen, clock() - started)
                return seen
            if answers[-1:] != [failure.status]:
                answers.append(failure.status or 0)  # not an answer of Cosmos DB, or none
            self._observe(request, answers, failure.headers, clock() - started)
            del answers[:-1]  # they are counted
            if not failure.transient or attempt == _ATTEMPTS:
                # Raised outside the handler: the SDK's exceptions carry the request with its
                # authorization header, and must not travel along as a context.
                raise failure.translated(f"the {request} in container {self.name!r}")
            logger.info(
                "%s: the %s in container %r is sent again after %s.",
                current_operation.get(),
                request,
                self.name,
                f"answer {failure.status}" if failure.status else "no answer",
            )
            await asyncio.sleep(_BACKOFF * 2**attempt * random.uniform(0.5, 1))
        raise AssertionError("unreachable")

    def _observe(
        self, request: str, answers: list[int], headers: Mapping[str, str], seconds: float
    ) -> None:
        # Not every answer is one to this request: a query looks for its partitions first.
        status = answers[-1] if answers else 200
        charge = RequestCharge(
            current_operation.get(),
            request,
            self.name,
            status,
            float(headers.get(_CHARGE, 0)),
            int(headers.get("x-ms-substatus", 0)) if status >= 400 else 0,
            sum(not 0 < each < 400 for each in answers[:-1]) if len(answers) > 1 else 0,
        )
        self._observer.request(charge, seconds)


def _sum(seen: list[Mapping[str, str]]) -> dict[str, str]:
    """The charges of several answers as those of one. Not every emulator tells them."""
    return {_CHARGE: str(sum(float(each.get(_CHARGE, 0)) for each in seen))}


def _if_modified(etag: str | None) -> dict[str, Any]:
    if etag is None:
        return {}
    from azure.core import MatchConditions

    return {"etag": etag, "match_condition": MatchConditions.IfModified}


class Failure:
    """What an exception of the SDK means."""

    def __init__(self, error: Exception) -> None:
        from azure.core.exceptions import AzureError, ClientAuthenticationError
        from azure.cosmos.exceptions import CosmosHttpResponseError

        self._error = error
        self.status: int | None = None
        self.headers: Mapping[str, str] = {}
        self._sub_status: int | None = None
        self.known = isinstance(error, (AzureError, TimeoutError))
        if isinstance(error, CosmosHttpResponseError):
            self.status = error.status_code
            self.headers = error.headers or {}
            self._sub_status = error.sub_status
        elif isinstance(error, ClientAuthenticationError):  # Entra ID gave no token
            self.status = 401

    @property
    def transient(self) -> bool:
        return (
            self.status in _TRANSIENT
            or (self.known and self.status is None)
            or (self.status == 404 and self._sub_status == _REPLICA_BEHIND)
        )

    def translated(self, what: str) -> Exception:
        if not self.known:
            return self._error
        status = self.status
        if status == 409:
            return Conflict()
        if status == 412:
            return PreconditionFailed()
        if status == 404 and self._sub_status not in (_REPLICA_BEHIND, _OWNER_MISSING):
            return NotFound()
        what = f"{current_operation.get()}: {what}"
        if status == 404 and self._sub_status == _OWNER_MISSING:
            return ContainerMismatchError(
                f"{what} found no such database or container. Nothing was stored by this request."
                " Create it with `cosmosservice init`, or pass ensure='create'."
            )
        if status == 413:
            return TooLargeError(f"{what} was refused: the document has more than 2 MB.")
        if status == 403 and self._sub_status == 1014:
            return StorageError(
                f"{what} was refused: the logical partition has reached its 20 GB. Nothing was"
                " stored by this request. Purge old sessions of this user, or start a new session.",
                status=status,
            )
        if status in (401, 403):
            return AuthenticationError(
                f"{what} was refused ({status}): the key or the identity is not accepted, or may"
                " not do this. Nothing was stored by this request.",
                status=status,
            )
        if status == 429:
            return ThrottledError(
                f"{what} was throttled (429) until the retries were used up: the account's"
                " request units are spent. Nothing was stored by this request.",
                status=status,
            )
        if self.transient:
            reason = f"answer {status}" if status else type(self._error).__name__
            return UnavailableError(
                f"{what} could not be completed ({reason}). Whether it was stored is not known;"
                " sending it again is safe.",
                status=status,
            )
        return StorageError(f"{what} failed with {status}: {self.told}", status=status)

    @property
    def told(self) -> str:
        """The first line of what the SDK says."""
        text = str(getattr(self._error, "message", "") or self._error).strip()
        return text.splitlines()[0][:300] if text else type(self._error).__name__
