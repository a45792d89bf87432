"""What the service reports to OpenTelemetry: a span per operation and request, and metrics.

Only OpenTelemetry's API is imported. Until the application configures an SDK, nothing is recorded.
Names follow the semantic conventions for Cosmos DB where they exist. Ids of apps, users and
sessions, contents, state and keys are in no attribute.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit
from weakref import WeakSet

from opentelemetry import context as contexts
from opentelemetry import metrics, trace
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

from cosmosservice.account.charges import RequestCharge, current_operation
from cosmosservice.errors import AlreadyExistsError, SessionNotFoundError, StaleSessionError
from cosmosservice.hosting.forks import ForkSafeLock
from cosmosservice.version import __version__

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.util.types import AttributeValue

    from cosmosservice.account.settings import Settings

Attributes = dict[str, "AttributeValue"]

_tracer = trace.get_tracer("cosmosservice", __version__)
_meter = metrics.get_meter("cosmosservice", __version__)

_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10)

_request_charge = _meter.create_histogram(
    "azure.cosmosdb.client.operation.request_charge",
    unit="{request_unit}",
    description="Request units of each request",
    explicit_bucket_boundaries_advisory=(1, 5, 10, 25, 50, 100, 250, 500, 1000),
)
_request_duration = _meter.create_histogram(
    "db.client.operation.duration",
    unit="s",
    description="Duration of each request",
    explicit_bucket_boundaries_advisory=_SECONDS,
)
_operation_duration = _meter.create_histogram(
    "cosmosservice.operation.duration",
    unit="s",
    description="Duration of each operation of the session service",
    explicit_bucket_boundaries_advisory=_SECONDS,
)
_retries = _meter.create_counter(
    "cosmosservice.retries",
    unit="{request}",
    description="Requests that were sent again, mostly because they were throttled",
)
_conflicts = _meter.create_counter(
    "cosmosservice.conflicts",
    unit="{conflict}",
    description="Appends that came after another writer's event",
)
_repairs = _meter.create_counter(
    "cosmosservice.repairs",
    unit="{event}",
    description="Events of other processes that this one projected",
)
_projection_lag = _meter.create_histogram(
    "cosmosservice.projection.lag",
    unit="s",
    description="How long a session document had lagged its log when it was written",
    explicit_bucket_boundaries_advisory=(0.5, 1, 2, 5, 10, 30, 60, 300),
)
_cache_lookups = _meter.create_counter(
    "cosmosservice.cache.lookups",
    unit="{lookup}",
    description="Lookups in the cache of documents and events",
)

# The names of requests in the semantic conventions.
_REQUESTS = {
    "create": "create_item",
    "read": "read_item",
    "replace": "replace_item",
    "delete": "delete_item",
    "query": "query_items",
    "batch": "execute_batch",
    "change feed": "query_change_feed",
}
# Answers that the protocol expects: no document yet, an id that is taken, a newer version.
_EXPECTED = frozenset({404, 409, 412})


class Telemetry:
    """What the spans and measurements of one account have in common."""

    def __init__(self, settings: Settings) -> None:
        self._database = settings.database
        self._common: Attributes = {
            "db.system.name": "azure.cosmosdb",
            "db.namespace": settings.database,
            **_server(settings),
        }
        self._of_spans: dict[tuple[str, str | None], tuple[str, Attributes]] = {}
        self._of_requests: dict[tuple[Any, ...], Attributes] = {}
        self._of_operations: dict[tuple[str, str], Attributes] = {}

    def operation(
        self, name: str, target: str | None = None, *, caused_by: Operation | None = None
    ) -> Operation | _Unobserved:
        """A context manager around the work of an operation on the container `target`. An operation
        that another one caused but does not wait for gets its own trace, with a link."""
        if not _is_configured():
            return _UNOBSERVED
        known = self._of_spans.get((name, target))
        if known is None:
            known = self._of_spans[name, target] = self._span_of(name, target)
        return Operation(self, name, target, known, caused_by)

    def request(self, charge: RequestCharge, seconds: float) -> None:
        """An answered (or, with status 0, unanswered) request of the current operation."""
        if not _configured:  # as far as the beginning of an operation has found out
            return
        operation = _current.get()
        attributes = self._request_attributes(charge)
        _request_charge.record(charge.request_units, attributes)
        _request_duration.record(seconds, attributes)
        if charge.retries:
            _retries.add(charge.retries, attributes)
        if operation is not None:
            operation.answered(charge, seconds, attributes)

    def outcome(self, operation: str, error: str) -> Attributes:
        """Attributes of an operation's measurements. Created once for each outcome."""
        found = self._of_operations.get((operation, error))
        if found is None:
            found = self._common | {"cosmosservice.operation": operation}
            if error:
                found["error.type"] = error
            self._of_operations[operation, error] = found
        return found

    def _span_of(self, operation: str, target: str | None) -> tuple[str, Attributes]:
        attributes = self._common | {"db.operation.name": operation}
        if target is not None:
            attributes["db.collection.name"] = target
        return f"{operation} {target or self._database}", attributes

    def _request_attributes(self, charge: RequestCharge) -> Attributes:
        kind = charge.operation, charge.request, charge.container, charge.status, charge.sub_status
        found = self._of_requests.get(kind)
        if found is None:
            found = self._common | {
                "db.collection.name": charge.container,
                "db.operation.name": _REQUESTS[charge.request],
                "cosmosservice.operation": charge.operation,
            }
            if charge.status:
                found["db.response.status_code"] = str(charge.status)
            if charge.sub_status:
                found["azure.cosmosdb.response.sub_status_code"] = charge.sub_status
            if charge.status not in _EXPECTED and not 0 < charge.status < 400:
                found["error.type"] = str(charge.status or "no_answer")
            self._of_requests[kind] = found
        return found


