"""165 to 186: errors."""

from .forms import (
    DATABASE,
    INVALID,
    KEYLESS,
    MERGED,
    Answer,
    collection,
    definition,
    exchange,
    item,
    query,
    read,
    rows,
    says,
)
from .queries import COUNT, ONE

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
