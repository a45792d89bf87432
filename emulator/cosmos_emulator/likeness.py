"""What other servers do differently from the service, so that clients can be tested on it.

`Emulator(like="vnext")` behaves as Microsoft's public container: as recorded on the tag
`vnext-EN20260907` where a recording is known, otherwise as its issues report. Each deviation has
a name, and can be switched off and on: `like="vnext,-no-304,+count-as-object"`.

A deviation changes a request before the gateway sees it, or an answer after; the gateway itself
knows three: keys that are not checked, index policies that are not followed, documents that stay
visible after their time.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cosmos_emulator.documents import dumps
from cosmos_emulator.errors import CosmosError
from cosmos_emulator.messages import PLAIN_QUERY, Request, Response

Handle = Callable[[Request, str | None], Response]

EXPIRED_FOR = 5  # seconds that an expired document stays visible


@dataclass(frozen=True)
class Deviation:
    """Something that a server does differently, and where that was seen."""

    name: str
    what: str
    # The number of a recording (`cosmos-EN20260907-<number>-…` in the repository xo/dbimp), or of
    # an issue of Azure/azure-cosmos-db-emulator-docker.
    source: str
    usual: bool = True  # part of `like="vnext"`; the others only on request


VNEXT = [
    Deviation("any-key", "the key is not checked", "recording 185"),
    Deviation("any-version", "hierarchical keys are taken at any API version", "recording 5"),
    Deviation(
        "no-charges", "each request is charged 1, an operation of a batch 0", "recording 193"
    ),
    Deviation(
        "no-304", "a read with a matching If-None-Match returns the document", "recording 205, #349"
    ),
    Deviation(
        "any-consistency", "a stronger consistency than the account's is accepted", "recording 209"
    ),
    Deviation("whole-order", "the page size of a sorted query is ignored", "recording 106, #285"),
    Deviation(
        "page-of-100", "a page has 100 items if its size is missing, 0 or no number", "recording 96"
    ),
    Deviation("no-plan", "queries over all partitions are answered whole", "recording 95"),
    Deviation("no-cross-header", "a query needs no permission to cross partitions", "recording 41"),
    Deviation(
        "any-features", "a plan does not depend on what the client can merge", "recording 116"
    ),
    Deviation("empty-plan", "plans do not tell of ORDER BY, GROUP BY and TOP", "recording 115"),
    Deviation(
        "key-from-document",
        "a create without a partition key takes the document's",
        "recording 178",
    ),
    Deviation(
        "jsonb-order",
        "properties are in the order of their length, then their name",
        "recording 108",
    ),
    Deviation("bare-etags", "etags have no quotation marks", "recording 67"),
    Deviation("plain-errors", "errors of queries are members of the answer", "recording 169"),
    Deviation(
        "operation-errors",
        "a failed operation of a batch has its error as a document",
        "recording 199",
    ),
    Deviation("token-500", "a continuation that nobody gave is answered with 500", "recording 181"),
    Deviation("json-403", "a body that is not JSON is answered with 403", "recording 65"),
    Deviation("parameters-500", "bad names of parameters are answered with 500", "recording 85"),
    Deviation("scripts-400", "a call of a stored procedure is answered with 400", "recording 160"),
    Deviation("options-200", "OPTIONS is answered", "recording 203"),
    Deviation("quiet-list", "a list of containers does not show unique keys", "recording 36"),
    Deviation(
        "keeps-unique-keys",
        "a container that is replaced without its unique keys keeps them",
        "recording 153",
    ),
    Deviation(
        "feed-of-expired",
        f"the change feed shows expired documents for {EXPIRED_FOR} s",
        "recording 152",
    ),
    Deviation("query-token", "a query's session token is 0:0#0", "recording 108, #331"),
    Deviation("batch-if-match", "If-Match inside a batch is ignored", "#302"),
    Deviation("no-index-policy", "the index policy is ignored", "#233"),
    # Other tags, or rare: only on request.
    Deviation(
        "late-expiry", f"expired documents stay visible for {EXPIRED_FOR} s", "documented", False
    ),
    Deviation("partial-batch", "a batch that fails keeps what came before", "#303", False),
    Deviation(
        "last-page-token", "the last page has a token that begins again", "#351, #347", False
    ),
    Deviation("no-unique-keys", "unique keys are not shown in a definition", "#202", False),
    Deviation("no-policy", "the index policy is not shown in a definition", "#233", False),
    Deviation("no-lists", "databases, containers and offers cannot be listed", "documented", False),
    Deviation("feed-500", "the change feed is answered with 500", "#334", False),
    Deviation("feed-without-etag", "the change feed has no etag", "#334", False),
    Deviation("count-as-object", "COUNT is an object and not a number", "#287", False),
    Deviation("no-nul", "a text with U+0000 is refused", "#192", False),
    Deviation("race-500", "a database created twice at once is answered with 500", "#318", False),
    Deviation("ascii-queries", "a query with other characters than ASCII gets 500", "#119", False),
]
KINDS = {"vnext": VNEXT}


def parse(like: str) -> frozenset[str]:
    """The names of the deviations in `vnext`, `vnext,-no-304` or `vnext,+feed-500`."""
    kind, *changes = like.split(",")
    if kind not in KINDS:
        raise ValueError(f"like={kind!r} is unknown; there is {', '.join(KINDS)}")
    known = {each.name for each in KINDS[kind]}
    names = {each.name for each in KINDS[kind] if each.usual}
    for change in changes:
        sign, name = change[:1], change[1:]
        if sign not in ("+", "-") or name not in known:
            raise ValueError(
                f"{change!r} is no deviation of {kind}; write + or - and one of"
                f" {', '.join(sorted(known))}"
            )
        names = names | {name} if sign == "+" else names - {name}
    return frozenset(names)


class Likeness:
    """Stands between the transports and the gateway."""

    def __init__(self, names: frozenset[str], handle: Handle, key_of: Callable[[Request], str]):
        self._names = names
        self._handle = handle
        self._key_of = key_of  # the partition key in the body of a request, as its header
        self._races = _Races()

    def handle(self, request: Request, endpoint: str | None = None) -> Response:
        if request.method == "OPTIONS" and "options-200" in self._names:
            return Response(200)
        try:
            self._refuse(request)
            self._change(request)
        except CosmosError as error:
            return error.response(request.headers.get("x-ms-activity-id", ""))
        answer = self._handle(request, endpoint)
        if "race-500" in self._names and self._races.lost(request):
            answer = CosmosError("PostgresError: duplicate key value.").response("")
        if "whole-order" in self._names and _sorted(request):
            answer = self._whole(request, answer, endpoint)
        return self._changed(request, answer)

    # --- before

    def _refuse(self, request: Request) -> None:
        has = self._names.__contains__
        if has("no-lists") and request.operation == "list" and request.resource != "docs":
            raise CosmosError("The feed is not implemented.", status=501)
        if has("feed-500") and request.operation == "change feed":
            raise CosmosError("PostgresError: the change feed failed.")
        if has("ascii-queries") and request.operation == "query" and not request.body.isascii():
            raise CosmosError("PostgresError: invalid byte sequence.")
        if has("json-403") and not _is_text(request):
            raise CosmosError("Failed to parse Json request", status=403)
        if has("no-nul") and b"\\u0000" in request.body:
            raise CosmosError("PostgresError: unsupported Unicode escape sequence.")

    def _change(self, request: Request) -> None:
        has, headers = self._names.__contains__, request.headers
        point = request.resource == "docs" and request.id is not None
        if has("no-304") and point and request.method == "GET":
            headers.pop("if-none-match", None)
        if has("bare-etags"):
            for name in ("if-match", "if-none-match"):
                if (etag := headers.get(name, "*")) != "*" and not etag.startswith('"'):
                    headers[name] = f'"{etag}"'
        if has("any-version"):
            headers.pop("x-ms-version", None)
        if has("any-features") and request.operation == "query plan":
            headers["x-ms-cosmos-supported-query-features"] = ALL_FEATURES
        if has("any-consistency"):
            headers.pop("x-ms-consistency-level", None)
        queries = request.resource == "docs" and request.operation in ("query", "list")
        if queries and request.operation == "query" and has("no-cross-header"):
            headers["x-ms-documentdb-query-enablecrosspartition"] = "true"
        if queries and has("page-of-100") and not _counts(headers.get("x-ms-max-item-count")):
            headers["x-ms-max-item-count"] = "100"
        if queries and has("whole-order") and _sorted(request):
            headers["x-ms-max-item-count"] = "-1"
        creates = request.resource == "docs" and request.operation in ("create", "upsert")
        key = "x-ms-documentdb-partitionkey"
        if creates and key not in headers and has("key-from-document"):
            headers[key] = self._key_of(request)
        if request.operation == "batch" and has("partial-batch"):
            headers["x-ms-cosmos-batch-atomic"] = "False"
        if headers.get("x-ms-continuation") == BEGIN_AGAIN:
            del headers["x-ms-continuation"]
        if request.operation == "batch" and has("batch-if-match"):
            for operation in _operations(request):
                operation.pop("ifMatch", None)

    # --- after

    def _whole(self, request: Request, answer: Response, endpoint: str | None) -> Response:
        """All pages of a query as one."""
        documents: list[Any] = []
        while answer.status == 200:
            body = json.loads(answer.body)
            documents += body["Documents"]
            if not (token := answer.headers.pop("x-ms-continuation", None)):
                answer.headers["x-ms-item-count"] = str(len(documents))
                body |= {"Documents": documents, "_count": len(documents)}
                return Response(200, answer.headers, dumps(body).encode())
            rest = replace(request, headers={**request.headers, "x-ms-continuation": token})
            answer = self._handle(rest, endpoint)
        return answer

    def _changed(self, request: Request, answer: Response) -> Response:
        has, headers = self._names.__contains__, answer.headers
        answer.status = self._status(request, answer)
        if has("no-charges") and "x-ms-request-charge" in headers:
            headers["x-ms-request-charge"] = "1"
        if has("query-token") and request.operation == "query":
            headers["x-ms-session-token"] = "0:0#0"
        if request.operation == "change feed" and has("feed-without-etag"):
            headers.pop("etag", None)
        page = request.operation == "query" and answer.status == 200
        if page and has("last-page-token") and "x-ms-continuation" not in headers:
            headers["x-ms-continuation"] = BEGIN_AGAIN
        if has("bare-etags") and "etag" in headers:
            headers["etag"] = headers["etag"].strip('"')
        headers["server"] = "PGSQL"
        headers["x-ms-gatewayversion"] = "2.0.0-unknown"
        if answer.body:
            body = self._body(request, answer.status, json.loads(answer.body))
            answer.body = (_jsonb(body) if has("jsonb-order") else dumps(body)).encode()
        return answer

    def _status(self, request: Request, answer: Response) -> int:
        has = self._names.__contains__
        if has("scripts-400") and request.operation == "execute" and answer.status == 501:
            return 400
        if answer.status != 400:
            return answer.status
        if has("json-403") and request.body and not _is_json(request.body):
            return 403
        if has("token-500") and "x-ms-continuation" in request.headers:
            return 500
        if has("parameters-500") and request.operation == "query" and _parameters(request):
            return 500
        return 400

    def _body(self, request: Request, status: int, body: Any) -> Any:
        has = self._names.__contains__
        if request.operation == "batch" and isinstance(body, list):
            for each in body:
                if has("no-charges"):
                    each["requestCharge"] = 0
                if has("operation-errors") and each["statusCode"] in REASONS:
                    code, message = REASONS[each["statusCode"]]
                    each["resourceBody"] = {"code": code, "message": message}
        if request.operation == "query" and status >= 400 and has("plain-errors"):
            body = _plain(body)
        if request.operation == "query plan" and status == 200 and has("empty-plan"):
            _empty(body["queryInfo"])
        if has("bare-etags"):
            body = _bare(body)
        if request.resource == "colls" and isinstance(body, dict):
            fields = {"uniqueKeyPolicy": "no-unique-keys", "indexingPolicy": "no-policy"}
            hidden = [field for field, name in fields.items() if has(name)]
            listed = body.get("DocumentCollections", [])
            for each in [body, *listed]:
                for name in hidden:
                    each.pop(name, None)
            if has("quiet-list"):
                for each in listed:
                    each.pop("uniqueKeyPolicy", None)
        counts = re.search(rb"\bVALUE\s+COUNT\b", request.body, re.IGNORECASE)
        if has("count-as-object") and request.operation == "query" and counts:
            body["Documents"] = [{"$1": each} for each in body.get("Documents", [])]
        return body


ALL_FEATURES = (
    "Aggregate, CompositeAggregate, CountIf, DCount, Distinct, GroupBy, HybridSearch, "
    "ListAndSetAggregate, MultipleAggregates, MultipleOrderBy, NonStreamingOrderBy, "
    "NonValueAggregate, OffsetAndLimit, OrderBy, Top, WeightedRankFusion"
)
REASONS = {
    400: ("BadRequest", "PartitionKey extracted from document doesn't match the header."),
    404: ("NotFound", "Resource Not Found."),
    409: ("Conflict", "The document already exists in the collection."),
    412: ("PreconditionFailed", "The specified condition is not met."),
}
BEGIN_AGAIN = "-RID:~begin#RT:1#TRC:100"


class _Races:
    """Creates of databases and containers, which are answered one after the other here: the second
    of each name counts as one that raced with the first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._created: Counter[tuple[str, bytes]] = Counter()

    def lost(self, request: Request) -> bool:
        if request.operation != "create" or request.resource not in ("dbs", "colls"):
            return False
        with self._lock:
            self._created[request.path, request.body] += 1
            return self._created[request.path, request.body] == 2


