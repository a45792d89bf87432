"""What Azure refuses, and so do we. emulator/REFUSALS.md lists the rules by these names."""

import email.utils
import http.client
import json
import time
from urllib.parse import urlsplit

import pytest

from cosmos_emulator import Emulator
from cosmos_emulator.__main__ import main
from cosmos_emulator.serving import serving

from .raw import create, make_container, send, signed

DOCS = "/dbs/db/colls/c/docs"
KEY = '["x"]'
ACROSS = {
    "x_ms_documentdb_isquery": "true",
    "x_ms_documentdb_query_enablecrosspartition": "true",
}
EMBEDDING = {
    "path": "/v", "dataType": "float32", "distanceFunction": "cosine", "dimensions": 8,
}  # fmt: skip
INDEX = {"path": "/v", "type": "flat"}


@pytest.fixture
def served():
    with Emulator() as emulator:
        make_container(emulator)
        create(emulator, {"id": "a", "pk": "x", "n": 1, "arr": [1, 2]})
        yield emulator


def exchange(emulator, method, path, body=None, **headers):
    data = b"" if body is None else json.dumps(body).encode()
    response = emulator.exchange(signed(emulator.key, method, path, data, **headers))
    return response, json.loads(response.body) if response.body else None


def container(**definition):
    return {"id": "n", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}, **definition}


def vectors(embedding=EMBEDDING, index=INDEX):
    found = {"vectorEmbeddingPolicy": {"vectorEmbeddings": [embedding]}}
    if index is not None:
        found["indexingPolicy"] = {"vectorIndexes": [index]}
    return found


def texts(entry, index=None, **policy):
    found = {"fullTextPolicy": {"fullTextPaths": [entry], **policy}}
    if index is not None:
        found["indexingPolicy"] = {"fullTextIndexes": [index]}
    return found


def computed(*queries):
    entries = [{"name": f"p{at}", "query": text} for at, text in enumerate(queries)]
    return {"computedProperties": entries}


def unique(keys, paths=1):
    rules = [{"paths": [f"/a{k}_{p}" for p in range(paths)]} for k in range(keys)]
    return {"uniqueKeyPolicy": {"uniqueKeys": rules}}


def composite(*indexes):
    return {"indexingPolicy": {"compositeIndexes": list(indexes)}}


