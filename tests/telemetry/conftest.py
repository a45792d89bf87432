"""An OpenTelemetry SDK that keeps everything in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from cosmos_emulator import Emulator
from cosmosservice import CosmosSessionService


class Seen:
    """What was exported since the test began."""

    def __init__(self, exporter: InMemorySpanExporter, reader: InMemoryMetricReader) -> None:
        self._exporter, self._reader = exporter, reader

    def forget(self) -> None:
        self._exporter.clear()
        self._reader.get_metrics_data()

    @property
    def all_spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def spans(self, operation: str) -> list[ReadableSpan]:
        """The spans with this db.operation.name, in the order in which they ended."""
        return [s for s in self.all_spans if s.attributes.get("db.operation.name") == operation]

    def span(self, operation: str) -> ReadableSpan:
        (found,) = self.spans(operation)
        return found

    def below(self, parent: ReadableSpan) -> list[ReadableSpan]:
        context = parent.context
        return [s for s in self.all_spans if s.parent and s.parent.span_id == context.span_id]

    def measured(self) -> dict[str, list[Any]]:
        """The data points of every metric, since the test began or since the last call."""
        found = self._reader.get_metrics_data()
        return {
            metric.name: list(metric.data.data_points)
            for resource in (found.resource_metrics if found else [])
            for scope in resource.scope_metrics
            if scope.scope.name == "cosmosservice"
            for metric in scope.metrics
        }


@pytest.fixture(scope="session")
def sdk() -> Seen:
    # OpenTelemetry accepts one provider per process.
    exporter = InMemorySpanExporter()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(tracers)
    delta = AggregationTemporality.DELTA
    reader = InMemoryMetricReader(preferred_temporality={Counter: delta, Histogram: delta})
    meters = MeterProvider([reader])
    metrics.set_meter_provider(meters)
    assert trace.get_tracer_provider() is tracers, "another test has set a tracer provider"
    assert metrics.get_meter_provider() is meters, "another test has set a meter provider"
    return Seen(exporter, reader)


@pytest.fixture
def seen(sdk: Seen) -> Iterator[Seen]:
    sdk.forget()
    yield sdk
    sdk.forget()


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    with Emulator(":memory:") as emulator:
        yield emulator


@pytest.fixture
async def service(emulator: Emulator):
    async with CosmosSessionService.embedded(emulator) as service:
        yield service
