"""39 to 71: documents and projections."""

from .forms import (
    DATABASE,
    INVALID,
    NO_VALUE,
    UNPLANNED,
    Answer,
    exchange,
    item,
    plan,
    query,
    rows,
    says,
)

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