class Operation:
    """A running operation of the service, and the sum of its requests."""

    __slots__ = (
        "_attached",
        "_caused_by",
        "_context",
        "_named",
        "_started",
        "_token",
        "charge",
        "error",
        "name",
        "requests",
        "retries",
        "span",
        "status",
        "sub_status",
        "target",
        "telemetry",
        "traced",
    )

    def __init__(
        self,
        telemetry: Telemetry,
        name: str,
        target: str | None,
        named: tuple[str, Attributes],
        caused_by: Operation | None,
    ) -> None:
        self.telemetry, self.name, self.target = telemetry, name, target
        self._named, self._caused_by = named, caused_by
        self.charge, self.requests, self.retries = 0.0, 0, 0
        self.status = self.sub_status = 0
        self.error: BaseException | None = None  # what its result reports

    def __enter__(self) -> Operation:
        self._token: Token[Operation | None] = _current.set(self)
        name, attributes = self._named
        if self._caused_by is None:
            self.span = _tracer.start_span(name, attributes=attributes)
        else:
            links = [Link(self._caused_by.span.get_span_context())]
            nowhere = contexts.Context()
            self.span = _tracer.start_span(name, nowhere, attributes=attributes, links=links)
        self.traced = self.span.is_recording()
        self._attached: Token[Context] | None = None
        if self.span is not trace.INVALID_SPAN:
            # Also if it is not sampled: then its children are not sampled either.
            self._context = trace.set_span_in_context(self.span)
            self._attached = contexts.attach(self._context)
        self._started = time.perf_counter()
        return self

    def answered(self, charge: RequestCharge, seconds: float, attributes: Attributes) -> None:
        self.charge += charge.request_units
        self.requests += 1
        self.retries += charge.retries
        if charge.status < 400 or self.status == 0:
            self.status, self.sub_status = charge.status, charge.sub_status
        if not self.traced:
            return
        end = time.time_ns()
        span = _tracer.start_span(
            f"{attributes['db.operation.name']} {charge.container}",
            context=self._context,
            kind=SpanKind.CLIENT,
            attributes=attributes,
            start_time=end - int(seconds * 1e9),
        )
        span.set_attribute("azure.cosmosdb.operation.request_charge", charge.request_units)
        span.set_attribute("cosmosservice.retries", charge.retries)
        if "error.type" in attributes:
            span.set_status(Status(StatusCode.ERROR))
        span.end(end)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        seconds = time.perf_counter() - self._started
        error = error or self.error
        error_type = type(error).__name__ if error is not None else ""
        _operation_duration.record(seconds, self.telemetry.outcome(self.name, error_type))
        if isinstance(error, StaleSessionError):
            conflict("refused")
        if self.traced:
            self._finish(error, error_type)
        if self._attached is not None:
            contexts.detach(self._attached)
        _current.reset(self._token)

    def _finish(self, error: BaseException | None, error_type: str) -> None:
        attributes: Attributes = {
            "azure.cosmosdb.operation.request_charge": round(self.charge, 2),
            "cosmosservice.requests": self.requests,
            "cosmosservice.retries": self.retries,
        }
        status = _status_of(error) or self.status
        if status:
            attributes["db.response.status_code"] = str(status)
        if self.sub_status and status == self.status:
            attributes["azure.cosmosdb.response.sub_status_code"] = self.sub_status
        if error is not None:
            attributes["error.type"] = error_type
            self.span.set_status(Status(StatusCode.ERROR))
        self.span.set_attributes(attributes)
        self.span.end()


