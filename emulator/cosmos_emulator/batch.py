"""Transactional batches: up to 100 operations on one partition, all or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import patch
from .documents import loads
from .errors import BadRequest, CosmosError, NotModified
from .items import Conditions, Items, Outcome
from .messages import Document

MAX_OPERATIONS = 100

Holds = Callable[[str, str], bool]


class BatchFailed(Exception):
    """An operation failed: those before it must be undone. Carries the results to send."""

    def __init__(self, results: list[Document]) -> None:
        super().__init__("the batch failed")
        self.results = results


def run(items: Items, key: str, operations: Any, holds: Holds) -> tuple[list[Document], int]:
    """Apply all operations in order; returns their results and the last LSN."""
    if not isinstance(operations, list) or not operations:
        raise BadRequest("Batch request has no operations.")
    if len(operations) > MAX_OPERATIONS:
        raise BadRequest(
            "Batch request has more operations than what is supported. "
            f"It has {len(operations)}, at most {MAX_OPERATIONS} are allowed."
        )
    results: list[Document] = []
    lsn = 0
    for position, operation in enumerate(operations):
        try:
            outcome = _apply(items, key, operation, holds)
        except NotModified as same:
            results.append({"statusCode": 304, "requestCharge": same.charge})
            continue
        except CosmosError as error:
            raise BatchFailed(_failure(operations, position, error)) from error
        lsn = max(lsn, outcome.lsn)
        results.append(_success(outcome))
    return results, lsn


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


def _success(outcome: Outcome) -> Document:
    result: Document = {
        "statusCode": outcome.status,
        "requestCharge": round(outcome.charge, 2),
    }
    if outcome.text:
        result["eTag"] = outcome.etag
        result["resourceBody"] = loads(outcome.text)
    return result


def _failure(operations: list[Any], position: int, error: CosmosError) -> list[Document]:
    results: list[Document] = [{"statusCode": 424, "requestCharge": 0} for _ in operations]
    failed = results[position]
    failed["statusCode"] = error.status
    failed["requestCharge"] = error.charge
    failed["message"] = error.message
    if error.substatus:
        failed["subStatusCode"] = error.substatus
    return results
