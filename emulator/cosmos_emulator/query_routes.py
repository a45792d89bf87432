"""Queries and feeds: the part of a container that they read, their pages and charges."""

from __future__ import annotations

import base64
import sqlite3
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from cosmos_emulator import charges, continuations, query
from cosmos_emulator.aside import LONG_TEXT, TakesLong, brief
from cosmos_emulator.catalog import Catalog
from cosmos_emulator.clock import Clock
from cosmos_emulator.containers import Container
from cosmos_emulator.documents import dumps, load_object
from cosmos_emulator.errors import BadQuery, BadRequest, CrossPartitionDisabled, MustBeMerged
from cosmos_emulator.messages import JSON, PLAIN_QUERY, Request, Response
from cosmos_emulator.partition_keys import MAX_EPK, key_text, parse_header
from cosmos_emulator.query.deadline import Deadline
from cosmos_emulator.rules import Rules
from cosmos_emulator.snapshots import Snapshots
from cosmos_emulator.sources import ItemSource, TableSource
from cosmos_emulator.storage import Storage

DEFAULT_PAGE = 1000
MAX_QUERY = 512 * 1024
_KEPT_OUT = nullcontext()
_OFTEN = 10_000  # steps of SQLite between two looks at the clock
ALL = 1_000_000  # what a page size of −1 comes to; the size limit of a page ends it earlier


@dataclass(slots=True)
class Selection:
    """The part of a container that a request selects."""

    key: str | None = None
    epk_range: tuple[str, str] | None = None

    @property
    def across_partitions(self) -> bool:
        return self.key is None and self.epk_range is None


class QueryRoutes:
    """Answers queries over the items of a container, and reads its feed."""

    def __init__(
        self,
        storage: Storage,
        catalog: Catalog,
        clock: Clock,
        snapshots: Snapshots,
        rules: Rules,
    ) -> None:
        self._follows_policy = "no-index-policy" not in rules.deviations
        self._merges = "no-plan" in rules.deviations
        self._lenient = rules.lenient
        self._storage = storage
        self._catalog = catalog
        self._clock = clock
        self._snapshots = snapshots

    def query(self, request: Request) -> Response:
        text, parameters = query_spec(request)
        return self._run(request, text, parameters)

    def feed(self, request: Request) -> Response:
        return self._run(request, "SELECT * FROM c", [])

    def plan(self, request: Request) -> Response:
        """How a client has to merge the answers of the ranges."""
        text, parameters = query_spec(request)
        check_length(request, text)
        with self._storage.reading():
            container = self._catalog.container_of(request)
        features = request.headers.get("x-ms-cosmos-supported-query-features", "")
        supported = frozenset(name.strip() for name in features.split(","))
        described = _described(container, text, parameters, supported)
        return Response(200, {"content-type": JSON}, dumps(described).encode())

    def _run(self, request: Request, text: str, parameters: list[dict[str, Any]]) -> Response:
        started = time.perf_counter()
        check_length(request, text)
        with connection_for(request, self._storage) as connection:
            with self._reading(request):
                container = self._catalog.container_of(request)
                selection = self.selection(request, container)
            if selection.across_partitions:
                selection = self._narrowed(selection, container, text, parameters)
            continuation = request.headers.get("x-ms-continuation")
            steps = None
            if selection.across_partitions:
                appended = self._is_appended(request, container, text, parameters)
                ranges = container.ranges if appended else None
                steps = continuations.read(continuation, ranges)
                continuation = steps[0].token
                if appended:
                    selection = Selection(None, (steps[0].low, steps[0].high))
            with self._reading(request):
                snapshot = self._snapshots.of(
                    request, container, selection.key, selection.epk_range
                )
            source = ItemSource(self._storage, connection, container, self._clock.now(), snapshot)
            page = run_page(
                request,
                text,
                parameters,
                source,
                continuation=continuation,
                across_partitions=selection.across_partitions and not self._merges,
                policies=container.policies,
                computed_properties=container.computed_properties,
                container=container if self._follows_policy else None,
                verbatim=True,
            )
        looks_up = page.looks_up or selection.key is not None
        charge = charges.query(page.scanned, page.scanned_bytes, looks_up=looks_up)
        headers = {
            "content-type": JSON,
            "x-ms-request-charge": f"{charge:.2f}",
            "x-ms-item-count": str(len(page.items)),
            **snapshot.headers(container),
        }
        continuation = page.continuation
        if steps is not None:
            continued = "x-ms-continuation" in request.headers
            continuation = continuations.after(steps, continuation, ranges, continued=continued)
        if continuation:
            headers["x-ms-continuation"] = continuation
        query_text, text = text, _answer(container, page)
        if request.flag("x-ms-documentdb-populatequerymetrics"):
            headers["x-ms-documentdb-query-metrics"] = _metrics(page, started, len(text))
        if request.flag("x-ms-cosmos-populateindexmetrics"):
            headers["x-ms-cosmos-index-utilization"] = _index_metrics(
                container, selection, query_text
            )
        return Response(200, headers, text.encode())

    def _reading(self, request: Request) -> AbstractContextManager[object]:
        """Keeps writers out for a moment; a brief query does so all the time."""
        return _KEPT_OUT if request.deadline is None else self._storage.reading()

    def _narrowed(
        self,
        selection: Selection,
        container: Container,
        text: str,
        parameters: list[dict[str, Any]],
    ) -> Selection:
        """One partition, if the query itself names its key. Its aggregates need VALUE all the
        same."""
        try:
            key = query.fixed_key(text, parameters, container.keys.paths)
            if key is not None and not (self._lenient or self._merges):
                query.split(text)
        except query.QueryError as error:
            raise BadQuery(error.message, error.body(), plain=error.plain) from error
        return selection if key is None else Selection(key_text(key), None)

    def _is_appended(
        self, request: Request, container: Container, text: str, parameters: list[dict[str, Any]]
    ) -> bool:
        """Whether ranges answer one after the other: the gateway does not sort or add up for them,
        not even for a single one, unless the emulator is lenient."""
        several = len(container.ranges) > 1
        try:
            if not crosses(request) and not query.speaks_of(text, container.keys.paths[0]):
                raise CrossPartitionDisabled
            if (self._lenient or self._merges) and not several:
                return False
            split = query.split(text)
        except query.QueryError as error:
            raise BadQuery(error.message, error.body(), plain=error.plain) from error
        if split is query.Split.MERGED:
            raise MustBeMerged(_described(container, text, parameters))
        return several and split is query.Split.APPENDED

    def selection(self, request: Request, container: Container) -> Selection:
        """The partition or the range of keys that a request names."""
        headers = request.headers
        epk_range = None
        if "x-ms-documentdb-partitionkeyrangeid" in headers:
            named = container.range_named(headers["x-ms-documentdb-partitionkeyrangeid"])
            epk_range = named.low, named.high
        if "x-ms-start-epk" in headers or "x-ms-end-epk" in headers:
            # The SDK writes the keys of version 1 in lower case.
            start, end = headers.get("x-ms-start-epk", ""), headers.get("x-ms-end-epk", MAX_EPK)
            low, high = epk_range or ("", MAX_EPK)
            epk_range = (max(low, start.upper()), min(high, end.upper()))
        header = headers.get("x-ms-documentdb-partitionkey")
        if header is None:
            return Selection(None, epk_range)
        key, size = parse_header(header)
        if size == 0 and container.keys.kind == "MultiHash":
            raise BadRequest("A prefix of a hierarchical partition key needs a value.")
        if 0 < size < len(container.keys.paths):
            start = container.keys.epk(key)
            return Selection(None, (start, start + "FF"))
        return Selection(container.keys.of_header(header), epk_range)


