"""Requests for items: points, batches, queries, feeds, ranges."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from cosmos_emulator import batch, change_feed, change_log, charges, patch
from cosmos_emulator.catalog import Catalog
from cosmos_emulator.clock import Clock
from cosmos_emulator.containers import Container
from cosmos_emulator.deviations import EXPIRED_FOR
from cosmos_emulator.documents import check_size, dumps, load_body, load_object
from cosmos_emulator.errors import (
    BadRequest,
    Conflict,
    CosmosError,
    NotAllowed,
    NotFound,
    NotModified,
    PreconditionFailed,
)
from cosmos_emulator.items import Conditions, Items, Outcome
from cosmos_emulator.messages import JSON, Request, Response
from cosmos_emulator.query_routes import QueryRoutes, holds
from cosmos_emulator.rules import Rules
from cosmos_emulator.snapshots import Snapshots
from cosmos_emulator.storage import MANY, Storage

_TRIGGERS = {"x-ms-documentdb-pre-trigger-include", "x-ms-documentdb-post-trigger-include"}
KEY_HEADER = "x-ms-documentdb-partitionkey"


class ItemRoutes:
    """`…/docs` and the other paths for the items of a container."""

    def __init__(
        self,
        storage: Storage,
        catalog: Catalog,
        clock: Clock,
        snapshots: Snapshots,
        rules: Rules,
    ) -> None:
        self._storage = storage
        self._catalog = catalog
        self._clock = clock
        self._snapshots = snapshots
        self._queries = QueryRoutes(storage, catalog, clock, snapshots, rules)
        self._feed_grace = EXPIRED_FOR if "feed-of-expired" in rules.deviations else 0

    def handle(self, request: Request) -> Response:
        if len(request.segments) == 6:
            return self._point(request)
        if request.method == "POST":
            return self._post(request)
        if request.method != "GET":
            raise NotAllowed(f"{request.method} does not apply to a feed of items.")
        if "a-im" in request.headers:
            return self._change_feed(request)
        return self._queries.feed(request)

    def _post(self, request: Request) -> Response:
        operation = request.operation
        if operation == "query":
            return self._queries.query(request)
        if operation == "query plan":
            return self._queries.plan(request)
        check_size(request.body)
        if operation == "batch":
            return self._batch(request)
        document = load_object(request)
        conditions = _conditions(request)
        with self._deciding(request) as (connection, container, key):
            items = Items(connection, container, self._clock.now())
            if operation == "upsert":
                outcome = items.upsert(key, document, conditions)
            else:
                outcome = items.create(key, document)
        return _answer(request, outcome, container.session_headers(outcome.lsn, key))

    def _point(self, request: Request) -> Response:
        method, name = request.method, request.segments[5]
        if method == "GET":
            with self._storage.reading() as connection:
                container = self._container(request)
                key = _key(request, container)
                snapshot = self._snapshots.of(request, container, key)
                items = Items(connection, container, self._clock.now(), snapshot.table)
                item_id = items.resolve(request.segments[3], name)
                try:
                    outcome = items.read(key, item_id, request.headers.get("if-none-match"))
                except NotModified as same:
                    same.headers.update(snapshot.headers(container))
                    raise
                except NotFound as refused:
                    refused.headers.update(snapshot.headers(container, refused=True))
                    raise
            return _answer(request, outcome, snapshot.headers(container))
        check_size(request.body)
        conditions = _conditions(request)
        body = load_body(request) if method in ("PUT", "PATCH") else None
        with self._deciding(request) as (connection, container, key):
            items = Items(connection, container, self._clock.now())
            item_id = items.resolve(request.segments[3], name)
            if method == "PUT":
                if not isinstance(body, dict):
                    raise BadRequest("The request body must be a JSON object.")
                outcome = items.replace(key, item_id, body, conditions)
            elif method == "PATCH":
                change, condition = patch.parse(body)
                check = None if condition is None else partial(holds, connection, condition)
                outcome = items.patch(key, item_id, change, conditions, check)
            elif method == "DELETE":
                outcome = items.delete(key, item_id, conditions)
            else:
                raise NotAllowed(f"RequestHandler.{method.capitalize()}", plain=True)
        if method == "DELETE":
            self._storage.erased(1)
        return _answer(request, outcome, container.session_headers(outcome.lsn, key))

    def _batch(self, request: Request) -> Response:
        operations = load_body(request)
        minimal = request.headers.get("prefer") == "return=minimal"
        if request.headers.get("x-ms-cosmos-batch-atomic", "true").lower() == "false":
            return self._bulk(request, operations, minimal)
        status, substatus = 200, 0
        try:
            with self._storage.writing() as connection:
                container = self._container(request)
                items = Items(connection, container, self._clock.now())
                key = _key(request, container)
                results, lsn = batch.run(
                    items, key, operations, partial(holds, connection), minimal=minimal
                )
        except batch.BatchFailed as failed:
            results, lsn, status, substatus = failed.results, 0, 207, failed.substatus
        else:
            self._storage.erased(sum(result["statusCode"] == 204 for result in results))
        lsn = lsn or self._catalog.lsn(container)
        charge = sum(result["requestCharge"] for result in results)
        headers = _headers(container, charge, lsn, key, refused=status == 207)
        headers["x-ms-item-count"] = str(len(results))
        if substatus:
            headers["x-ms-substatus"] = str(substatus)
        return Response(status, headers, dumps(results).encode())

    def _bulk(self, request: Request, operations: Any, minimal: bool) -> Response:
        named = request.headers.get("x-ms-documentdb-partitionkeyrangeid")
        with self._storage.writing() as connection:
            container = self._container(request)
            alone = KEY_HEADER in request.headers or named is None
            key = _key(request, container) if alone else None
            within = container.range_named(named) if named is not None else None
            bulk = batch.Bulk(
                connection,
                container,
                self._clock.now(),
                partial(holds, connection),
                key=key,
                within=within,
            )
            stops = not request.flag("x-ms-cosmos-batch-continue-on-error")
            results, lsn = bulk.run(operations, stops=stops, minimal=minimal)
        codes = [result["statusCode"] for result in results]
        self._storage.erased(codes.count(204))
        lsn = lsn or self._catalog.lsn(container)
        headers = container.session_headers(lsn, key, (within.low, within.high) if within else None)
        headers["content-type"] = JSON
        charge = sum(result["requestCharge"] for result in results)
        headers["x-ms-request-charge"] = f"{charge:.2f}"
        headers["x-ms-item-count"] = str(len(results))
        status = 207 if any(code >= 400 for code in codes) else 200
        return Response(status, headers, dumps(results).encode())

    def delete_partition(self, request: Request) -> Response:
        """`partitionkeydelete`: everything under one key."""
        with self._storage.writing(frees=True) as connection:
            container = self._container(request)
            key = _key(request, container)
            lsn = Items(connection, container, self._clock.now()).delete_partition(key)
        self._storage.erased(MANY)
        return Response(200, _headers(container, charges.write(0, 0), lsn, key))

    def ranges(self, request: Request) -> Response:
        """The physical partitions of a container."""
        container = self._container(request)
        etag = f'"{container.number}-{len(container.ranges)}"'
        if request.headers.get("if-none-match") == etag:
            raise NotModified(etag)
        ranges = [
            {
                "_rid": container.rid,
                "id": found.id,
                "_etag": etag,
                "minInclusive": found.low,
                "maxExclusive": found.high,
                "ridPrefix": int(found.id),
                "_self": f"{container.self_prefix[:-5]}pkranges/{found.id}/",
                "throughputFraction": 1 / len(container.ranges),
                "status": "online",
                "parents": found.parents,
                "ownedArchivalPKRangeIds": [],
                "_ts": container.definition["_ts"],
                "lsn": 0,
            }
            for found in container.ranges
        ]
        body = {"_rid": container.rid, "PartitionKeyRanges": ranges, "_count": len(ranges)}
        headers = {
            "content-type": JSON,
            "x-ms-item-count": str(len(ranges)),
        }
        if "a-im" in request.headers:
            headers["etag"] = etag
        return Response(200, headers, dumps(body).encode())

    def _change_feed(self, request: Request) -> Response:
        full = request.headers["a-im"].strip().lower() == change_log.FEED
        with self._storage.reading() as connection:
            container = self._container(request)
            if full and container.retention is not None:
                with self._storage.writing():
                    Items(connection, container, self._clock.now()).expire()
            selection = self._queries.selection(request, container)
            self._storage.ensure_feed_index(container.number)
            snapshot = self._snapshots.of(
                request, container, selection.key, selection.epk_range, alike=True
            )
            page = (change_log if full else change_feed).read(
                connection,
                container,
                self._clock.now() - self._feed_grace,
                request.headers,
                snapshot,
            )
        charge = charges.read(0) + charges.feed(page.count, len(page.text))
        headers = snapshot.headers(container)
        headers["content-type"] = JSON
        headers["x-ms-request-charge"] = f"{charge:.2f}"
        headers["etag"] = page.etag
        headers["x-ms-item-count"] = str(page.count)
        if not page.count:
            return Response(304, headers)
        return Response(200, headers, page.text.encode())

    @contextmanager
    def _deciding(self, request: Request) -> Iterator[tuple[sqlite3.Connection, Container, str]]:
        """A write to one partition. It is decided on the newest state. The session token tells a
        refused client how new that state is."""
        _check_triggers(request)
        with self._storage.lock:
            addressed = None
            try:
                deletes = request.method == "DELETE"
                with self._storage.writing(frees=deletes) as connection:
                    container = self._container(request)
                    key = _key(request, container)
                    addressed = container, key
                    yield connection, container, key
            except (NotFound, Conflict, PreconditionFailed) as refused:
                # Read after the transaction is rolled back: it may have taken an LSN.
                if addressed is not None:
                    container, key = addressed
                    lsn = self._catalog.lsn(container)
                    refused.headers.update(container.session_headers(lsn, key, refused=True))
                raise

    def _container(self, request: Request) -> Container:
        return self._catalog.container_of(request)


def _key(request: Request, container: Container) -> str:
    header = request.headers.get(KEY_HEADER)
    if header is None:
        raise BadRequest(
            "The partition key supplied in x-ms-partitionkey header has fewer components than "
            "defined in the the collection.",
            substatus=1001,
            charge=0,
        )
    return container.keys.of_header(header)


def _check_triggers(request: Request) -> None:
    """A trigger that a write names would have to run: refused rather than left out."""
    if not _TRIGGERS.isdisjoint(request.headers):
        raise CosmosError("Triggers are not run by this emulator.", status=501)


def _conditions(request: Request) -> Conditions:
    headers = request.headers
    return Conditions(headers.get("if-match"), headers.get("if-none-match"))


def _headers(
    container: Container, charge: float, lsn: int, key: str | None = None, *, refused: bool = False
) -> dict[str, str]:
    headers = container.session_headers(lsn, key, refused=refused)
    headers["content-type"] = JSON
    headers["x-ms-request-charge"] = f"{charge:.2f}"
    return headers


def _answer(request: Request, outcome: Outcome, headers: dict[str, str]) -> Response:
    headers["content-type"] = JSON
    headers["x-ms-request-charge"] = f"{outcome.charge:.2f}"
    if outcome.etag:
        headers["etag"] = outcome.etag
    if request.method != "GET" and request.headers.get("prefer") == "return=minimal":
        return Response(outcome.status, headers)
    return Response(outcome.status, headers, outcome.text.encode())
