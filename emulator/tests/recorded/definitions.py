"""1 to 38: databases and containers."""

from .forms import DATABASE, Answer, batch, collection, create, definition, exchange, read, says

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
