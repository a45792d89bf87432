"""Batches of up to 100 operations: transactional ones on one partition, and bulk requests.

A transactional batch is applied as a whole or not at all. The operations of a bulk request
(`batch-atomic: False`) stand alone: each is applied or refused. A bulk request is sent to a
range, and each operation names its partition key; or to one partition, as a batch is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cosmos_emulator import charges, patch
from cosmos_emulator.containers import Container
from cosmos_emulator.documents import loads
from cosmos_emulator.errors import BadRequest, CosmosError, NotModified, RangeGone
from cosmos_emulator.items import Conditions, Items, Outcome
from cosmos_emulator.messages import Document
from cosmos_emulator.ranges import Range

MAX_OPERATIONS = 100

Holds = Callable[[str, str], bool]


class BatchFailed(Exception):
    """An operation failed: those before it must be undone. Carries the results to send."""

    def __init__(self, results: list[Document], substatus: int) -> None:
        super().__init__("the batch failed")
        self.results = results
        self.substatus = substatus


def run(
    items: Items, key: str, operations: Any, holds: Holds, *, minimal: bool = False
) -> tuple[list[Document], int]:
    """Applies all operations in order; returns their results and the last LSN. `minimal`: the
    documents that were written are not returned."""
    results: list[Document] = []
    lsn = 0
    for position, operation in enumerate(_checked(operations)):
        try:
            outcome = _apply(items, key, operation, holds)
        except NotModified:
            results.append({"statusCode": 304, "requestCharge": charges.MISS})
            continue
        except CosmosError as error:
            undone = [{**_NOT_TRIED, "requestCharge": done["requestCharge"]} for done in results]
            rest = [dict(_NOT_TRIED) for _ in operations[position + 1 :]]
            raise BatchFailed([*undone, _failure(error), *rest], error.substatus) from error
        lsn = max(lsn, outcome.lsn)
        results.append(_success(operation, outcome, minimal))
    return results, lsn


class Bulk:
    """A bulk request to one range of a container, or to one partition (`key`)."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        container: Container,
        now: int,
        holds: Holds,
        *,
        key: str | None = None,
        within: Range | None = None,
    ) -> None:
        self._connection = connection
        self._container = container
        self._now = now
        self._holds = holds
        self._key = key
        self._range = within

    def run(
        self, operations: Any, *, stops: bool, minimal: bool = False
    ) -> tuple[list[Document], int]:
        """The results in order, and the last LSN. `stops`: an error ends the request, and the
        operations after it are not tried."""
        results: list[Document] = []
        lsn = 0
        stopped = False
        for operation in _checked(operations):
            if stopped:
                results.append(dict(_NOT_TRIED))
                continue
            try:
                # With an LSN of its own, because it is a transaction of its own.
                with _savepoint(self._connection):
                    items = Items(self._connection, self._container, self._now)
                    outcome = _apply(items, self._key_of(operation), operation, self._holds)
            except NotModified:
                results.append({"statusCode": 304, "requestCharge": charges.MISS})
            except CosmosError as error:
                results.append(_failure(error))
                stopped = stops
            else:
                lsn = max(lsn, outcome.lsn)
                results.append(_success(operation, outcome, minimal))
        return results, lsn

    def _key_of(self, operation: Any) -> str:
        if self._key is not None:
            return self._key
        named = operation.get("partitionKey") if isinstance(operation, dict) else None
        if not isinstance(named, str):
            raise BadRequest(
                "PartitionKey value must be supplied for this operation.", substatus=1001
            )
        key = self._container.keys.of_header(named)
        if self._range is not None and self._range not in self._container.ranges_of(key):
            raise RangeGone(self._range.id)
        return key


@contextmanager
def _savepoint(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("SAVEPOINT operation")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK TO operation")
        raise
    finally:
        connection.execute("RELEASE operation")


def _checked(operations: Any) -> list[Any]:
    if not isinstance(operations, list) or not operations:
        raise BadRequest("Batch request has no operations.")
    if len(operations) > MAX_OPERATIONS:
        raise BadRequest("Batch request has more operations than what is supported.")
    return operations


def _apply(items: Items, key: str, operation: Any, holds: Holds) -> Outcome:
    if not isinstance(operation, dict):
        raise BadRequest("An operation of a batch must be an object.")
    kind = operation.get("operationType")
    conditions = Conditions(operation.get("ifMatch"), operation.get("ifNoneMatch"))
    if kind in ("Create", "Upsert", "Replace"):
        body = operation.get("resourceBody")
        if not isinstance(body, dict):
            raise BadRequest("An operation of a batch that writes needs a resource body.")
        if kind == "Create":
            return items.create(key, body)
        if kind == "Upsert":
            return items.upsert(key, body, conditions)
        return items.replace(key, str(operation.get("id")), body, conditions)
    item_id = operation.get("id")
    if not isinstance(item_id, str):
        raise BadRequest("An operation of a batch on a stored item needs its id.")
    if kind == "Read":
        return items.read(key, item_id, conditions.if_none_match)
    if kind == "Delete":
        return items.delete(key, item_id, conditions)
    if kind == "Patch":
        change, condition = patch.parse(operation.get("resourceBody"))
        check = None if condition is None else (lambda body: holds(condition, body))
        return items.patch(key, item_id, change, conditions, check)
    raise BadRequest(f"The batch operation '{kind}' is unknown.")


def _success(operation: Document, outcome: Outcome, minimal: bool) -> Document:
    result: Document = {
        "statusCode": outcome.status,
        "requestCharge": outcome.charge,
    }
    if outcome.text:
        result["eTag"] = outcome.etag
        written = operation["operationType"] != "Read"
        if not (written and (minimal or operation.get("minimalReturnPreference") is True)):
            result["resourceBody"] = loads(outcome.text)
    return result


_NOT_TRIED: Document = {"statusCode": 424, "requestCharge": 0}


def _failure(error: CosmosError) -> Document:
    failed: Document = {
        "statusCode": error.status,
        "requestCharge": charges.REFUSED_WRITE if error.charge is None else error.charge,
    }
    if isinstance(error, RangeGone):  # A client must know to ask another range.
        failed["subStatusCode"] = error.substatus
    return failed