class _Unobserved:
    """An operation while the application has not configured OpenTelemetry."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


_UNOBSERVED = _Unobserved()

_current: ContextVar[Operation | None] = ContextVar("cosmosservice_operation", default=None)

_APIS = ("opentelemetry.trace", "opentelemetry.metrics")
_configured = False


def _is_configured() -> bool:
    """Whether the application has an OpenTelemetry SDK: the API's own providers record nothing.
    Once set, a provider stays."""
    global _configured
    if not _configured:
        providers = trace.get_tracer_provider(), metrics.get_meter_provider()
        _configured = not all(type(each).__module__.startswith(_APIS) for each in providers)
    return _configured


def background(name: str) -> Operation | _Unobserved:
    """An operation that continues after the one that caused it."""
    cause = _current.get()
    if cause is None:
        return _UNOBSERVED
    return cause.telemetry.operation(name, cause.target, caused_by=cause)


def conflict(outcome: str) -> None:
    """An append found its sequence number taken and was "refused" or "rebased"."""
    _conflicts.add(1, _here() | {"cosmosservice.conflict.outcome": outcome})


def reported(error: Exception) -> None:
    """The current operation does not raise this error, but its result reports it."""
    operation = _current.get()
    if operation is not None:
        operation.error = error


def repaired(events: int) -> None:
    """The session document now includes these events, which another process appended."""
    if events:
        _repairs.add(events, _here())


def caught_up(seconds: float) -> None:
    """A session document was written this long after its first pending event."""
    _projection_lag.record(seconds, _here())


_HIT: Mapping[str, bool] = {"cosmosservice.cache.hit": True}
_MISS: Mapping[str, bool] = {"cosmosservice.cache.hit": False}


def looked_up(hit: bool) -> None:
    """An entry was looked up in the cache."""
    _cache_lookups.add(1, _HIT if hit else _MISS)


class Lagging(Protocol):
    @property
    def lag(self) -> int: ...


_lagging: WeakSet[Lagging] = WeakSet()
_guard = ForkSafeLock()


def watch(projector: Lagging) -> None:
    """Counts the session documents that the owner has yet to write, while it exists."""
    with _guard:
        _lagging.add(projector)


def _late(_: metrics.CallbackOptions) -> Iterable[metrics.Observation]:
    with _guard:
        yield metrics.Observation(sum(each.lag for each in _lagging))


_meter.create_observable_gauge(
    "cosmosservice.projection.late",
    callbacks=[_late],
    unit="{document}",
    description="Session documents that are late and will be written soon",
)


def _here() -> Attributes:
    operation = _current.get()
    return {} if operation is None else operation.telemetry.outcome(current_operation.get(), "")


def _status_of(error: BaseException | None) -> int:
    if isinstance(error, StaleSessionError | AlreadyExistsError):
        return 409
    if isinstance(error, SessionNotFoundError):
        return 404
    return getattr(error, "status", None) or 0


def _server(settings: Settings) -> Attributes:
    if settings.embedded_path is not None:
        return {}
    parts = urlsplit(settings.endpoint)
    found: Attributes = {"server.address": parts.hostname or ""}
    if parts.port not in (None, 443):
        found["server.port"] = parts.port or 0
    return found
