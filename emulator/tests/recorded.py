"""What an account of Azure and Microsoft's container answered, exchange by exchange.

Both were asked the same on 10 October 2026: an account (NoSQL, 400 RU/s shared by the database,
gateway 2.14.0) and the container `vnext-EN20260907`. The numbers are those of the recordings in
the public repository xo/dbimp, `testdata/cosmos/cosmos-<number>-…` and
`cosmos-EN20260907-<number>-…`. Only what follows from the protocol is compared: not the ids and
times that a server makes up.
"""

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
class Exchange:
    number: int
    method: str
    path: str
    body: bytes
    headers: dict[str, str]
    account: Answer
    container: Answer
    seconds: float = 1.0  # that pass before the next
    # Instead of a fixed header, what an earlier answer had: (header, number, its header).
    takes: tuple[str, int, str] | None = None

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
    takes: tuple[str, int, str] | None = None,
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


# --- 1 to 38: databases and containers

UNIQUE = {"uniqueKeys": [{"paths": ["/email"]}]}
EVERYTHING = {
    "indexingMode": "consistent", "automatic": True, "includedPaths": [{"path": "/*"}],
}  # fmt: skip
SORTED = [{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]

exchange("DELETE", DATABASE, None, 404)
exchange(
    "POST", "/dbs", {"id": "dbimp_it"}, Answer(201, body={"id": "dbimp_it"}),
    x_ms_offer_throughput="400",
)  # fmt: skip
collection(definition("kv"), 201)
collection(definition("bulk"), 201)
several = {"paths": ["/a", "/b"], "kind": "MultiHash", "version": 2}
collection(
    {"id": "hier", "partitionKey": several},
    says(400, "The 'kind' value 'MultiHash' specified in the partition key definition is invalid"),
    201,
)
collection(
    definition(
        "uk",
        defaultTtl=-1,
        uniqueKeyPolicy=UNIQUE,
        indexingPolicy={**EVERYTHING, "compositeIndexes": [SORTED]},
    ),
    201,
)
collection(
    definition(
        "nopolicy",
        defaultValues={"/x": 1},
        foreignKeyPolicy={"foreignKeys": [{"paths": ["/ref"], "references": "kv"}]},
    ),
    201,
)
for part in range(25):
    pk, first = f"p{part // 5}", part % 5 * 100
    batch(
        [
            create(id=f"r{pk}-{n}", pk=pk, n=n, grp=n % 7, txt=f"row {n}")
            for n in range(first, first + 100)
        ],
        Answer(200, charge=704.76, operations=[201] * 100),
        on="bulk",
        key=pk,
        seconds=2,
    )
read("/", Answer(200, body={"userConsistencyPolicy": {"defaultConsistencyLevel": "Session"}}), 200)
read("/dbs", Answer(200, body={"_count": 1}))
read(DATABASE, Answer(200, body={"id": "dbimp_it"}))
read(f"{DATABASE}/colls", 200)
read(f"{DATABASE}/colls/kv", Answer(200, body={"id": "kv"}))
read(f"{DATABASE}/colls/kv/pkranges", Answer(200, body={"_count": 1}), 200)

# --- 39 to 71: documents and projections

D1 = {"id": "d1", "pk": "a", "n": 1, "s": "x1"}
TYPES = {
    "id": "ty1", "pk": "t", "i": 42, "f": 1.5, "t": True, "fa": False, "nu": None, "s": "héllo",
    "arr": [1, "a", None, [2]], "obj": {"a": {"b": 1}}, "emp": "", "ea": [], "eo": {},
    "ts": "2026-10-10T12:00:00Z", "dt": "2026-10-10", "tm": "12:34:56.789",
    "uuid": "123e4567-e89b-12d3-a456-426614174000", "b64": "AAEC/w==",
    "dec": "12345678901234567890.123456789",
}  # fmt: skip
ORDERED = {
    "id": "ord1", "pk": "a", "zeta": 1, "alpha": 2, "mid": 3, "b": 4, "abcdef": 5, "nu": None,
    "obj": {"a": {"b": 1}},
}  # fmt: skip
NUMBERS = (
    '{"id":"nums","pk":"t","i64":9007199254740993,"u64":18446744073709551615,'
    '"i64min":-9223372036854775808,"ovr":18446744073709551616,'
    '"huge":123456789012345678901234567890,"dec":0.1000000000000000055511151231257827,'
    '"one":1.0,"negzero":-0.0,"big":1.7976931348623157e308,"tiny":5e-324,"under":1e-400,'
    '"frac":12345678901234567890.123}'
)
KEPT = {
    "id": "nums", "pk": "t", "i64": 9007199254740993, "u64": 18446744073709551615,
    "i64min": -9223372036854775808, "ovr": 1.8446744073709552e19,
    "huge": 1.2345678901234568e29, "dec": 0.1, "one": 1, "negzero": 0,
    "big": 1.7976931348623157e308, "tiny": 5e-324, "under": 0, "frac": 1.2345678901234567e19,
}  # fmt: skip
COMPUTED = {**KEPT, "u64": 1.8446744073709552e19}

item("POST", "kv", "a", D1, Answer(201, charge=6.67, documents=[D1]))
query("SELECT * FROM c", rows(D1, charge=2.26))
exchange(
    "POST", f"{DATABASE}/colls/kv/docs", {"query": "SELECT c.id FROM c"},
    says(400, "Cross partition query is required but disabled"), rows({"id": "d1"}),
    content_type="application/query+json",
)  # fmt: skip
item("POST", "kv", None, {"query": "SELECT c.id FROM c"}, 400, x_ms_documentdb_isquery="True")
item("POST", "kv", "t", TYPES, Answer(201, charge=14.29, documents=[TYPES]))
item("POST", "kv", "a", ORDERED, Answer(201, charge=9.14, documents=[ORDERED]))
item("GET", "kv/ord1", "a", None, Answer(200, charge=1, documents=[ORDERED]))
query("SELECT * FROM c WHERE c.id = 'ord1'", rows(ORDERED))
query(
    "SELECT c.zeta, c.alpha, c.mid, c.b, c.abcdef, c.nu FROM c WHERE c.id = 'ord1'",
    rows({"zeta": 1, "alpha": 2, "mid": 3, "b": 4, "abcdef": 5, "nu": None}),
)
query(
    "SELECT c.alpha, c.nu, c.nope, c.zeta FROM c WHERE c.id = 'ord1'",
    rows({"alpha": 2, "nu": None, "zeta": 1}),
)
query("SELECT VALUE c.alpha FROM c WHERE c.id = 'ord1'", rows(2))
query("SELECT VALUE [c.zeta, c.alpha] FROM c WHERE c.id = 'ord1'", rows([1, 2]))
query(
    'SELECT VALUE {"z": c.zeta, "a": c.alpha} FROM c WHERE c.id = \'ord1\'', rows({"z": 1, "a": 2})
)
query(
    "SELECT c.zeta + 1, c.alpha * 2, 'x' FROM c WHERE c.id = 'ord1'",
    rows({"$1": 2, "$2": 4, "$3": "x"}),
)
query("SELECT c.zeta AS a, c.alpha AS a FROM c WHERE c.id = 'ord1'", says(400, "SC2022"), 400)
query(
    "SELECT 1 AS x, 'a' AS y, null AS z, true AS t", rows({"x": 1, "y": "a", "z": None, "t": True})
)
query("SELECT c.id FROM c WHERE c.id = 'no such document'", rows())
query("SELECT VALUE c.nope FROM c WHERE c.id = 'ord1'", rows())
query("SELECT c.obj.a.b AS ab FROM c WHERE c.id = 'ord1'", rows({"ab": 1}))
query("SELECT COUNT(1), MAX(c.n) FROM c", NO_VALUE, 200)
UNPLANNED = {
    "distinctType": "None", "top": None, "offset": None, "limit": None, "orderBy": [],
    "orderByExpressions": [], "groupByExpressions": [], "groupByAliases": [], "aggregates": [],
    "groupByAliasToAggregateType": {}, "rewrittenQuery": "", "hasSelectValue": False,
    "dCountInfo": None, "hasNonStreamingOrderBy": False,
}  # fmt: skip
plan("SELECT c.id, c.n FROM c", Answer(200, plan=UNPLANNED), on="kv")
item("GET", "kv/ty1", "t", None, Answer(200, documents=[TYPES]))
item("POST", "kv", "t", NUMBERS.encode(), Answer(201, charge=10.48, documents=[KEPT]), 201)
item("GET", "kv/nums", "t", None, Answer(200, documents=[KEPT]), 200)
shown = [name for name in KEPT if name not in ("id", "pk", "big")]
query(
    f"SELECT {', '.join(f'c.{name}' for name in shown)} FROM c WHERE c.id = 'nums'",
    rows({name: COMPUTED[name] for name in shown}),
    200,
)
query(
    "SELECT 9007199254740993 + 1 AS a, 9007199254740993 AS b, 0.1 + 0.2 AS c, 1/3 AS d",
    rows({"a": 9007199254740994, "b": 9007199254740993, "c": 0.30000000000000004, "d": 1 / 3}),
    200,
)
item("POST", "kv", "t", b'{"id":"e1","pk":"t","e":1e400}', INVALID, 403)
item("POST", "kv", "t", b'{"id":"e4","pk":"t","x":NaN}', INVALID, 403)
NUL = {"id": "e2", "pk": "t", "s": "a\0b"}
item("POST", "kv", "t", NUL, Answer(201, documents=[NUL]))
replaced = {"id": "e5", "pk": "t", "s": "a\ufffdb"}
item(
    "POST", "kv", "t", b'{"id":"e5","pk":"t","s":"a\\ud800b"}', Answer(201, documents=[replaced]),
    403,
)  # fmt: skip
item("GET", "kv/e2", "t", None, Answer(200, documents=[NUL]))
query(
    "SELECT IS_STRING(c.s) AS s, IS_NUMBER(c.i) AS n, IS_BOOL(c.t) AS b, IS_NULL(c.nu) AS u, "
    "IS_ARRAY(c.arr) AS a, IS_OBJECT(c.obj) AS o, IS_DEFINED(c.nope) AS d FROM c "
    "WHERE c.id = 'ty1'",
    rows({**dict.fromkeys("snbuao", True), "d": False}),
)
dates = {name: TYPES[name] for name in ("ts", "dt", "tm", "uuid", "b64", "dec")}
query(
    "SELECT c.ts, c.dt, c.tm, c.uuid, c.b64, c.dec, c.ts < '2027' AS cmp FROM c WHERE c.id = 'ty1'",
    rows({**dates, "cmp": True}),
)

# --- 72 to 94: parameters

for value in ("s", 5, 1.5, True, None, [1, 2], {"a": 1}, 9007199254740993):
    given(value)
unsigned = [{"name": "@p", "value": 18446744073709551615}]
both = "SELECT @p AS v, IS_DEFINED(@p) AS d, IS_NULL(@p) AS n"
query(both, rows({"v": 1.8446744073709552e19, "d": True, "n": False}), 200, parameters=unsigned)
given(1e300)
given("2026-10-10T00:00:00Z")
query("SELECT @p AS v, IS_DEFINED(@p) AS d", rows({"d": False}), parameters=[{"name": "@p"}])
query("SELECT @p AS v", rows({}), parameters=[])
P, Q = {"name": "@p", "value": 1}, {"name": "@q", "value": 2}
query(
    "SELECT @p AS v",
    says(400, "Parameter names should be in the format of symbol '@'"),
    500,
    parameters=[{"name": "p", "value": 1}],
)
query("SELECT @p AS v, @q AS w", rows({"v": 1, "w": 2}), parameters=[Q, P])
query(
    "SELECT @p AS v", says(400, "Specified duplicate parameter name"), 500,
    parameters=[P, {**P, "value": 2}],
)  # fmt: skip
query("SELECT @p AS v", rows({"v": 1}), parameters=[P, {"name": "@extra", "value": 2}])
query(
    "SELECT c.id FROM c WHERE c.pk = @pk AND c.n > @n ORDER BY c.n DESC",
    rows({"id": "d1"}, charge=2.84),
    parameters=[{"name": "@pk", "value": "a"}, {"name": "@n", "value": 0}],
)
query(
    "SELECT c.id FROM c WHERE c.id = @id", rows({"id": "d1"}),
    parameters=[{"name": "@id", "value": "d1"}],
)  # fmt: skip
query(
    "SELECT c.id FROM c WHERE ARRAY_CONTAINS(@ids, c.id)",
    rows({"id": "d1"}, {"id": "ord1"}),
    parameters=[{"name": "@ids", "value": ["d1", "ord1"]}],
)
query(
    "SELECT TOP @n c.id FROM c", replace(MERGED, plan={"top": 2}), Answer(200, count=2),
    parameters=[{"name": "@n", "value": 2}],
)  # fmt: skip
query(
    "SELECT c.id FROM c ORDER BY c.id OFFSET @o LIMIT @l",
    replace(MERGED, plan={"offset": 1, "limit": 2}),
    Answer(200, count=2),
    parameters=[{"name": "@o", "value": 1}, {"name": "@l", "value": 2}],
)
query(
    "SELECT c[@a] AS v FROM c WHERE c.id = 'd1'", rows({"v": "x1"}),
    parameters=[{"name": "@a", "value": "s"}],
)  # fmt: skip

# --- 95 to 117: pages, and what the gateway does not merge

COUNT = "SELECT VALUE COUNT(1) FROM c"
query(COUNT, replace(MERGED, plan={"aggregates": ["Count"]}), rows(2500), on="bulk")
TWO = "SELECT c.id, c.n FROM c"
query(TWO, Answer(200, charge=17.16, count=1000, more=True), Answer(200, count=100), on="bulk")
token = "x-ms-continuation"
query(
    TWO, Answer(200, count=1000, more=True), Answer(200, count=100), on="bulk",
    takes=(token, 96, token),
)  # fmt: skip
query(
    TWO, Answer(200, count=500, more=False), Answer(200, count=100), on="bulk",
    takes=(token, 97, token),
)  # fmt: skip
ONE = "SELECT c.id FROM c"
query(ONE, Answer(200, count=1000, more=True), on="bulk", size="1000")
query(ONE, Answer(200, count=1000, more=True), on="bulk", size="1000", takes=(token, 99, token))
query(
    ONE, Answer(200, charge=8.74, count=500, more=False), 200, on="bulk", size="1000",
    takes=(token, 100, token),
)  # fmt: skip
query(ONE, Answer(200, charge=34.72, count=2500), 200, on="bulk", size="5000")
query(ONE, Answer(200, charge=34.72, count=2500), 200, on="bulk", size="-1")
query(ONE, Answer(200, count=1000, more=True), Answer(200, count=100), on="bulk", size="0")
query(
    ONE, says(400, "The input PageSize abc is invalid"), Answer(200, count=100), on="bulk",
    size="abc",
)  # fmt: skip
ordered = replace(
    MERGED, plan={"orderBy": ["Ascending"] * 2, "orderByExpressions": ["c.n", "c.id"]}
)
query(f"{TWO} ORDER BY c.n, c.id", ordered, Answer(200, count=2500), on="bulk", size="2")
TOP = "SELECT TOP 5 c.id FROM c"
query(TOP, replace(MERGED, plan={"top": 5}), Answer(200, count=2, more=True), on="bulk", size="2")
query(TOP, MERGED, Answer(200, count=2, more=True), on="bulk", size="2", takes=(token, 107, token))
query(COUNT, MERGED, rows(2500), on="bulk", size="1")
query(
    "SELECT c.grp, COUNT(1) AS n, AVG(c.n) AS a FROM c GROUP BY c.grp",
    NO_VALUE,
    Answer(200, count=7),
    on="bulk",
)
query(COUNT, rows(500, charge=2.99), on="bulk", across=False, x_ms_documentdb_partitionkey='["p1"]')
required = says(400, "Cross partition query is required but disabled")
query(COUNT, required, rows(2500), on="bulk", across=False)
query(
    f"{ONE} ORDER BY c.id OFFSET 2499 LIMIT 5",
    replace(MERGED, plan={"offset": 2499, "limit": 5}),
    Answer(200, count=1),
    on="bulk",
)
counted = {"aggregates": ["Count"], "hasSelectValue": True}
plan(
    COUNT,
    Answer(200, plan={**counted, "rewrittenQuery": 'SELECT VALUE [{"item": COUNT(1)}]\nFROM c'}),
    Answer(200, plan=counted),
    on="bulk",
)
grouped = {
    "groupByExpressions": ["c.grp"], "groupByAliases": ["grp", "n"],
    "groupByAliasToAggregateType": {"grp": None, "n": "Count"},
}  # fmt: skip
plan(
    "SELECT c.grp, COUNT(1) AS n FROM c GROUP BY c.grp ORDER BY c.grp",
    Answer(200, plan=grouped),
    Answer(200, plan=UNPLANNED),
    on="bulk",
)
plan(
    COUNT,
    says(400, "Query contained Aggregate, which the calling client does not support"),
    Answer(200, plan=counted),
    on="bulk",
    x_ms_cosmos_supported_query_features="",
)
read(f"{DATABASE}/colls/bulk/pkranges", Answer(200, body={"_count": 1}), 200)

# --- 118 to 131: queries over all partitions

query(
    "SELECT COUNT(1) AS n, SUM(c.n) AS s, AVG(c.n) AS a, MIN(c.n) AS mn, MAX(c.n) AS mx FROM c",
    NO_VALUE,
    200,
)
query("SELECT TOP 2 c.id FROM c ORDER BY c.id", replace(MERGED, plan={"top": 2}), 200)
query(f"{ONE} ORDER BY c.id OFFSET 1 LIMIT 2", replace(MERGED, plan={"offset": 1}), 200)
query("SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk", NO_VALUE, 200)
query(
    "SELECT t FROM c JOIN t IN c.arr WHERE c.id = 'ty1'",
    rows({"t": 1}, {"t": "a"}, {"t": None}, {"t": [2]}),
)
query("SELECT DISTINCT VALUE c.pk FROM c", replace(MERGED, plan={"distinctType": "Unordered"}), 200)
query("SELECT c.id FROM c WHERE c.pk IN ('a', 't') AND c.id LIKE 'd%'", rows({"id": "d1"}))
query(
    "SELECT c.id, (SELECT VALUE COUNT(1) FROM t IN c.arr) AS n FROM c WHERE c.id = 'ty1'",
    rows({"id": "ty1", "n": 4}),
)
query(f"{ONE} ORDER BY c.pk, c.id", MERGED, 200)
query("SELECT VALUE ARRAY_LENGTH(c.arr) FROM c WHERE c.id = 'ty1'", rows(4))
for statement in ("INSERT INTO c VALUES (1)", "UPDATE c SET c.n = 1", "DELETE FROM c"):
    query(statement, 400)
metrics = {"x-ms-documentdb-query-metrics": "totalExecutionTimeInMs="}
query(
    "SELECT 1",
    rows({"$1": 1}, headers=metrics),
    200,
    x_ms_documentdb_populatequerymetrics="True",
)

# --- 132 to 156: points, time to live, unique keys

changed = {**D1, "n": 100}
item(
    "POST", "kv", "a", changed, Answer(200, charge=10.67, documents=[changed]),
    x_ms_documentdb_is_upsert="True",
)  # fmt: skip
D2 = {"id": "d2", "pk": "a", "n": 2, "s": "x2"}
item(
    "POST", "kv", "a", D2, Answer(201, charge=6.67, documents=[D2]),
    x_ms_documentdb_is_upsert="True",
)  # fmt: skip
item("GET", "kv/d1", "a", None, Answer(200, charge=1, documents=[changed]))
item("GET", "kv/d1", None, None, KEYLESS, 400)
item("GET", "kv/nope", "a", None, says(404, "Entity with the specified id does not exist"))
item("GET", "kv/d1", "a", None, Answer(200, documents=[changed]), if_none_match='"x"')
changed = {**D1, "n": 5, "s": "y"}
item("PUT", "kv/d1", "a", changed, Answer(200, charge=11.05, documents=[changed]))
item(
    "PUT", "kv/d1", "a", {"id": "d1", "pk": "a", "n": 6},
    Answer(412, charge=1.24, says="one of the specified precondition is not met"),
    if_match='"bogus"',
)  # fmt: skip
patched = {**changed, "n": 10, "new": "v"}
item(
    "PATCH",
    "kv/d1",
    "a",
    {
        "operations": [
            {"op": "set", "path": "/n", "value": 7},
            {"op": "incr", "path": "/n", "value": 3},
            {"op": "add", "path": "/new", "value": "v"},
        ]
    },
    Answer(200, charge=11.42, documents=[patched]),
)
item("GET", "kv/d1", "a", None, Answer(200, documents=[patched]))
item(
    "POST", "kv", "a", {"id": "d1", "pk": "a"},
    says(409, "Entity with the specified id already exists in the system"),
)  # fmt: skip
item("DELETE", "kv/d2", "a", None, Answer(204, charge=6.67))
item("DELETE", "kv/d2", "a", None, 404)
item("GET", "kv/d2", "a", None, 404)
exchange(
    "POST", f"{DATABASE}/colls/hier/docs", {"id": "1", "a": "x", "b": "y", "v": 1}, 404, 201,
    x_ms_documentdb_partitionkey='["x", "y"]',
)  # fmt: skip
query("SELECT * FROM c WHERE c.a = 'x' AND c.b = 'y'", 404, Answer(200, count=1), on="hier")
email = {"id": "1", "pk": "p", "email": "a@b"}
item("POST", "uk", "p", email, Answer(201, charge=7.77, documents=[email]))
item(
    "POST", "uk", "p", {**email, "id": "2"},
    Answer(409, charge=1.94, says="Entity with the specified id already exists in the system"),
)  # fmt: skip
item("POST", "uk", "p", {"id": "3", "pk": "p", "ttl": 1}, 201, seconds=3)
item("GET", "uk/3", "p", None, 404)
read(
    f"{DATABASE}/colls/uk/docs",
    Answer(200, charge=1, documents=[email], more=None),
    Answer(200, count=2),
    a_im="Incremental feed",
    x_ms_documentdb_partitionkeyrangeid="0",
)
exchange(
    "PUT", f"{DATABASE}/colls/uk", definition("uk", indexingPolicy=EVERYTHING),
    says(403, "The unique index cannot be modified"), Answer(200, body={"uniqueKeyPolicy": UNIQUE}),
)  # fmt: skip
item("POST", "nopolicy", "p", {"id": "1", "pk": "p", "ref": "nothing"}, 201)
read(f"{DATABASE}/colls/nopolicy", 200)
read(f"{DATABASE}/views", says(400, "Request url is invalid"), Answer(400))

# --- 157 to 164: scripts and lists

udf = {"id": "plus1", "body": "function(x){return x+1;}"}
exchange("POST", f"{DATABASE}/colls/kv/udfs", udf, 201, Answer(0))
query("SELECT udf.plus1(1) AS v", rows({"v": 2}), 400)
script = {"id": "sp1", "body": "function(){getContext().getResponse().setBody(1);}"}
exchange("POST", f"{DATABASE}/colls/kv/sprocs", script, 201, Answer(0))
exchange(
    "POST", f"{DATABASE}/colls/kv/sprocs/sp1", [], 200, 400, x_ms_documentdb_partitionkey='["a"]'
)
trigger = {"id": "tr1", "body": "function(){}", "triggerOperation": "All", "triggerType": "Pre"}
exchange("POST", f"{DATABASE}/colls/kv/triggers", trigger, 201, Answer(0))
read(f"{DATABASE}/colls/uk/conflicts", 200, Answer(0))
read(f"{DATABASE}/users", Answer(200, body={"Users": [], "_count": 0}), 200)
read("/offers", 200, Answer(0))

# --- 165 to 186: errors

query("SELECT FROM c", says(400, "SC1001"), 400)
query("SELECT ABC(1) AS x FROM c", 400)
query("SELECT c.id FROM c;", says(400, "SC1010"), 400)
query("", says(400, "SC1002"), 400)
query("SELECT 1/0 AS x, 1 AS y", Answer(400, 4001, says="cannot be represented in JSON"), 400)
query("SELECT * FROM c", 404, on="nope")
read("/dbs/nope", 404)
exchange("POST", "/dbs", {"id": "dbimp_it"}, 409)
collection(definition("kv"), 409)
collection({"id": "nokey"}, says(400, "should have a partition key"))
collection(definition("bad name/"), 400)
item("POST", "kv", "a", {"pk": "a"}, 400)
item("POST", "kv", "zzz", {"id": "m1", "pk": "a"}, KEYLESS, KEYLESS)
item(
    "POST", "kv", None, {"id": "m2", "pk": "a"},
    says(400, "has fewer components than defined in the", 1001), 201,
)  # fmt: skip
item("POST", "kv", "a", b'{"id":', INVALID, 403)
large = {"id": "big", "pk": "a", "x": "y" * 3 * 1024 * 1024}
item("POST", "kv", "a", large, says(413, "Request size is too large"))
query(ONE, says(400, "Invalid Continuation Token"), 500, on="bulk", x_ms_continuation="garbage")
read(f"{DATABASE}/views", says(400, "Request url is invalid"), 400)
exchange("POST", "/nope", {"id": "x"}, says(400, "Request url is invalid"), 400)
query(COUNT, MERGED, rows(2500), on="bulk")
read("/dbs", says(401, "Required Header authorization is missing"), 200, authorization="")
read("/", 200)

# --- 187 to 201: statements and batches

query("SELECT 1 AS a; SELECT 2 AS b", says(400, "SC1010"), 400)
query("SELECT 1 AS a -- comment", rows({"a": 1}))
query("SELECT 1 AS a -- comment\n, 2 AS b", rows({"a": 1, "b": 2}))
query("SELECT 1 AS a /* comment */", 400)
query("select 1 as a", rows({"a": 1}))
query("SELECT\n\t1 AS a\n", rows({"a": 1}))
batch(
    [create(id="b1", pk="b", n=10), create(id="b2", pk="b", n=11)],
    Answer(200, charge=12.57, operations=[201, 201]),
)
batch(
    [create(id="b9", pk="b", n=10), create(id="b1", pk="b", n=11)],
    Answer(207, charge=7.86, operations=[424, 409]),
)
query(
    "SELECT c.id FROM c WHERE c.pk = 'b'",
    # The container has m2 of exchange 178 in another partition.
    rows({"id": "b1"}, {"id": "b2"}),
    across=False,
    x_ms_documentdb_partitionkey='["b"]',
)
batch(
    [
        {"operationType": "Read", "id": "b1"},
        {"operationType": "Upsert", "resourceBody": {"id": "b1", "pk": "b", "n": 99}},
        {"operationType": "Replace", "id": "b2", "resourceBody": {"id": "b2", "pk": "b", "n": 98}},
        {
            "operationType": "Patch",
            "id": "b2",
            "resourceBody": {"operations": [{"op": "set", "path": "/n", "value": 1}]},
        },
        {"operationType": "Delete", "id": "b2"},
    ],
    Answer(200, charge=39.03, operations=[200, 200, 200, 200, 204]),
)
batch([create(id="b8", pk="zzz")], Answer(207, 1001, charge=1.24, operations=[400]))
brief = [create(id="b3", pk="b", n=12)]
item("POST", "kv", "b", brief, says(400, "One of the specified inputs is invalid"), 400)
batch(
    [create(id="b9", pk="b"), create(id="b1", pk="b"), create(id="b10", pk="b")],
    Answer(207, charge=13.29, operations=[201, 409, 201]),
    x_ms_cosmos_batch_atomic="False",
    x_ms_cosmos_batch_continue_on_error="True",
)
batch(
    [create(id=f"x{n}", pk="px") for n in range(101)],
    says(400, "Batch request has more operations than what is supported"),
    on="bulk",
    key="px",
)
batch([create(id="b11", pk="b")], 405, Answer(0), on="kv/$batch")

# --- 202 to 248: the rest

query("SELECT * FROM c", Answer(200, charge=2.38, count=9), 200, accept_encoding="gzip")
exchange("OPTIONS", "/", None, 403, 200)
item("GET", "kv/ty1", "t", None, 200)
item(
    "GET", "kv/ty1", "t", None, 304, Answer(200, documents=[TYPES]),
    takes=("if-none-match", 204, "etag"),
)  # fmt: skip
small = {"id": "ty1", "pk": "t", "i": 43}
item(
    "PUT", "kv/ty1", "t", small, Answer(200, charge=18.67, documents=[small]),
    takes=("if-match", 204, "etag"),
)  # fmt: skip
query(COUNT, MERGED, rows(2500), on="bulk", x_ms_documentdb_query_iscontinuationexpected="False")
query(COUNT, rows(2500, charge=2.89), on="bulk", x_ms_documentdb_partitionkeyrangeid="0")
query(COUNT, 400, 200, x_ms_consistency_level="Strong", x_ms_session_token="0:0#1")
batch([create(id="b12", pk="b")], says(400, "Request url is invalid"), 400, on="kv/_apis/batch")
exchange(
    "POST", f"{DATABASE}/colls/kv/docs", COUNT.encode(), MERGED, 403,
    content_type="application/sql", x_ms_documentdb_isquery="True",
    x_ms_documentdb_query_enablecrosspartition="True",
)  # fmt: skip
query(
    "SELECT VALUE [c.alpha, c.nope, c.nu] FROM c WHERE c.id = 'ord1'", rows([2, None], charge=2.82)
)
query(
    "SELECT 1.0 AS a, 1e2 AS b, 12345678901234567890 AS c, -0.0 AS d, 0.1 + 0.2 AS e",
    rows({"a": 1, "b": 100, "c": 1.2345678901234567e19, "d": 0, "e": 0.30000000000000004}),
    200,
)
by_n = {"orderBy": ["Ascending"], "orderByExpressions": ["c.n"]}
plan(f"{ONE} ORDER BY c.n", Answer(200, plan=by_n), Answer(200, plan=UNPLANNED), on="bulk")
cut = {"distinctType": "Unordered", "top": 3}
plan("SELECT DISTINCT TOP 3 c.grp FROM c", Answer(200, plan=cut), 200, on="bulk")
distinct = replace(MERGED, plan={"distinctType": "Unordered"})
query("SELECT DISTINCT c.grp FROM c", distinct, 200, on="bulk", size="2")
# Thirty at once, of which the account served sixteen. The order is that of their answers.
WHOLE = "SELECT * FROM c"
for number in range(30):
    served = Answer(200, charge=38.14, count=2500)
    refused = Answer(429, 3200, charge=0.38, says="so no changes were made")
    query(
        WHOLE,
        served if number < 10 else refused if number > 15 else Answer(0),
        Answer(200, count=2500),
        on="bulk",
        size="5000",
        seconds=6 if number == 29 else 0,
    )
query(WHOLE, Answer(200, charge=38.14, count=2500), on="bulk", size="5000")
exchange("DELETE", DATABASE, None, 204)

assert len(EXCHANGES) == 248
