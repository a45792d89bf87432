"""Request units: those of each page, and the total of each operation."""

from __future__ import annotations

from collections import defaultdict
from contextvars import ContextVar
from dataclasses import dataclass

from cosmosservice.account.charges import RequestCharge


@dataclass
class Spent:
    """The requests and request units of one page."""

    requests: int = 0
    request_units: float = 0.0


# Requests are sent in the context of the page, or of a task that it started.
_page: ContextVar[Spent | None] = ContextVar("page", default=None)


class Meter:
    """Its method `charged` is the service's `on_request_charge`."""

    def __init__(self) -> None:
        self.by_operation: defaultdict[str, float] = defaultdict(float)

    def charged(self, charge: RequestCharge) -> None:
        self.by_operation[charge.operation] += charge.request_units
        spent = _page.get()
        if spent is not None:
            spent.requests += 1
            spent.request_units += charge.request_units


def new_page() -> None:
    """Starts the count for the page that is made in this context."""
    _page.set(Spent())


def spent_by_page() -> Spent:
    """The usage so far of the page that is made in this context."""
    return _page.get() or Spent()
