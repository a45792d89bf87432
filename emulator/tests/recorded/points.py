"""132 to 164: points, time to live, unique keys, scripts, lists."""

from .definitions import EVERYTHING, UNIQUE
from .documents import D1
from .forms import DATABASE, KEYLESS, Answer, definition, exchange, item, query, read, rows, says

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