def _sorted(request: Request) -> bool:
    if request.operation != "query" or request.resource != "docs":
        return False
    return re.search(rb"\bORDER\s+BY\b", request.body, re.IGNORECASE) is not None


def _counts(text: str | None) -> bool:
    try:
        return int(text or "0") != 0
    except ValueError:
        return False


def _is_json(body: bytes) -> bool:
    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        text = json.dumps(json.loads(body, parse_constant=refuse), ensure_ascii=False)
        text.encode()  # half of a surrogate pair is refused as well
    except (ValueError, RecursionError):
        return False
    return "Infinity" not in text


def _parameters(request: Request) -> bool:
    """Whether the names of a query's parameters are what it was refused for."""
    try:
        names = [each["name"] for each in json.loads(request.body).get("parameters", [])]
    except (ValueError, KeyError, TypeError, AttributeError):
        return True
    return len(set(names)) < len(names) or not all(str(name).startswith("@") for name in names)


def _is_text(request: Request) -> bool:
    """Whether the server can read the body: no statement as it is, no half of a surrogate pair."""
    if request.headers.get("content-type", "").startswith(PLAIN_QUERY):
        return False
    return b"\\u" not in request.body or _is_json(request.body)


def _plain(error: Any) -> Any:
    """The errors of a query, which the service puts into its message as JSON."""
    found = re.match(r"Message: (\{.*\})\r\n", str(error.get("message")), re.DOTALL)
    details = json.loads(found[1]) if found else {}
    for each in details.get("errors", []):
        each.pop("location", None)
    return details if "errors" in details else error


def _empty(info: dict[str, Any]) -> None:
    if info["orderBy"] or info["groupByExpressions"] or info["top"] is not None:
        for name, value in info.items():
            if isinstance(value, list | dict):
                info[name] = type(value)()
        info.update(top=None, offset=None, limit=None, rewrittenQuery="")


def _bare(value: Any) -> Any:
    if isinstance(value, list):
        return [_bare(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {
        name: _bare(each) if isinstance(each, dict | list) else each for name, each in value.items()
    }
    for name in ("_etag", "eTag"):
        if isinstance(found.get(name), str):
            found[name] = found[name].strip('"')
    return found


def _operations(request: Request) -> list[dict[str, Any]]:
    """The operations of a batch, as the gateway will read them."""
    try:
        request.parsed = json.loads(request.body)
    except ValueError:
        return []
    found = request.parsed if isinstance(request.parsed, list) else []
    return [each for each in found if isinstance(each, dict)]


def _jsonb(value: Any) -> str:
    """JSON with the properties of objects as PostgreSQL's jsonb sorts them."""
    return dumps(_in_order(value))


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: (len(name.encode()), name.encode()))
        return {name: _in_order(value[name]) for name in names}
    return [_in_order(each) for each in value] if isinstance(value, list) else value
