"""Faults on demand: what should go wrong in a test, and when.

    faults = Faults()
    faults.throttle(retry_after_ms=20, resource="docs", times=2)   # the first two get 429
    faults.fail(503, operation="create", container="events")       # the first create gets 503
    faults.drop_after(operation="replace", nth=3)                   # applied, its answer is lost
    faults.silent(operation="replace", when="after")                # applied, and never an answer
    faults.call(crash, when="before", nth=5, resource="docs")       # your own code at the fifth
    faults.latency = 0.005                                          # every request takes longer

Each rule counts the requests that match it, from 1. It applies from the `nth` on, `times` times
(`times=None`: forever). If several rules match a request, the first one that applies is used.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from cosmos_emulator import forks
from cosmos_emulator.errors import CosmosError, TooManyRequests
from cosmos_emulator.messages import Flaw
from cosmos_emulator.requests_log import RequestRecord

Hook = Callable[[RequestRecord], Awaitable[Any] | Any]
Predicate = Callable[[RequestRecord], bool]

_MESSAGES = {
    408: "Request timed out.",
    410: "The requested resource is no longer available at the server.",
    429: "The request rate is too large.",
    449: "Conflicting request to resource has been attempted. Retry to avoid conflicts.",
    503: "Service is currently unavailable.",
}


class ConnectionDropped(Exception):
    """The connection is closed without an answer."""


@dataclass(slots=True)
class Rule:
    """One kind of fault. `hits` counts how often it was applied."""

    name: str
    nth: int
    times: int | None
    match: dict[str, str]
    where: Predicate | None
    error: CosmosError | None = None
    drop: Literal["before", "after"] | None = None
    flaw: Flaw | None = None
    applied: bool = True  # if there is a flaw: whether the request is applied
    delay: float = 0.0
    before: Hook | None = None
    after: Hook | None = None
    seen: int = 0
    hits: int = 0

    def counts(self, record: RequestRecord) -> bool:
        """Counts the request if it matches. Returns whether the rule applies to it."""
        if any(getattr(record, name) != value for name, value in self.match.items()):
            return False
        if self.where is not None and not self.where(record):
            return False
        self.seen += 1
        return self.seen >= self.nth and (self.times is None or self.hits < self.times)


class Faults:
    """The rules in force, and a latency for all requests. May be changed at any time.

    All rules take the same keywords: `nth` and `times`; `method`, `operation` ("create",
    "read", "replace", "upsert", "patch", "delete", "batch", "query", "change feed", "list"),
    `resource` ("docs", "colls", "dbs", "pkranges", "offers", "" for the account), `container`,
    `database`, `id`, `partition_key` (as in the header: `'["A"]'`) and `where`, a
    function of the :class:`RequestRecord`.
    """

    def __init__(self, *, latency: float = 0.0) -> None:
        self.latency = latency
        self._rules: list[Rule] = []
        self._lock = forks.lock()

    def fail(self, status: int, *, substatus: int = 0, **match: Any) -> Rule:
        """Answers with an error, without applying the request."""
        message = _MESSAGES.get(status, "A fault requested by the test.")
        error = CosmosError(message, status=status, substatus=substatus, charge=0.0)
        return self._add(_rule(f"fail {status}", match, error=error))

    def throttle(self, *, retry_after_ms: int = 10, **match: Any) -> Rule:
        """Answers 429 with a time to wait, without applying the request."""
        return self._add(_rule("throttle", match, error=TooManyRequests(retry_after_ms)))

    def drop_before(self, **match: Any) -> Rule:
        """Closes the connection before the request is applied."""
        return self._add(_rule("drop before", match, drop="before"))

    def drop_after(self, **match: Any) -> Rule:
        """Applies the request, then closes the connection instead of answering."""
        return self._add(_rule("drop after", match, drop="after"))

    def silent(
        self, *, when: Literal["connect", "before", "after"] = "before", **match: Any
    ) -> Rule:
        """Accepts the connection and never answers, before or after the request is applied, until
        the client gives up. `when="connect"`: no connection is made (over HTTP, a request is
        known only after the connection is made, so that is the same as "before")."""
        flaw = Flaw("unreachable" if when == "connect" else "silent")
        return self._add(_rule(f"silent {when}", match, flaw=flaw, applied=when == "after"))

    def endless(self, *, drip: float | None = 0.05, **match: Any) -> Rule:
        """Applies the request and begins an answer that never ends: after half of the body, sends a
        blank every `drip` seconds, so that no read timeout occurs; with None, sends nothing."""
        return self._add(_rule("endless", match, flaw=Flaw("endless", drip)))

    def truncate(self, **match: Any) -> Rule:
        """Applies the request, sends half of the answer, and closes the connection."""
        return self._add(_rule("truncate", match, flaw=Flaw("cut")))

    def delay(self, seconds: float, **match: Any) -> Rule:
        """Applies the request after a delay."""
        return self._add(_rule(f"delay {seconds}", match, delay=seconds))

    def call(
        self, hook: Hook, *, when: Literal["before", "after"] = "before", **match: Any
    ) -> Rule:
        """Runs `hook(record)` before or after the request is applied. The client gets whatever it
        raises. It may be a coroutine function."""
        name = f"call {when}"
        if when == "before":
            return self._add(_rule(name, match, before=hook))
        return self._add(_rule(name, match, after=hook))

    def clear(self) -> None:
        """Removes all rules and the latency."""
        with self._lock:
            self._rules.clear()
        self.latency = 0.0

    def _add(self, rule: Rule) -> Rule:
        with self._lock:
            self._rules.append(rule)
        return rule

    def choose(self, record: RequestRecord) -> Rule | None:
        """The rule for a request. Every rule counts it; the first that applies wins."""
        if not self._rules:
            return None
        with self._lock:
            due = [rule for rule in self._rules if rule.counts(record)]
            if not due:
                return None
            due[0].hits += 1
            return due[0]


_MATCHABLE = {"method", "operation", "resource", "container", "database", "id", "partition_key"}


def _rule(name: str, match: dict[str, Any], **effect: Any) -> Rule:
    match = dict(match)
    nth, times, where = match.pop("nth", 1), match.pop("times", 1), match.pop("where", None)
    unknown = match.keys() - _MATCHABLE
    if unknown:
        raise TypeError(f"a fault cannot match on {', '.join(sorted(unknown))}")
    return Rule(name=name, nth=nth, times=times, match=match, where=where, **effect)