DEFINITIONS = {
    "vector: distance function": vectors({**EMBEDDING, "distanceFunction": "manhattan"}),
    "vector: data type": vectors({**EMBEDDING, "dataType": "float64"}),
    "vector: no dimensions": vectors({**EMBEDDING, "dimensions": 0}),
    "vector: too many dimensions": vectors({**EMBEDDING, "dimensions": 4097}),
    "vector: dimensions are a number": vectors({**EMBEDDING, "dimensions": "8"}),
    "vector: path": vectors({**EMBEDDING, "path": "v"}),
    "vector: path with a wildcard": vectors({**EMBEDDING, "path": "/v/*"}),
    "vector: index of another path": vectors(index={**INDEX, "path": "/w"}),
    "vector: index without a policy": {"indexingPolicy": {"vectorIndexes": [INDEX]}},
    "vector: index type": vectors(index={**INDEX, "type": "hnsw"}),
    "vector: flat over 505": vectors({**EMBEDDING, "dimensions": 506}),
    "vector: quantizationByteSize of a flat index": vectors(
        index={**INDEX, "quantizationByteSize": 8}
    ),
    "vector: quantizationByteSize 0": vectors(
        index={"path": "/v", "type": "quantizedFlat", "quantizationByteSize": 0}
    ),
    "vector: quantizationByteSize 257": vectors(
        index={"path": "/v", "type": "diskANN", "quantizationByteSize": 257}
    ),
    "vector: indexingSearchListSize 24": vectors(
        index={"path": "/v", "type": "diskANN", "indexingSearchListSize": 24}
    ),
    "vector: indexingSearchListSize 501": vectors(
        index={"path": "/v", "type": "diskANN", "indexingSearchListSize": 501}
    ),
    "vector: shard key is a list": vectors(
        index={**INDEX, "type": "diskANN", "vectorIndexShardKey": "/country"}
    ),
    "vector: shard key without a slash": vectors(
        index={**INDEX, "type": "diskANN", "vectorIndexShardKey": ["country"]}
    ),
    "vector: two shard keys": vectors(
        index={**INDEX, "type": "diskANN", "vectorIndexShardKey": ["/a", "/b"]}
    ),
    "full text: language": texts({"path": "/t", "language": "xx-xx"}),
    "full text: default language": texts({"path": "/t"}, defaultLanguage="klingon"),
    "full text: path": texts({"path": "t"}),
    "full text: path with a wildcard": texts({"path": "/t/*"}),
    "full text: no path": texts({"language": "en-US"}),
    "full text: index of another path": texts({"path": "/t"}, {"path": "/u"}),
    "full text: index without a policy": {"indexingPolicy": {"fullTextIndexes": [{"path": "/t"}]}},
    "computed: 21": computed(*["SELECT VALUE c.a FROM c"] * 21),
    "computed: no VALUE": computed("SELECT c.a FROM c"),
    "computed: WHERE": computed("SELECT VALUE c.a FROM c WHERE c.a = 1"),
    "computed: JOIN": computed("SELECT VALUE t FROM c JOIN t IN c.a"),
    "computed: ORDER BY": computed("SELECT VALUE c.a FROM c ORDER BY c.a"),
    "computed: GROUP BY": computed("SELECT VALUE c.a FROM c GROUP BY c.a"),
    "computed: DISTINCT": computed("SELECT DISTINCT VALUE c.a FROM c"),
    "computed: TOP": computed("SELECT TOP 1 VALUE c.a FROM c"),
    "computed: aggregate": computed("SELECT VALUE COUNT(1) FROM c"),
    "computed: no query": computed("hello"),
    "computed: named id": {
        "computedProperties": [{"name": "id", "query": "SELECT VALUE c.a FROM c"}]
    },
    "computed: named _ts": {
        "computedProperties": [{"name": "_ts", "query": "SELECT VALUE c.a FROM c"}]
    },
    "computed: a name twice": {
        "computedProperties": [{"name": "p", "query": "SELECT VALUE c.a FROM c"}] * 2
    },
    "key path with a space": {"partitionKey": {"paths": ["/a b"], "kind": "Hash"}},
    "key path with a wildcard": {"partitionKey": {"paths": ["/a/*"], "kind": "Hash"}},
    "11 unique keys": unique(11),
    "17 paths of a unique key": unique(1, paths=17),
    "name of 256 characters": {"id": "n" * 256},
    "name with a slash": {"id": "a/b"},
    "name with a question mark": {"id": "a?b"},
    "name with a number sign": {"id": "a#b"},
    "name that ends with a space": {"id": "a "},
    "no name": {"id": ""},
    "key paths of version 1": {
        "partitionKey": {"paths": ["/a", "/b"], "kind": "MultiHash", "version": 1}
    },
    "key path twice": {"partitionKey": {"paths": ["/a", "/a"], "kind": "MultiHash", "version": 2}},
    "composite index of one path": composite([{"path": "/a"}]),
    "composite index of 9 paths": composite([{"path": f"/a{n}"} for n in range(9)]),
    "composite index with a wildcard": composite([{"path": "/a/*"}, {"path": "/b"}]),
    "composite index with a path twice": composite([{"path": "/a"}, {"path": "/a"}]),
    "composite index: order": composite([{"path": "/a", "order": "up"}, {"path": "/b"}]),
    "101 composite indexes": composite(*[[{"path": f"/a{n}"}, {"path": "/b"}] for n in range(101)]),
    "spatial index: type": {
        "indexingPolicy": {"spatialIndexes": [{"path": "/l/*", "types": ["Circle"]}]}
    },
    "spatial index: geometry without bounds": {
        "indexingPolicy": {"spatialIndexes": [{"path": "/l/*", "types": ["Point"]}]},
        "geospatialConfig": {"type": "Geometry"},
    },
    "spatial index: geography with bounds": {
        "indexingPolicy": {
            "spatialIndexes": [{"path": "/l/*", "types": ["Point"], "boundingBox": {"xmin": 0}}]
        }
    },
    "geospatial type": {"geospatialConfig": {"type": "Flat"}},
    "conflict resolution mode": {"conflictResolutionPolicy": {"mode": "FirstWriterWins"}},
    "index path without an end": {"indexingPolicy": {"includedPaths": [{"path": "/a"}]}},
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_definition_is_refused(served, name):
    body = container(**DEFINITIONS[name])
    assert exchange(served, "POST", "/dbs/db/colls", body)[0].status == 400
    assert [
        c["id"] for c in exchange(served, "GET", "/dbs/db/colls")[1]["DocumentCollections"]
    ] == ["c"]


def test_vectors_need_the_capability():
    with Emulator(capabilities=()) as emulator:
        make_container(emulator)
        answer, body = exchange(emulator, "POST", "/dbs/db/colls", container(**vectors()))
        assert answer.status == 400
        assert "capability has not been enabled on your account" in body["message"]


def test_full_text_needs_the_capability():
    with Emulator(capabilities=()) as emulator:
        make_container(emulator)
        body = container(**texts({"path": "/t"}))
        assert exchange(emulator, "POST", "/dbs/db/colls", body)[0].status == 400


def test_vectors_need_throughput_of_their_own(served):
    exchange(served, "POST", "/dbs", {"id": "shared"}, x_ms_offer_throughput="400")
    path, body = "/dbs/shared/colls", container(**vectors())
    answer, refusal = exchange(served, "POST", path, body)
    assert answer.status == 400
    assert "not supported for shared throughput offer" in refusal["message"]
    assert exchange(served, "POST", path, body, x_ms_offer_throughput="400")[0].status == 201


def test_vectors_that_exist_cannot_be_changed(served):
    body = container(**vectors())
    assert exchange(served, "POST", "/dbs/db/colls", body)[0].status == 201
    other = container(**vectors({**EMBEDDING, "dimensions": 9}))
    another = container(**vectors(index={**INDEX, "type": "diskANN"}))
    for changed in (other, another, container()):
        assert exchange(served, "PUT", "/dbs/db/colls/n", changed)[0].status == 400
    assert exchange(served, "PUT", "/dbs/db/colls/n", body)[0].status == 200


def test_unique_keys_cannot_be_left_out_of_a_replacement(served):
    exchange(served, "POST", "/dbs/db/colls", container(**unique(1)))
    answer, body = exchange(served, "PUT", "/dbs/db/colls/n", container())
    assert answer.status == 403
    assert "The unique index cannot be modified." in body["message"]


MERGED = {
    "SELECT VALUE COUNT(1) FROM c": ("aggregates", ["Count"]),
    "SELECT TOP 3 c.id FROM c": ("top", 3),
    "SELECT c.id FROM c ORDER BY c.n": ("orderByExpressions", ["c.n"]),
    "SELECT c.id FROM c OFFSET 1 LIMIT 2": ("limit", 2),
    "SELECT DISTINCT VALUE c.n FROM c": ("distinctType", "Unordered"),
}


@pytest.mark.parametrize("text", MERGED)
def test_the_gateway_does_not_merge_not_even_one_partition(served, text):
    answer, body = exchange(served, "POST", DOCS, {"query": text}, **ACROSS)
    assert (answer.status, answer.substatus) == (400, 1004)
    name, value = MERGED[text]
    assert json.loads(body["additionalErrorInfo"])["queryInfo"][name] == value
    for part in (
        {"x_ms_documentdb_partitionkeyrangeid": "0"},
        {"x_ms_documentdb_partitionkey": KEY},
    ):
        assert exchange(served, "POST", DOCS, {"query": text}, **ACROSS, **part)[0].status == 200


@pytest.mark.parametrize(
    "text", ["SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n", "SELECT COUNT(1), MAX(c.n) FROM c"]
)
@pytest.mark.parametrize("where", ["", "WHERE c.pk = 'x'"])
def test_aggregates_across_partitions_need_value(served, text, where):
    text = text.replace("FROM c", f"FROM c {where}")
    answer, body = exchange(served, "POST", DOCS, {"query": text}, **ACROSS)
    assert (answer.status, answer.substatus) == (400, 0)
    assert "only supports 'VALUE <AggregateFunc>' for aggregates" in body["message"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT c.id, t FROM c JOIN t IN c.arr",
        "SELECT c.id FROM c WHERE c.n IN (1, 2)",
        "SELECT c.id FROM c WHERE c.id LIKE 'a%'",
        "SELECT c.id, (SELECT VALUE COUNT(1) FROM t IN c.arr) AS k FROM c",
        "SELECT c.id FROM c WHERE ARRAY_CONTAINS(c.arr, 1)",
    ],
)
def test_what_needs_no_merge_is_answered_across_partitions(served, text):
    assert exchange(served, "POST", DOCS, {"query": text}, **ACROSS)[0].status == 200


