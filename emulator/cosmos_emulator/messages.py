"""A request on its way into the gateway, and the response on its way out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

if TYPE_CHECKING:
    from cosmos_emulator.query.deadline import Deadline

JSON = "application/json"
PLAIN_QUERY = "application/sql"

# Types of resources that live under a database or a container, as they stand in paths.
NAMED = {
    "dbs", "colls", "docs", "users", "permissions", "sprocs", "triggers", "udfs", "conflicts",
    "offers", "pkranges", "clientencryptionkeys",
}  # fmt: skip


# The headers that make a POST something other than a create.
_POSTS = {
    "x-ms-cosmos-is-query-plan-request": "query plan",
    "x-ms-documentdb-isquery": "query",
    "x-ms-cosmos-is-batch-request": "batch",
    "x-ms-documentdb-is-upsert": "upsert",
}


@dataclass(frozen=True, slots=True)
class Sight:
    """The LSN that a read saw, and the newest one that it could have seen."""

    lsn: int
    newest: int


@dataclass(slots=True)
class Request:
    """One HTTP request; header names are lower case. `sight` is set by reads from replicas.
    `deadline` is that of a query that runs aside; `awaited` says whether the client stays."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""
    parsed: Any = None
    sight: Sight | None = None
    deadline: Deadline | None = None
    awaited: Callable[[], bool] = lambda: True
    segments: list[str] = field(init=False)
    resource: str = field(init=False)
    operation: str = field(init=False)

    def __post_init__(self) -> None:
        # The JavaScript SDK leaves a question mark in an id as it is, and so does the service.
        path = self.path if self.path.startswith("/dbs/") else self.path.partition("?")[0]
        path = path.strip("/")
        self.segments = [unquote(part) for part in path.split("/")] if path else []
        self.resource = self._resource()
        self.operation = self._operation()

    def _resource(self) -> str:
        """The type of resource that is addressed: "docs", "colls", "dbs", …; "" is the account."""
        parts = self.segments
        if not parts:
            return ""
        last = parts[-1] if len(parts) % 2 else parts[-2]
        return "colls" if last == "operations" else last

    def header(self, name: str) -> str | None:
        return self.headers.get(name)

    def flag(self, name: str) -> bool:
        return self.headers.get(name, "").lower() == "true"

    @property
    def database(self) -> str | None:
        return self.segments[1] if len(self.segments) > 1 and self.segments[0] == "dbs" else None

    @property
    def container(self) -> str | None:
        parts = self.segments
        return parts[3] if len(parts) > 3 and parts[2] == "colls" else None

    @property
    def id(self) -> str | None:
        """The id of the addressed resource, None when a feed is addressed."""
        parts = self.segments
        return parts[-1] if parts and len(parts) % 2 == 0 and parts[-2] in NAMED else None

    @property
    def partition_key(self) -> str | None:
        return self.headers.get("x-ms-documentdb-partitionkey")

    def _operation(self) -> str:
        """What the request asks for, in one word: "create", "query", "change feed", …"""
        if self.method == "POST":
            return self._post_operation()
        if self.method == "GET":
            if "a-im" in self.headers and self.resource == "docs":
                return "change feed"
            return "read" if self.id is not None or not self.segments else "list"
        return {"PUT": "replace", "PATCH": "patch", "DELETE": "delete"}.get(self.method, "unknown")

    def _post_operation(self) -> str:
        kind = self.headers.get("content-type", "")
        for header, operation in _POSTS.items():
            if header in self.headers and self.flag(header):
                # The body of a document is one, whatever else the request says.
                return "create" if operation == "query" and kind.startswith(JSON) else operation
        if kind.startswith(("application/query+json", PLAIN_QUERY)):
            return "query"
        if len(self.segments) > 1 and self.segments[-2] == "operations":
            return self.segments[-1]
        if self.resource == "sprocs" and self.id is not None:
            return "execute"
        return "create"


@dataclass(frozen=True, slots=True)
class Flaw:
    """What goes wrong when an answer is sent.

    unreachable  no connection is made
    silent       the connection is made, but no answer is sent
    endless      the answer begins and never ends: a blank every `drip` seconds, or no more at all
    cut          half of the body, then the connection closes
    """

    kind: Literal["unreachable", "silent", "endless", "cut"]
    drip: float | None = None


@dataclass(slots=True)
class Response:
    """One HTTP response; header names are lower case."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    flaw: Flaw | None = None

    @property
    def charge(self) -> float:
        return float(self.headers.get("x-ms-request-charge", "0"))

    @property
    def substatus(self) -> int:
        return int(self.headers.get("x-ms-substatus", "0"))


Document = dict[str, Any]