def _answer(container: Container, page: query.Page) -> str:
    documents = [item if isinstance(item, query.Verbatim) else _text(item) for item in page.items]
    rid, count = dumps(container.rid), len(page.items)
    return f'{{"_rid":{rid},"Documents":[{",".join(documents)}],"_count":{count}}}'


def _text(item: Any) -> str:
    try:
        return dumps(item)
    except ValueError:
        message = (
            "The response content contains a numeric value that cannot be represented in JSON "
            "(e.g. Infinity and NaN)."
        )
        details = {"errors": [{"severity": "Error", "code": 4001, "message": message}]}
        raise BadQuery(message, details, 4001, charges.PLAIN_QUERY) from None


def check_length(request: Request, text: str) -> None:
    """A text that takes long to read is read aside."""
    if len(text) > LONG_TEXT and request.deadline is None:
        raise TakesLong


def connection_for(
    request: Request, storage: Storage
) -> AbstractContextManager[sqlite3.Connection]:
    """The connection of all requests, or one of its own for a query that takes long."""
    return storage.reading() if request.deadline is None else storage.separate_connection()


class _Interrupting:
    """Lets the deadline end what SQLite does between two rows."""

    def __init__(self, source: TableSource, deadline: Deadline) -> None:
        self._connection = source.connection
        self._deadline = deadline
        self._ended: Exception | None = None

    def __enter__(self) -> None:
        self._connection.set_progress_handler(self._check, _OFTEN)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._connection.set_progress_handler(None, 0)
        if self._ended is not None and isinstance(error, sqlite3.OperationalError):
            raise self._ended from None

    def _check(self) -> bool:
        try:
            self._deadline.look()
        except (TakesLong, query.QueryError) as error:
            self._ended = error
        return self._ended is not None


def crosses(request: Request) -> bool:
    """Whether a query is for all partitions. A feed always is."""
    return request.operation != "query" or request.flag(
        "x-ms-documentdb-query-enablecrosspartition"
    )


def _described(
    container: Container,
    text: str,
    parameters: list[dict[str, Any]],
    features: frozenset[str] | None = None,
) -> dict[str, Any]:
    try:
        return query.describe(
            text,
            parameters,
            features=features,
            policies=container.policies,
            computed_properties=container.computed_properties,
        )
    except query.QueryError as error:
        raise BadQuery(error.message, error.body(), plain=error.plain) from error


