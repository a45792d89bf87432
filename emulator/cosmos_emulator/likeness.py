"""What other servers do differently from the service, so that clients can be tested on it.

`Emulator(like="vnext")` behaves as Microsoft's public container: as recorded on the tag
`vnext-EN20260907` where a recording is known, otherwise as its issues report. Each deviation has
a name (deviations.py), and can be switched off and on: `like="vnext,-no-304,+count-as-object"`.

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
from dataclasses import replace
from typing import Any

from cosmos_emulator.documents import dumps
from cosmos_emulator.errors import CosmosError
from cosmos_emulator.messages import JSON, PLAIN_QUERY, Request, Response
from cosmos_emulator.wording import REASONS, bare, refusal

Handle = Callable[[Request, str | None], Response]


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
        if has("no-charges"):
            headers["x-ms-request-charge"] = "1"
        if request.operation == "change feed" and has("feed-without-etag"):
            headers.pop("etag", None)
        page = request.operation == "query" and answer.status == 200
        if page and has("last-page-token") and "x-ms-continuation" not in headers:
            headers["x-ms-continuation"] = BEGIN_AGAIN
        if has("bare-etags") and "etag" in headers and request.resource in ("docs", "pkranges"):
            headers["etag"] = headers["etag"].strip('"')
        headers["server"] = "PGSQL"
        headers["x-ms-gatewayversion"] = "2.0.0-unknown"
        self._own_headers(request, answer)
        if answer.body:
            body = json.loads(answer.body)
            text = str(body.get("message", "")) if isinstance(body, dict) else ""
            front = bare(request, answer, text) if answer.status >= 400 else None
            if front is not None and has("bare-answers"):
                return Response(answer.status, {"content-type": JSON}, dumps(front).encode())
            answer.body = dumps(self._body(request, answer, body)).encode()
        return answer

    def _own_headers(self, request: Request, answer: Response) -> None:
        has, headers = self._names.__contains__, answer.headers
        asked = request.operation in ("query", "query plan", "change feed")
        refused = answer.status >= 400
        if has("no-path"):
            headers.pop("x-ms-alt-content-path", None)
            headers.pop("x-ms-content-path", None)
        if has("own-tokens"):
            token = headers.get("x-ms-session-token", "0:0#0")
            other = refused and answer.substatus == 1001
            headers["x-ms-session-token"] = (
                "0:0#0" if asked or other else token.replace(":-1#", ":0#")
            )
        if has("fewer-headers"):
            if request.resource in ("dbs", "colls"):
                headers.pop("etag", None)
            if asked:
                headers.pop("lsn", None)
            if request.operation == "batch":
                headers.pop("x-ms-item-count", None)
                headers.pop("x-ms-substatus", None)
            if (request.operation == "query" and refused) or request.operation == "query plan":
                headers["x-ms-item-count"] = "0"
            if request.resource in ("", "dbs", "colls", "docs", "pkranges"):
                headers.setdefault("x-ms-documentdb-partitionkeyrangeid", "0")

    def _status(self, request: Request, answer: Response) -> int:
        has = self._names.__contains__
        if has("scripts-400") and request.operation == "execute" and answer.status == 501:
            return 400
        if answer.status == 405 and has("path-400"):
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

    def _body(self, request: Request, answer: Response, body: Any) -> Any:
        has, status = self._names.__contains__, answer.status
        if status >= 400 and has("own-words") and isinstance(body, dict):
            body = refusal(request, answer, str(body.get("message", ""))) or body
            if "Errors" in body:
                answer.headers["x-ms-substatus"] = "1003"
        if request.resource == "" and status == 200 and has("eventual"):
            body["userConsistencyPolicy"] = {"defaultConsistencyLevel": "Eventual"}
        if request.operation == "query" and status == 200 and has("jsonb-order"):
            body = _as_jsonb(body)
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
        if has("bare-etags") and request.resource in ("docs", "colls", "pkranges"):
            body = _bare(body)
        if request.resource == "colls" and isinstance(body, dict):
            fields = {"uniqueKeyPolicy": "no-unique-keys", "indexingPolicy": "no-policy"}
            hidden = [field for field, name in fields.items() if has(name)]
            listed = body.get("DocumentCollections", [])
            for each in [body, *listed]:
                for name in hidden:
                    each.pop(name, None)
                if has("no-composites"):
                    each.get("indexingPolicy", {}).pop("compositeIndexes", None)
        counts = re.search(rb"\bVALUE\s+COUNT\b", request.body, re.IGNORECASE)
        if has("count-as-object") and request.operation == "query" and counts:
            body["Documents"] = [{"$1": each} for each in body.get("Documents", [])]
        return body


ALL_FEATURES = (
    "Aggregate, CompositeAggregate, CountIf, DCount, Distinct, GroupBy, HybridSearch, "
    "ListAndSetAggregate, MultipleAggregates, MultipleOrderBy, NonStreamingOrderBy, "
    "NonValueAggregate, OffsetAndLimit, OrderBy, Top, WeightedRankFusion"
)
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
    if "errors" not in details:
        return error
    if "User-defined functions" in details["errors"][0]["message"]:
        return {"errors": [{"message": "Query execution error", "severity": "Error"}]}
    return details


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


_SYSTEM = ("id", "_rid", "_etag", "_attachments", "_ts")


def _as_jsonb(page: Any) -> Any:
    """A page with the properties of its documents as PostgreSQL's jsonb sorts them; `id` and the
    server's own follow."""
    documents = [_in_order(each) for each in page.get("Documents", [])]
    for document in documents:
        if isinstance(document, dict):
            document.pop("_self", None)
            for name in _SYSTEM:
                if name in document:
                    document[name] = document.pop(name)
    return {**page, "Documents": documents} if "Documents" in page else page


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: (len(name.encode()), name.encode()))
        return {name: _in_order(value[name]) for name in names}
    return [_in_order(each) for each in value] if isinstance(value, list) else value
