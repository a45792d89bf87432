"""202 to 248: the rest."""

from dataclasses import replace

from .documents import TYPES
from .forms import (
    DATABASE,
    MERGED,
    UNPLANNED,
    Answer,
    batch,
    create,
    exchange,
    item,
    plan,
    query,
    rows,
    says,
)
from .queries import COUNT, ONE

query("SELECT * FROM c", Answer(200, charge=2.38, count=9), 200, accept_encoding="gzip")
exchange("OPTIONS", "/", None, 403, 200)
item("GET", "kv/ty1", "t", None, 200)
item(
    "GET", "kv/ty1", "t", None, 304, Answer(200, documents=[TYPES]),
    takes=("if-none-match", "etag", (204,)),
)  # fmt: skip
small = {"id": "ty1", "pk": "t", "i": 43}
item(
    "PUT", "kv/ty1", "t", small, Answer(200, charge=18.67, documents=[small]),
    takes=("if-match", "etag", (204,)),
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
