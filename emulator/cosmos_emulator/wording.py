"""How Microsoft's container words what it refuses, and which of its answers have no headers."""

from __future__ import annotations

from typing import Any

from cosmos_emulator.errors import CODES
from cosmos_emulator.messages import Request, Response

MISSING = "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found"
OTHER_KEY = "PartitionKey extracted from document doesn't match the one specified in the header."
TAKEN = "The document already exists in the collection."
CHANGED = "E-tag mismatch detected"
NO_ID = "Document does not contain an id field"

# Of the operations of a batch.
REASONS = {
    400: ("BadRequest", OTHER_KEY),
    404: ("NotFound", MISSING),
    409: ("Conflict", TAKEN),
    412: ("PreconditionFailed", CHANGED),
}


def bare(request: Request, answer: Response, text: str) -> Any:
    """The body of an answer that comes from the container's front, without headers; or None.
    `text` is what the service says."""
    status = answer.status
    if text.startswith(("Request url is invalid", "RequestHandler.")):
        return {
            "error": "Invalid path or method", "path": request.path, "method": request.method,
        }  # fmt: skip
    if status == 403:
        said = "Failed to parse Json request"
    elif status == 500:
        said = "Database query failed: PostgresError(SqlState(EXX000), None)"
    elif status == 413:
        said = (
            "Entity with the specified id is larger than the maximum entity size (2 MiB)."
            f" Entity size: {len(request.body)} bytes."
        )
    elif request.operation == "execute":
        said = "Server-side script execution is not supported in this emulator"
    elif "fewer components" in text:
        said = "Partition key is required for this operation"
    elif "more operations" in text:
        said = (
            "Request contains too many operations. The maximum number of operations allowed in a"
            f" single transaction is 100. Passed operations {len(request.parsed)}."
        )
    else:
        return None
    return {"code": CODES[status], "message": said}


def refusal(request: Request, answer: Response, text: str) -> Any:
    """The body of another refusal, or None if it is not known."""
    said = _said(request, answer, text)
    return said if said is None or isinstance(said, dict) else {
        "code": CODES[answer.status], "message": said,
    }  # fmt: skip


def _said(request: Request, answer: Response, text: str) -> Any:
    status, kind, database = answer.status, request.resource, request.database
    name = request.parsed.get("id") if isinstance(request.parsed, dict) else request.id
    if kind == "dbs" and status in (404, 409):
        return f"Database '{name}' {'not found' if status == 404 else 'already exists'}"
    if kind == "colls" and status == 409:
        return f"Collection '{name}' already exists in database '{database}'"
    if kind == "colls" and "have a partition key" in text:
        return "partitionKey is required in the request body"
    if "invalid character" in text:
        return "Id cannot contain special characters ? # / \\"
    if kind != "docs":
        return None
    if status == 404 and (request.id is None or answer.substatus == 1003):
        owner = f"Database: {database}, Collection: {request.container}"
        return {"Errors": [f"Owner resource does not exist. {owner}"]}
    if status == 400 and ("- 'id; ' -" in text or "specified inputs is invalid" in text):
        return NO_ID
    if status == 400 and answer.substatus == 1001:
        return OTHER_KEY
    return {404: MISSING, 409: TAKEN, 412: CHANGED}.get(status)
