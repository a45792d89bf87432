"""The charge of every request, and the operation of a service that sent it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from cosmosservice.hosting.operation import Background

# Accounts without priority-based execution ignore it.
_PRIORITY = "x-ms-cosmos-priority-level"

# The operation that sends requests, for charges and messages.
current_operation: ContextVar[str] = ContextVar("current_operation", default="connect")

# The status of every HTTP request that was sent for the current request, 0 if it was not answered.
# There may be several, because the SDK retries by itself.
answers_so_far: ContextVar[list[int] | None] = ContextVar("answers_so_far", default=None)


@contextlib.contextmanager
def operation_named(name: str) -> Iterator[None]:
    token = current_operation.set(name)
    try:
        yield
    finally:
        current_operation.reset(token)


def note_sent(request: Any) -> None:
    """An HTTP request is about to be sent."""
    if isinstance(current_operation.get(), Background):
        request.http_request.headers[_PRIORITY] = "Low"
    answers = answers_so_far.get()
    if answers is not None:
        answers.append(0)


def note_answer(response: Any) -> None:
    """An HTTP request was answered: the last one, unless the SDK sent several at once."""
    answers = answers_so_far.get()
    if answers and 0 in answers:
        last = len(answers) - 1 - answers[::-1].index(0)
        answers[last] = response.http_response.status_code


class RequestCharge(NamedTuple):
    """What one request cost, for `on_request_charge`."""

    operation: str  # of the service: append_event, get_session …
    request: str  # create, read, replace, delete, query
    container: str
    status: int
    request_units: float
    sub_status: int = 0  # Cosmos DB's finer reason, if it gave one
    retries: int = 0  # earlier failed attempts that were not reported yet


class Observer(Protocol):
    """Called after every answered request."""

    def request(self, charge: RequestCharge, seconds: float) -> None: ...
