"""95 to 131: pages, and queries over all partitions."""

from dataclasses import replace

from .forms import DATABASE, MERGED, NO_VALUE, UNPLANNED, Answer, plan, query, read, rows, says

COUNT = "SELECT VALUE COUNT(1) FROM c"
query(COUNT, replace(MERGED, plan={"aggregates": ["Count"]}), rows(2500), on="bulk")
TWO = "SELECT c.id, c.n FROM c"
query(TWO, Answer(200, charge=17.16, count=1000, more=True), Answer(200, count=100), on="bulk")
token = "x-ms-continuation"
query(
    TWO, Answer(200, count=1000, more=True), Answer(200, count=100), on="bulk",
    takes=(token, token, (96,)),
)  # fmt: skip
query(
    TWO, Answer(200, count=500, more=False), Answer(200, count=100), on="bulk",
    takes=(token, token, (97,)),
)  # fmt: skip
ONE = "SELECT c.id FROM c"
query(ONE, Answer(200, count=1000, more=True), on="bulk", size="1000")
query(ONE, Answer(200, count=1000, more=True), on="bulk", size="1000", takes=(token, token, (99,)))
query(
    ONE, Answer(200, charge=8.74, count=500, more=False), 200, on="bulk", size="1000",
    takes=(token, token, (100,)),
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
query(
    TOP,
    MERGED,
    Answer(200, count=2, more=True),
    on="bulk",
    size="2",
    takes=(token, token, (107, 100)),
)
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