def test_a_lenient_emulator_merges_one_partition():
    with Emulator(lenient=True) as emulator:
        make_container(emulator)
        answer, body = exchange(
            emulator, "POST", DOCS, {"query": "SELECT VALUE COUNT(1) FROM c"}, **ACROSS
        )
        assert (answer.status, body["Documents"]) == (200, [0])


def test_a_query_over_all_partitions_must_say_so(served):
    headers = {"x_ms_documentdb_isquery": "true"}
    answer, body = exchange(served, "POST", DOCS, {"query": "SELECT c.id FROM c"}, **headers)
    assert answer.status == 400
    assert "Cross partition query is required but disabled" in body["message"]


def test_a_sort_path_must_be_indexed(served):
    policy = {"includedPaths": [{"path": "/n/?"}], "excludedPaths": [{"path": "/*"}]}
    exchange(served, "POST", "/dbs/db/colls", container(indexingPolicy=policy))
    headers = {"x_ms_documentdb_isquery": "true", "x_ms_documentdb_partitionkey": KEY}
    for path, status in (("n", 200), ("id", 200), ("_ts", 200), ("m", 400), ("n.k", 400)):
        text = f"SELECT * FROM c ORDER BY c.{path}"
        found, body = exchange(served, "POST", "/dbs/db/colls/n/docs", {"query": text}, **headers)
        assert found.status == status, path
    assert "order-by item is excluded" in body["message"]


