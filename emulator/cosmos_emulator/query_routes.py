"""Queries and feeds: the part of a container that they read, their pages and charges."""

from __future__ import annotations

import base64
import sqlite3
import time
from dataclasses import dataclass
from typing import Any

from . import charges, query
from .catalog import Catalog
from .clock import Clock
from .containers import Container
from .documents import dumps, load_object
from .errors import BadQuery, BadRequest, CosmosError, CrossPartitionDisabled, MustBeMerged
from .messages import JSON, Request, Response
from .partition_keys import MAX_EPK, parse_header
from .snapshots import Snapshots
from .sources import ItemSource, TableSource
from .storage import Storage

DEFAULT_PAGE = 100
# Which indexes a query used is not known here; the shape is the service's.
NO_INDEX_METRICS = base64.b64encode(
    dumps(
        {
            "UtilizedSingleIndexes": [],
            "PotentialSingleIndexes": [],
            "UtilizedCompositeIndexes": [],
            "PotentialCompositeIndexes": [],
        }
    ).encode()
).decode()
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
        self, storage: Storage, catalog: Catalog, clock: Clock, snapshots: Snapshots
    ) -> None:
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
        with self._storage.reading():
            container = self._catalog.container_of(request)
        features = request.headers.get("x-ms-cosmos-supported-query-features", "")
        supported = frozenset(name.strip() for name in features.split(","))
        described = _described(container, text, parameters, supported)
        headers = {"content-type": JSON, "x-ms-request-charge": "0"}  # No partition was queried.
        return Response(200, headers, dumps(described).encode())

    def _run(self, request: Request, text: str, parameters: list[dict[str, Any]]) -> Response:
        started = time.perf_counter()
        with self._storage.reading() as connection:
            container = self._catalog.container_of(request)
            selection = self.selection(request, container)
            place = request.headers.get("x-ms-continuation")
            number = None
            if selection.across_partitions and _is_appended(request, container, text, parameters):
                number, place = _part(container, place)
                part = container.ranges[number]
                selection = Selection(None, (part.low, part.high))
            snapshot = self._snapshots.of(request, container, selection.key, selection.epk_range)
            source = ItemSource(self._storage, connection, container, self._clock.now(), snapshot)
            page = run_page(
                request,
                text,
                parameters,
                source,
                continuation=place,
                across_partitions=selection.across_partitions,
                vector_policy=container.vector_policy,
                computed_properties=container.computed_properties,
                policy=container.definition["indexingPolicy"],
                verbatim=True,
            )
        headers = {
            "content-type": JSON,
            "x-ms-request-charge": f"{charges.query(page.scanned, page.scanned_bytes):.2f}",
            "x-ms-item-count": str(len(page.items)),
            **snapshot.headers(container),
        }
        place = page.continuation if number is None else _next(container, number, page.continuation)
        if place:
            headers["x-ms-continuation"] = place
        text = _answer(container, page)
        if request.flag("x-ms-documentdb-populatequerymetrics"):
            headers["x-ms-documentdb-query-metrics"] = _metrics(page, started, len(text))
        if request.flag("x-ms-cosmos-populateindexmetrics"):
            headers["x-ms-cosmos-index-utilization"] = NO_INDEX_METRICS
        return Response(200, headers, text.encode())

    def selection(self, request: Request, container: Container) -> Selection:
        """The partition or the range of keys that a request names."""
        headers = request.headers
        epk_range = None
        if "x-ms-documentdb-partitionkeyrangeid" in headers:
            epk_range = _range(container, headers["x-ms-documentdb-partitionkeyrangeid"])
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
    documents = (item if isinstance(item, query.Verbatim) else dumps(item) for item in page.items)
    rid, count = dumps(container.rid), len(page.items)
    return f'{{"_rid":{rid},"Documents":[{",".join(documents)}],"_count":{count}}}'


def crosses(request: Request) -> bool:
    """Whether a query is for all partitions. A feed always is."""
    return request.operation != "query" or request.flag(
        "x-ms-documentdb-query-enablecrosspartition"
    )


def _is_appended(
    request: Request, container: Container, text: str, parameters: list[dict[str, Any]]
) -> bool:
    """Whether ranges answer one after the other: the gateway does not sort or add up for them."""
    try:
        if not crosses(request) and not query.speaks_of(text, container.keys.paths[0]):
            raise CrossPartitionDisabled
        split = query.split(text) if len(container.ranges) > 1 else query.Split.WHOLE
    except query.QueryError as error:
        raise BadQuery(error.message, error.body()) from error
    if split is query.Split.MERGED:
        raise MustBeMerged(_described(container, text, parameters))
    return split is query.Split.APPENDED


def _part(container: Container, place: str | None) -> tuple[int, str | None]:
    """Which range is next, and where in it."""
    if place is None:
        return 0, None
    range_id, _, token = place.partition(":")
    ids = [found.id for found in container.ranges]
    if any(range_id in found.parents for found in container.ranges):
        raise _gone(range_id)
    if range_id not in ids:
        raise BadRequest("Invalid Continuation Token")
    return ids.index(range_id), token or None


def _next(container: Container, number: int, token: str | None) -> str | None:
    """The place after a page of a range: in the same one, in the next one, or at the end."""
    ranges = container.ranges
    if token is not None:
        return f"{ranges[number].id}:{token}"
    return f"{ranges[number + 1].id}:" if number + 1 < len(ranges) else None


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
            vector_policy=container.vector_policy,
            computed_properties=container.computed_properties,
        )
    except query.QueryError as error:
        raise BadQuery(error.message, error.body()) from error


def _range(container: Container, range_id: str) -> tuple[str, str]:
    for found in container.ranges:
        if range_id in (found.id, f"{container.rid},{found.id}"):
            return found.low, found.high
    raise _gone(range_id)


def _gone(range_id: str) -> CosmosError:
    return CosmosError(
        f"The partition key range '{range_id[:100]}' does not exist.", status=410, substatus=1002
    )


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
    spec = load_object(request)
    text, parameters = spec.get("query"), spec.get("parameters") or []
    if not isinstance(text, str):
        raise BadRequest("The query of the request is missing.")
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
        raise BadRequest(f"The page size '{text[:100]}' is invalid.") from None
    if size == 0 or size < -1:
        raise BadRequest(f"The page size {size} is invalid.")
    return ALL if size == -1 else size


def run_page(
    request: Request,
    text: str,
    parameters: list[dict[str, Any]],
    source: query.Source,
    *,
    continuation: str | None,
    policy: dict[str, Any] | None = None,
    **options: Any,
) -> query.Page:
    """Runs a page; `policy` is the indexing policy that an order must be served by."""
    try:
        if policy is not None:
            query.check_order(text, policy)
        return query.run(
            text,
            parameters,
            source,
            max_items=page_size(request),
            continuation=continuation,
            **options,
        )
    except query.QueryError as error:
        raise BadQuery(error.message, error.body()) from error


def holds(connection: sqlite3.Connection, condition: str, body: str) -> bool:
    """Whether the condition of a patch (``from c where c.x = 1``) holds for a stored document."""
    one = "(SELECT 1 AS rowid, ? AS body, json_extract(?, '$.id') AS id, 0 AS ts)"
    source = TableSource(connection, one, [], [body, body])
    try:
        page = query.run(f"SELECT VALUE 1 {condition}", [], source, max_items=1, continuation=None)
    except query.QueryError as error:
        raise BadQuery(error.message, error.body()) from error
    return bool(page.items)
