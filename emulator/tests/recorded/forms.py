"""The forms in which requests and answers are written down."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

DATABASE = "/dbs/dbimp_it"
SYSTEM = {"_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"}
FEATURES = (
    "Aggregate, CompositeAggregate, Distinct, GroupBy, MultipleOrderBy, MultipleAggregates, "
    "OffsetAndLimit, OrderBy, Top, NonValueAggregate, DCount, NonStreamingOrderBy"
)


@dataclass(frozen=True)
class Answer:
    """What is known of an answer; what is None or empty is not compared."""

    status: int
    substatus: int | None = None
    says: str = ""  # a part of the message
    charge: float | None = None
    documents: list[Any] | None = None
    count: int | None = None  # of the documents
    more: bool | None = None  # a continuation
    operations: list[int] | None = None  # the status codes of a batch
    plan: dict[str, Any] = field(default_factory=dict)  # some of its queryInfo
    body: dict[str, Any] = field(default_factory=dict)  # some of its members
    headers: dict[str, str | None] = field(default_factory=dict)  # None: it is not there


@dataclass(frozen=True)
class Seen:
    """What one recording says beyond that. `kind` is the name of a set of headers."""

    kind: str
    charge: float | None = None
    says: str | Error | None = None  # the whole message
    plan: dict[str, Any] = field(default_factory=dict)  # the whole queryInfo
    order: tuple[str, ...] = ()  # of the properties of the body, or of its first document
    charges: tuple[float, ...] = ()  # of the operations of a batch
    documents: tuple[Any, ...] = ()
    framed: bool | None = None  # whether the message stands in a list of errors


@dataclass(frozen=True)
class Error:
    """An error of a query, and where it is, if that is compared."""

    code: str | int
    text: str
    start: int | None = None
    end: int | None = None


def syntax(code: str | int, text: str, start: int | None = None, end: int | None = None) -> Error:
    return Error(code, text, start, end)


def ordered(names: str) -> tuple[str, ...]:
    return tuple(names.split())


@dataclass(frozen=True)
class Exchange:
    number: int
    method: str
    path: str
    body: bytes
    headers: dict[str, str]
    account: Answer
    container: Answer
    seconds: float = 1.0  # that pass before the next
    # Instead of a fixed header, what an earlier answer had: (header, its header, numbers), of
    # the first of them that has it.
    takes: tuple[str, str, tuple[int, ...]] | None = None

    @property
    def name(self) -> str:
        shown = self.body.decode()[:70] if self.body else ""
        return f"{self.number} {self.method} {self.path.removeprefix(DATABASE)} {shown}"


EXCHANGES: list[Exchange] = []
_numbers = iter(range(1, 1000))
ALIKE: Any = object()  # The container answers as the account does, but for charge and sub-status.


def says(status: int, text: str, substatus: int | None = None) -> Answer:
    return Answer(status, substatus, says=text)


def rows(*documents: Any, **known: Any) -> Answer:
    return Answer(200, documents=list(documents), **known)


MERGED = Answer(400, 1004, says="can not be directly served by the gateway")
NO_VALUE = says(400, "only supports 'VALUE <AggregateFunc>' for aggregates", 0)
KEYLESS = Answer(400, 1001)
INVALID = says(400, "request payload is invalid")
PLANNED = Answer(200)


def exchange(
    method: str,
    path: str,
    body: Any,
    account: Answer | int,
    container: Answer | int = ALIKE,
    *,
    seconds: float = 1.0,
    takes: tuple[str, str, tuple[int, ...]] | None = None,
    **headers: str,
) -> None:
    known = account if isinstance(account, Answer) else Answer(account)
    if container is ALIKE:
        container = replace(known, substatus=None, says="", charge=None, headers={})
    elif isinstance(container, int):
        container = Answer(container)
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    EXCHANGES.append(
        Exchange(next(_numbers), method, path, raw, named, known, container, seconds, takes)
    )


def item(
    method: str,
    where: str,
    key: str | None,
    body: Any,
    account: Answer | int,
    container: Answer | int = ALIKE,
    **more: Any,
) -> None:
    """A request for an item: `kv` or `kv/the-id`."""
    container_id, _, name = where.partition("/")
    path = f"{DATABASE}/colls/{container_id}/docs{'/' + name if name else ''}"
    if key is not None:
        more["x_ms_documentdb_partitionkey"] = json.dumps([key])
    exchange(method, path, body, account, container, content_type="application/json", **more)


def query(
    text: str,
    account: Answer | int,
    container: Answer | int = ALIKE,
    *,
    parameters: list[dict[str, Any]] | None = None,
    on: str = "kv",
    across: bool = True,
    size: str | None = None,
    **more: Any,
) -> None:
    spec: dict[str, Any] = {"query": text}
    if parameters is not None:
        spec["parameters"] = parameters
    headers = {"content_type": "application/query+json", "x_ms_documentdb_isquery": "True"}
    if across:
        headers["x_ms_documentdb_query_enablecrosspartition"] = "True"
    if size is not None:
        headers["x_ms_max_item_count"] = size
    path = f"{DATABASE}/colls/{on}/docs"
    exchange("POST", path, spec, account, container, **{**headers, **more})


def given(value: Any, text: str = "SELECT @p AS v, IS_DEFINED(@p) AS d, IS_NULL(@p) AS n") -> None:
    """A parameter comes back as it went."""
    answer = rows({"v": value, "d": True, "n": value is None})
    query(text, answer, parameters=[{"name": "@p", "value": value}])


def plan(text: str, account: Answer, container: Answer = ALIKE, *, on: str, **more: str) -> None:
    features = {"x_ms_cosmos_supported_query_features": FEATURES, **more}
    features = {name: value for name, value in features.items() if value}
    query(
        text,
        account,
        container,
        on=on,
        across=False,
        x_ms_cosmos_is_query_plan_request="True",
        **features,
    )


def batch(
    operations: list[Any],
    account: Answer | int,
    container: Answer | int = ALIKE,
    *,
    on: str = "kv",
    key: str = "b",
    **more: Any,
) -> None:
    headers = {"x_ms_cosmos_is_batch_request": "True", "x_ms_cosmos_batch_atomic": "True"}
    item("POST", on, key, operations, account, container, **{**headers, **more})


def create(**document: Any) -> dict[str, Any]:
    return {"operationType": "Create", "resourceBody": document}


def definition(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash"}, **more}


def collection(
    body: dict[str, Any], account: Answer | int, container: Answer | int = ALIKE
) -> None:
    exchange("POST", f"{DATABASE}/colls", body, account, container)


def read(path: str, account: Answer | int, container: Answer | int = ALIKE, **more: Any) -> None:
    exchange("GET", path, None, account, container, **more)


# The plan of a query that clients need not merge.
UNPLANNED = {
    "distinctType": "None", "top": None, "offset": None, "limit": None, "orderBy": [],
    "orderByExpressions": [], "groupByExpressions": [], "groupByAliases": [], "aggregates": [],
    "groupByAliasToAggregateType": {}, "rewrittenQuery": "", "hasSelectValue": False,
    "dCountInfo": None, "hasNonStreamingOrderBy": False,
}  # fmt: skip