def test_a_query_has_at_most_512_kilobytes(served):
    text = f"SELECT * FROM c WHERE c.a = '{'x' * 524288}'"
    answer, _ = exchange(served, "POST", DOCS, {"query": text}, **ACROSS)
    assert answer.status == 400


@pytest.mark.parametrize(("joins", "status"), [(10, 200), (11, 400)])
def test_a_query_has_at_most_ten_joins(served, joins, status):
    text = "SELECT VALUE 1 FROM c " + " ".join(f"JOIN t{n} IN c.none" for n in range(joins))
    assert exchange(served, "POST", DOCS, {"query": text}, **ACROSS)[0].status == status


def test_throughput_is_standard_or_autoscale(served):
    both = {
        "x_ms_offer_throughput": "400",
        "x_ms_cosmos_offer_autopilot_settings": '{"maxThroughput": 1000}',
    }
    assert exchange(served, "POST", "/dbs/db/colls", container(), **both)[0].status == 400


@pytest.mark.parametrize("seconds", ["9", "18001", "-60", "soon", ""])
def test_a_resource_token_is_valid_for_ten_seconds_to_five_hours(served, seconds):
    exchange(served, "POST", "/dbs/db/users", {"id": "u"})
    path, body = "/dbs/db/users/u/permissions", {"id": "p", "permissionMode": "Read"}
    body["resource"] = "dbs/db/colls/c"
    wrong = {"x_ms_documentdb_expiry_seconds": seconds}
    assert exchange(served, "POST", path, body, **wrong)[0].status == 400
    assert exchange(served, "POST", path, body)[0].status == 201
    for request in (("PUT", f"{path}/p", body), ("GET", f"{path}/p"), ("GET", path)):
        assert exchange(served, *request, **wrong)[0].status == 400


@pytest.mark.parametrize("size", ["abc", "-2", "1.5"])
def test_a_page_size_is_a_number_or_minus_one(served, size):
    answer, body = exchange(
        served, "POST", DOCS, {"query": "SELECT * FROM c"}, **ACROSS, x_ms_max_item_count=size
    )
    assert answer.status == 400
    assert f"The input PageSize {size} is invalid" in body["message"]


@pytest.mark.parametrize(
    ("size", "rows"), [(None, 1000), ("0", 1000), ("-1", 1005), ("5000", 1005)]
)
def test_pages_hold_a_thousand_rows_unless_told_otherwise(served, size, rows):
    for start in range(0, 1004, 100):
        batch = [
            {"operationType": "Create", "resourceBody": {"id": f"i{at}", "pk": "x"}}
            for at in range(start, min(start + 100, 1004))
        ]
        headers = {"x_ms_cosmos_is_batch_request": "True", "x_ms_cosmos_batch_atomic": "True"}
        exchange(served, "POST", DOCS, batch, x_ms_documentdb_partitionkey=KEY, **headers)
    headers = {} if size is None else {"x_ms_max_item_count": size}
    answer, body = exchange(
        served, "POST", DOCS, {"query": "SELECT c.id FROM c"}, **ACROSS, **headers
    )
    assert (answer.status, body["_count"]) == (200, rows)


