"""Errors of the gateway, in the form that the service uses.

CosmosError                 a status, a sub-status and a message
├── BadRequest       400
├── Unauthorized     401
├── Forbidden        403
├── NotFound         404
├── NotAllowed       405
├── Conflict         409
├── RangeGone        410
├── PreconditionFailed 412
├── TooLarge         413
├── TooManyRequests  429
└── NotModified      304    not an error to the client, but it ends a request in the same way
StorageError                the file cannot be used: not a database, too new, disk full
└── ForeignFile             it is a database of another application
"""

from __future__ import annotations

import json
from typing import Any

from cosmos_emulator.messages import JSON, Response

CODES = {
    304: "NotModified",
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "RequestTimeout",
    409: "Conflict",
    410: "Gone",
    412: "PreconditionFailed",
    413: "RequestEntityTooLarge",
    424: "FailedDependency",
    429: "TooManyRequests",
    449: "RetryWith",
    500: "InternalServerError",
    501: "NotImplemented",
    503: "ServiceUnavailable",
}


class CosmosError(Exception):
    """An answer other than success. Without a charge, no partition was asked. A `plain` message is
    the gateway's own; the others stand in a list, as they came from a partition."""

    status = 500
    plain = False

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        substatus: int = 0,
        charge: float | None = None,
        headers: dict[str, str] | None = None,
        plain: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status or self.status
        self.substatus = substatus
        self.charge = charge
        self.headers = headers or {}
        self.plain = self.plain if plain is None else plain

    def details(self) -> dict[str, Any]:
        return {"Errors": [self.message]}

    def response(self, activity_id: str) -> Response:
        headers = dict(self.headers)
        if self.charge is not None:
            headers["x-ms-request-charge"] = f"{self.charge:.2f}"
        if self.substatus:
            headers["x-ms-substatus"] = str(self.substatus)
        if self.status == 304:
            return Response(304, headers)
        headers["content-type"] = JSON
        return Response(self.status, headers, json.dumps(self.body(activity_id)).encode())

    def body(self, activity_id: str) -> dict[str, Any]:
        code = CODES.get(self.status, "Error")
        text = self.message
        if not text:
            return {"code": code}
        if not self.plain:
            errors = json.dumps(self.details(), ensure_ascii=False, separators=(",", ":"))
            text = f"Message: {errors}"
        return {
            "code": code,
            "message": f"{text}\r\nActivityId: {activity_id}, cosmos_emulator",
        }


class BadRequest(CosmosError):
    status = 400


class BadQuery(BadRequest):
    """A query that cannot be answered, and where in its text the problem is."""

    def __init__(
        self,
        message: str,
        details: dict[str, Any],
        substatus: int = 0,
        charge: float | None = None,
        plain: bool = False,
    ) -> None:
        super().__init__(message, substatus=substatus, charge=charge, plain=plain)
        self._details = details

    def details(self) -> dict[str, Any]:
        return self._details


class CrossPartitionDisabled(BadRequest):
    """A query over all partitions must enable that explicitly."""

    plain = True

    def __init__(self) -> None:
        super().__init__(
            "Cross partition query is required but disabled. Please set "
            "x-ms-documentdb-query-enablecrosspartition to true, specify "
            "x-ms-documentdb-partitionkey, or revise your query to avoid this exception."
        )


class MustBeMerged(BadRequest):
    """A query whose results for several ranges the client has to merge, using the query plan."""

    plain = True

    def __init__(self, plan: dict[str, Any]) -> None:
        super().__init__(
            "The provided cross partition query can not be directly served by the gateway. This "
            "is a first chance (internal) exception that all newer clients will know how to "
            "handle gracefully. This exception is traced, but unless you see it bubble up as an "
            "exception (which only happens on older SDK clients), then you can safely ignore this "
            "message.",
            substatus=1004,
        )
        self._plan = plan

    def body(self, activity_id: str) -> dict[str, Any]:
        return {**super().body(activity_id), "additionalErrorInfo": json.dumps(self._plan)}


class InvalidUrl(BadRequest):
    plain = True

    def __init__(self) -> None:
        super().__init__("Request url is invalid.")


class Unauthorized(CosmosError):
    status = 401
    plain = True


class Forbidden(CosmosError):
    status = 403


class NotFound(CosmosError):
    status = 404

    def __init__(
        self,
        message: str = "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found",
        *,
        substatus: int = 0,
        charge: float = 2.0,  # as much as reading a database or a container
        plain: bool = False,
    ) -> None:
        super().__init__(message, substatus=substatus, charge=charge, plain=plain)


class NotAllowed(CosmosError):
    status = 405


class Conflict(CosmosError):
    status = 409

    def __init__(
        self,
        message: str = "Resource with specified id, name, or unique index already exists.",
        charge: float = 0,
        plain: bool = False,
    ) -> None:
        super().__init__(message, charge=charge, plain=plain)


class RangeGone(CosmosError):
    """A range that was split, or that never was."""

    status = 410

    def __init__(self, range_id: str) -> None:
        super().__init__(
            f"The partition key range '{range_id[:100]}' does not exist.", substatus=1002
        )


class PreconditionFailed(CosmosError):
    status = 412

    def __init__(
        self,
        message: str = (
            "Operation cannot be performed because one of the specified precondition is not met."
        ),
        charge: float | None = None,
        substatus: int = 0,
    ) -> None:
        super().__init__(message, charge=charge, substatus=substatus, plain=True)


class TooLarge(CosmosError):
    status = 413

    def __init__(self, message: str = "Request size is too large") -> None:
        super().__init__(message)


class TooManyRequests(CosmosError):
    """More than the throughput allows. Nothing was changed."""

    status = 429

    def __init__(self, retry_after_ms: int) -> None:
        super().__init__(
            "Request rate is large. More Request Units may be needed, so no changes were made. "
            "Please retry this request later. Learn more: http://aka.ms/cosmosdb-error-429",
            substatus=3200,
            charge=0.38,
            headers={"x-ms-retry-after-ms": str(retry_after_ms)},
        )


class NotModified(CosmosError):
    status = 304

    def __init__(self, etag: str, charge: float | None = None) -> None:
        super().__init__("", headers={"etag": etag}, charge=charge)


class StorageError(Exception):
    """The database file cannot be opened or written; the message says why."""


class ForeignFile(StorageError):
    """The file is a SQLite database of another application."""
