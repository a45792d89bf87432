"""72 to 94: parameters."""

from dataclasses import replace

from .forms import MERGED, Answer, given, query, rows, says

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