@pytest.mark.parametrize("minutes", [-16, 16, -600])
def test_a_signature_is_good_for_15_minutes_around_its_date(served, minutes, monkeypatch):
    moment = time.time() + minutes * 60
    monkeypatch.setattr(email.utils, "formatdate", lambda usegmt: _date(moment))
    answer, body = exchange(served, "GET", f"{DOCS}/a", x_ms_documentdb_partitionkey=KEY)
    assert answer.status == 403
    assert "not valid at the current time" in body["message"]


def _date(moment):
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(moment))


def test_a_signature_is_bound_to_its_date(served):
    request = signed(served.key, "GET", f"{DOCS}/a", x_ms_documentdb_partitionkey=KEY)
    request.headers["x-ms-date"] = _date(time.time() - 60)
    assert served.exchange(request).status == 401


def test_time_that_a_test_lets_pass_makes_no_signature_stale(served):
    served.clock.advance(7 * 24 * 3600)
    status, _ = send(served, "GET", f"{DOCS}/a", x_ms_documentdb_partitionkey=KEY)
    assert status == 200


@pytest.mark.parametrize("level", ["Strong", "BoundedStaleness", "Perfect"])
def test_a_session_account_gives_no_stronger_consistency(served, level):
    answer, body = exchange(
        served, "GET", f"{DOCS}/a", x_ms_documentdb_partitionkey=KEY, x_ms_consistency_level=level
    )
    assert answer.status == 400
    assert "not stronger than the service consistency level" in body["message"]


@pytest.mark.parametrize(
    ("token", "expected"),
    [("garbage", (400, 0)), ("0:x#y", (400, 0)), ("0:-1#999", (404, 1002)), ("0:-1#1", (200, 0))],
)
def test_a_session_token_must_be_one_of_ours(served, token, expected):
    answer, _ = exchange(
        served, "GET", f"{DOCS}/a", x_ms_documentdb_partitionkey=KEY, x_ms_session_token=token
    )
    assert (answer.status, answer.substatus) == expected


@pytest.mark.parametrize("item_id", ["a?b", "a#b", "a "])
def test_an_item_id_may_hold_what_some_clients_refuse(served, item_id):
    assert create(served, {"id": item_id, "pk": "x"})[0] == 201


@pytest.mark.parametrize("item_id", ["a/b", "a\\b", "", 7, None, "a" * 1024])
def test_a_bad_item_id_is_refused(served, item_id):
    assert create(served, {"id": item_id, "pk": "x"})[0] == 400


@pytest.mark.parametrize("body", [b"{", b'{"id":"e","pk":"x","e":1e400}', b'{"id":"e","x":NaN}'])
def test_a_body_that_is_not_json_is_refused(served, body):
    assert send(served, "POST", DOCS, body, x_ms_documentdb_partitionkey=KEY)[0] == 400


@pytest.mark.parametrize("when", ["pre", "post"])
def test_a_trigger_is_refused_and_nothing_is_written(served, when):
    headers = {f"x_ms_documentdb_{when}_trigger_include": "t", "x_ms_documentdb_partitionkey": KEY}
    assert send(served, "POST", DOCS, {"id": "t", "pk": "x"}, **headers)[0] == 501
    assert send(served, "GET", f"{DOCS}/t", x_ms_documentdb_partitionkey=KEY)[0] == 404


HOSTS = {
    "localhost": 200, "a.localhost": 200, "evil.example": 403, "127.0.0.1.evil.example": 403,
}  # fmt: skip


@pytest.mark.parametrize(("host", "status"), HOSTS.items())
def test_the_server_answers_only_to_its_own_names(served, host, status):
    with serving(served, patience=10) as endpoint:
        address = urlsplit(endpoint)
        connection = http.client.HTTPConnection(address.hostname, address.port)
        request = signed(served.key, "GET", "/")
        connection.request("GET", "/", headers={**request.headers, "host": host})
        assert connection.getresponse().status == status
        connection.close()


def test_beyond_loopback_the_server_needs_a_key_of_its_own(monkeypatch):
    monkeypatch.setattr("sys.argv", ["cosmos-emulator", "--host", "0.0.0.0"])
    with pytest.raises(SystemExit, match="needs a key of its own"):
        main()
