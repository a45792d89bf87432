"""How a request is sent: attempts, deadline, charge, and the error that a failure becomes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from cosmosservice.account.charges import (
    Observer,
    RequestCharge,
    answers_so_far,
    current_operation,
)
from cosmosservice.account.failures import Failure, may_have_stored
from cosmosservice.account.retries import REQUEST
from cosmosservice.errors import UnavailableError
from cosmosservice.hosting.deadline import answered, remaining, time_for_attempt

if TYPE_CHECKING:
    from azure.cosmos.aio import ContainerProxy

    from cosmosservice.account.server_clock import ServerClock

logger = logging.getLogger("cosmosservice")

_CHARGE = "x-ms-request-charge"
_SESSION_TOKEN = "x-ms-session-token"
_RANGE = "x-ms-documentdb-partitionkeyrangeid"
_CONTAINER = "x-ms-alt-content-path"
_THROTTLED = 429
_READS = ("read", "query", "change feed")


class Sender:
    """Sends the requests to one container."""

    def __init__(self, proxy: ContainerProxy, observer: Observer, clock: ServerClock) -> None:
        self._proxy = proxy
        self._container = proxy.id
        self._observer = observer
        self._clock = clock

    async def send(self, request: str, send: Callable[[Any], Awaitable[Any]]) -> Mapping[str, str]:
        """Sends, retries where that may help, reports to the observer, and translates errors."""
        clock = asyncio.get_running_loop().time
        answers: list[int] = []
        answers_so_far.set(answers)
        failure: Failure | None = None
        maybe_stored = False
        for attempt in REQUEST:
            await REQUEST.pause(attempt)
            if not remaining() and failure is not None:
                break
            if not remaining():
                raise UnavailableError(
                    f"{current_operation.get()}: the {request} in container {self._container!r} was"
                    " not sent: the operation has reached its timeout. Nothing was stored by this"
                    " request."
                )
            seen: Mapping[str, str] = {}

            def hook(headers: Mapping[str, str], _: Any) -> None:
                nonlocal seen
                seen = headers

            started, last = clock(), REQUEST.is_last(attempt)
            try:
                async with asyncio.timeout(time_for_attempt(last=last)):
                    await send(hook)
            except Exception as error:
                failure = Failure(error)
            else:
                answered()
                if seen:
                    self._observe(request, answers, seen, clock() - started)
                return seen
            if failure.status is None and answers[-1:] == [_THROTTLED]:
                failure.throttled = True  # the SDK gave up between two attempts
            elif answers[-1:] != [failure.status or 0]:
                answers.append(failure.status or 0)  # no answer, or not one of Cosmos DB
            # Whatever the last answer is, an attempt without an answer may have been applied.
            maybe_stored |= request not in _READS and any(map(may_have_stored, answers))
            self._observe(request, answers, failure.headers, clock() - started)
            del answers[:-1]  # they are counted
            if failure.status is not None:
                answered()
                self._keep_token(failure.headers)
            if not failure.transient or last or not remaining():
                break
            logger.info(
                "%s: the %s in container %r is sent again after %s.",
                current_operation.get(),
                request,
                self._container,
                f"answer {failure.status}" if failure.status else "no answer",
            )
        assert failure is not None
        # Raised outside the handler: the SDK's exceptions carry the request with its
        # authorization header, and must not travel along as a context.
        what = f"the {request} in container {self._container!r}"
        raise failure.translated(what, maybe_stored=maybe_stored)

    def _keep_token(self, headers: Mapping[str, str]) -> None:
        """A refusal has the newest session token, but does not name its container, so the SDK does
        not keep it: without this, a probe would not be a read barrier."""
        connection = self._proxy.client_connection
        session: Any = connection.session  # its methods have no types
        # Without a range the SDK would read all ranges again.
        complete = _SESSION_TOKEN in headers and _RANGE in headers
        if session and complete and _CONTAINER not in headers:
            named = {**headers, _CONTAINER: self._proxy.container_link}
            session.update_session(connection, {}, named)

    def _observe(
        self, request: str, answers: list[int], headers: Mapping[str, str], seconds: float
    ) -> None:
        self._clock.answered(headers, seconds)
        # Some answers belong to other requests: a query first looks up its partitions.
        status = answers[-1] if answers else 200
        charge = RequestCharge(
            current_operation.get(),
            request,
            self._container,
            status,
            float(headers.get(_CHARGE, 0)),
            int(headers.get("x-ms-substatus", 0)) if status >= 400 else 0,
            sum(not 0 < each < 400 for each in answers[:-1]) if len(answers) > 1 else 0,
        )
        self._observer.request(charge, seconds)


def total_charge(seen: list[Mapping[str, str]]) -> dict[str, str]:
    """The sum of the charges of several answers. Not every emulator reports them."""
    return {_CHARGE: str(sum(float(each.get(_CHARGE, 0)) for each in seen))}