def _index_metrics(container: Container, selection: Selection, text: str) -> str:
    """The paths that the query filters and sorts by, and whether the policy indexes them."""
    paths = list(container.keys.paths) if selection.key is not None else []
    paths += [path for path in query.paths_used(text) if path not in paths]
    found: dict[str, list[dict[str, Any]]] = {"Utilized": [], "Potential": []}
    for path in paths:
        found["Utilized" if container.terms.includes(path) else "Potential"].append(
            {
                "FilterExpression": "",
                "IndexSpec": f"/{'/'.join(path)}/?",
                "FilterPreciseSet": True,
                "IndexPreciseSet": True,
                "IndexImpactScore": "High",
            }
        )
    metrics = {
        "UtilizedSingleIndexes": found["Utilized"],
        "PotentialSingleIndexes": found["Potential"],
        "UtilizedCompositeIndexes": [],
        "PotentialCompositeIndexes": [],
    }
    return base64.b64encode(dumps(metrics).encode()).decode()


def _metrics(page: query.Page, started: float, output: int) -> str:
    """The service's metrics of a query, as far as they are known here."""
    milliseconds = (time.perf_counter() - started) * 1000
    figures = {
        "totalExecutionTimeInMs": f"{milliseconds:.2f}",
        "queryCompileTimeInMs": "0.00",
        "queryLogicalPlanBuildTimeInMs": "0.00",
        "queryPhysicalPlanBuildTimeInMs": "0.00",
        "queryOptimizationTimeInMs": "0.00",
        "VMExecutionTimeInMs": f"{milliseconds:.2f}",
        "indexLookupTimeInMs": "0.00",
        "instructionCount": "0",
        "documentLoadTimeInMs": "0.00",
        "systemFunctionExecuteTimeInMs": "0.00",
        "userFunctionExecuteTimeInMs": "0.00",
        "retrievedDocumentCount": str(page.scanned),
        "retrievedDocumentSize": str(page.scanned_bytes),
        "outputDocumentCount": str(len(page.items)),
        "outputDocumentSize": str(output),
        "writeOutputTimeInMs": "0.00",
        "indexUtilizationRatio": "1.00",
    }
    return ";".join(f"{name}={value}" for name, value in figures.items())


def query_spec(request: Request) -> tuple[str, list[dict[str, Any]]]:
    if request.headers.get("content-type", "").startswith(PLAIN_QUERY):
        return request.body.decode("utf-8", "replace"), []
    spec = load_object(request)
    text, parameters = spec.get("query"), spec.get("parameters") or []
    if not isinstance(text, str):
        raise BadRequest("The query of the request is missing.")
    if len(text) > MAX_QUERY:
        raise BadRequest(
            f"The SQL query text exceeded the maximum limit of {MAX_QUERY} characters."
        )
    if not isinstance(parameters, list) or not all(
        isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in parameters
    ):
        raise BadRequest("The parameters of a query must be a list of names and values.")
    return text, parameters


def page_size(request: Request) -> int:
    text = request.headers.get("x-ms-max-item-count", "")
    try:
        size = int(text) if text else DEFAULT_PAGE
    except ValueError:
        size = -2
    if size < -1:
        raise BadRequest(
            f"The input PageSize {text[:100]} is invalid. Ensure to pass a valid page size which "
            "must be a positive integer or -1 for a dynamic page size.",
            plain=True,
        )
    return ALL if size == -1 else size or DEFAULT_PAGE


def run_page(
    request: Request,
    text: str,
    parameters: list[dict[str, Any]],
    source: TableSource,
    *,
    continuation: str | None,
    container: Container | None = None,
    **options: Any,
) -> query.Page:
    """Runs a page; the index of `container` must be able to serve its order."""
    deadline = request.deadline or brief()
    try:
        if container is not None:
            policy = container.definition["indexingPolicy"]
            query.check_order(text, policy, container.terms.includes)
        with _Interrupting(source, deadline):
            return query.run(
                text,
                parameters,
                source,
                max_items=page_size(request),
                continuation=continuation,
                deadline=deadline,
                **options,
            )
    except query.QueryError as error:
        raise BadQuery(error.message, error.body(), plain=error.plain) from error


def holds(connection: sqlite3.Connection, condition: str, body: str) -> bool:
    """Whether the condition of a patch (`from c where c.x = 1`) holds for a stored document."""
    one = "(SELECT 1 AS rowid, ? AS body, json_extract(?, '$.id') AS id, 0 AS ts)"
    source = TableSource(connection, one, [], [body, body])
    try:
        deadline = brief()
        with _Interrupting(source, deadline):
            page = query.run(
                f"SELECT VALUE 1 {condition}",
                [],
                source,
                max_items=1,
                continuation=None,
                deadline=deadline,
            )
    except TakesLong:
        raise BadRequest("The condition of the patch takes too long.") from None
    except query.QueryError as error:
        raise BadQuery(error.message, error.body(), plain=error.plain) from error
    return bool(page.items)
