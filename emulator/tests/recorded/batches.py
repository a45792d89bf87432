"""187 to 201: statements and batches."""

from .forms import Answer, batch, create, item, query, rows, says

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
