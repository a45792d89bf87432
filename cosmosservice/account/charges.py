"""Every request's charge: what is told of a request, and to whom."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

# The operation of the service on whose behalf requests are sent: for charges and messages.
current_operation: ContextVar[str] = ContextVar("current_operation", default="connect")

# The status of every HTTP answer to the request under way: the SDK sends again by itself.
answers_so_far: ContextVar[list[int] | None] = ContextVar("answers", default=None)


def note_answer(response: Any) -> None:
    """To be the client's raw_response_hook."""
    answers = answers_so_far.get()
    if answers is not None:
        answers.append(response.http_response.status_code)


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
