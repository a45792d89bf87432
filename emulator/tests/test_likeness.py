"""`like="vnext"`: what Microsoft's container answers, request by request.

All that was recorded on the tag vnext-EN20260907 is asked in test_recorded.py.
"""

import json
from pathlib import Path

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from cosmos_emulator import Emulator
from cosmos_emulator.deviations import VNEXT, parse
from cosmos_emulator.messages import Request

DOCS = "/dbs/db/colls/c/docs"
KEY = "x-ms-documentdb-partitionkey"


class Wire:
    """Sends requests without a signature."""

    def __init__(self, like="vnext"):
        self.emulator = Emulator(like=like)
        self.send("POST", "/dbs", {"id": "db"})
        unique = {"uniqueKeys": [{"paths": ["/u"]}]}
        definition = {"id": "c", "partitionKey": {"paths": ["/pk"]}, "uniqueKeyPolicy": unique}
        self.send("POST", "/dbs/db/colls", definition | {"defaultTtl": -1})

    def send(self, method, path, body=None, **headers):
        named = {name.replace("_", "-").lower(): value for name, value in headers.items()}
        raw = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        return self.emulator.exchange(Request(method, path, named, raw))

    def put(self, **document):
        made = {"pk": "a"} | document
        return self.send("POST", DOCS, made, **{KEY: json.dumps([made["pk"]])})

    def get(self, item="1", **headers):
        return self.send("GET", f"{DOCS}/{item}", **{KEY: '["a"]'}, **headers)

    def query(self, text, parameters=(), **headers):
        spec = {"query": text, "parameters": list(parameters)}
        headers.setdefault("content_type", "application/query+json")
        return self.send("POST", DOCS, spec, **headers)

    def batch(self, *operations):
        flags = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"}
        return self.send("POST", DOCS, list(operations), **{KEY: '["a"]'}, **flags)


@pytest.fixture
def vnext():
    wire = Wire()
    yield wire
    wire.emulator.close()


@pytest.fixture
def like():
    made = []

    def open_one(text):
        made.append(Wire(text))
        return made[-1]

    yield open_one
    for each in made:
        each.emulator.close()


def found(answer):
    return json.loads(answer.body)["Documents"]


# --- as recorded


def test_nobody_needs_a_key(vnext):
    assert vnext.put(id="1").status == 201
    assert vnext.send("GET", "/").status == 200


@pytest.mark.parametrize("header", ["if_none_match"])
def test_a_read_of_what_did_not_change_returns_the_document(vnext, header):
    etag = vnext.put(id="1").headers["etag"]
    answer = vnext.get(**{header: etag})
    assert (answer.status, json.loads(answer.body)["id"]) == (200, "1")


def test_if_match_decides_about_single_documents(vnext):
    etag = vnext.put(id="1").headers["etag"]
    path, body = f"{DOCS}/1", {"id": "1", "pk": "a"}
    assert vnext.send("PUT", path, body, if_match='"other"', **{KEY: '["a"]'}).status == 412
    assert vnext.send("PUT", path, body, if_match=etag, **{KEY: '["a"]'}).status == 200


def test_a_stronger_consistency_is_accepted(vnext):
    vnext.put(id="1")
    assert vnext.get(x_ms_consistency_level="Strong").status == 200


@pytest.mark.parametrize(
    "text",
    [
        "SELECT TOP 2 * FROM c",
        "SELECT * FROM c ORDER BY c.n",
        "SELECT * FROM c OFFSET 1 LIMIT 1",
        "SELECT DISTINCT VALUE c.pk FROM c",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk",
        "SELECT COUNT(1) AS n, MAX(c.n) AS m FROM c",
        "SELECT VALUE t FROM c JOIN t IN c.tags",
        "SELECT * FROM c WHERE c.pk IN ('a', 'b') AND c.id LIKE '1%'",
    ],
)
def test_queries_over_all_partitions_are_answered_whole_without_being_allowed_to(vnext, text):
    for number in range(3):
        vnext.put(id=str(number), pk="ab"[number % 2], n=number, tags=["x"], u=number)
    answer = vnext.query(text)
    assert answer.status == 200
    assert found(answer)


@pytest.mark.parametrize("size", [None, "0", "many"])
def test_a_page_without_a_size_has_100_documents(vnext, size):
    for number in range(101):
        vnext.put(id=f"{number:03}", u=number)
    headers = {} if size is None else {"x_ms_max_item_count": size}
    answer = vnext.query("SELECT * FROM c", **headers)
    assert len(found(answer)) == 100
    rest = vnext.query(
        "SELECT * FROM c", x_ms_continuation=answer.headers["x-ms-continuation"], **headers
    )
    assert len(found(rest)) == 1


def test_a_sorted_query_ignores_the_page_size(vnext):
    for number in range(30):
        vnext.put(id=str(number), n=number, u=number)
    answer = vnext.query("SELECT VALUE c.n FROM c ORDER BY c.n", x_ms_max_item_count="2")
    assert found(answer) == list(range(30))
    assert "x-ms-continuation" not in answer.headers


def test_a_continuation_that_nobody_gave_is_an_error_of_the_server(vnext):
    assert vnext.query("SELECT * FROM c", x_ms_continuation="nonsense").status == 500


def test_a_create_takes_its_partition_from_the_document(vnext):
    assert vnext.send("POST", DOCS, {"id": "1", "pk": "a"}).status == 201
    assert vnext.get().status == 200


def test_a_read_still_needs_a_partition_key(vnext):
    vnext.put(id="1")
    assert vnext.send("GET", f"{DOCS}/1").status == 400


def test_a_failed_batch_writes_nothing(vnext):
    vnext.put(id="1")
    create = {"operationType": "Create", "resourceBody": {"id": "2", "pk": "a", "u": 2}}
    again = {"operationType": "Create", "resourceBody": {"id": "1", "pk": "a", "u": 3}}
    answer = vnext.batch(create, again)
    assert answer.status == 207
    assert [each["statusCode"] for each in json.loads(answer.body)] == [424, 409]
    assert [each["requestCharge"] for each in json.loads(answer.body)] == [0, 0]
    assert vnext.get("2").status == 404


def test_a_batch_has_at_most_100_operations(vnext):
    create = {"operationType": "Upsert", "resourceBody": {"id": "1", "pk": "a"}}
    assert vnext.batch(*[create] * 101).status == 400


def test_a_document_of_3_MiB_is_too_large(vnext):
    assert vnext.put(id="1", text="x" * 3 * 1024 * 1024).status == 413


@pytest.mark.parametrize("body", [b"{", b'{"id": "1", "pk": "a", "x": NaN}', b'{"x": "\\ud800"}'])
def test_a_body_that_is_not_json_is_forbidden(vnext, body):
    assert vnext.send("POST", DOCS, body, **{KEY: '["a"]'}).status == 403


def test_a_query_sorts_properties_by_length_and_name(vnext):
    vnext.put(id="1", long=1, b=2, a={"zz": 1, "y": 2})
    (document,) = found(vnext.query("SELECT * FROM c"))
    assert list(document) == ["a", "b", "pk", "long", "id", "_rid", "_etag", "_attachments", "_ts"]
    assert list(document["a"]) == ["y", "zz"]
    read = json.loads(vnext.get().body)
    assert list(read)[:5] == ["pk", "id", "long", "b", "a"]
    assert list(read["a"]) == ["zz", "y"]


def test_a_client_keeps_no_session_token(vnext):
    written, asked = vnext.put(id="1"), vnext.query("SELECT * FROM c")
    account = json.loads(vnext.send("GET", "/").body)
    assert account["userConsistencyPolicy"] == {"defaultConsistencyLevel": "Eventual"}
    assert written.headers["x-ms-session-token"] == "0:0#1"
    assert asked.headers["x-ms-session-token"] == "0:0#0"
    for answer in (written, asked, vnext.get(), vnext.get("2")):
        assert "x-ms-alt-content-path" not in answer.headers


def test_a_definition_does_not_show_composite_indexes(vnext):
    paths = [{"path": "/a"}, {"path": "/b"}]
    definition = {"id": "d", "partitionKey": {"paths": ["/pk"]}}
    policy = {"compositeIndexes": [paths]}
    answer = vnext.send("POST", "/dbs/db/colls", {**definition, "indexingPolicy": policy})
    assert answer.status == 201
    assert "compositeIndexes" not in json.loads(answer.body)["indexingPolicy"]


def test_every_request_is_charged_one(vnext):
    answers = [vnext.put(id="1", text="x" * 1000), vnext.get(), vnext.query("SELECT * FROM c")]
    assert [each.headers["x-ms-request-charge"] for each in answers] == ["1"] * 3


def test_a_definition_shows_unique_keys_and_so_does_a_list(vnext):
    assert "uniqueKeyPolicy" in json.loads(vnext.send("GET", "/dbs/db/colls/c").body)
    (listed,) = json.loads(vnext.send("GET", "/dbs/db/colls").body)["DocumentCollections"]
    assert "uniqueKeyPolicy" in listed


def test_it_says_what_it_is(vnext):
    answer = vnext.send("GET", "/")
    assert answer.headers["server"] == "PGSQL"
    assert answer.headers["x-ms-gatewayversion"] == "2.0.0-unknown"


# --- as its issues report


def test_a_batch_ignores_if_match(vnext):  # 302
    vnext.put(id="1")
    body = {"id": "1", "pk": "a", "new": True}
    replace = {"operationType": "Replace", "id": "1", "resourceBody": body, "ifMatch": '"other"'}
    assert vnext.batch(replace).status == 200
    assert json.loads(vnext.get().body)["new"]


def test_a_query_has_a_session_token_of_zero(vnext):  # 331
    vnext.put(id="1")
    assert vnext.query("SELECT * FROM c").headers["x-ms-session-token"] == "0:0#0"


def test_an_expired_document_may_stay_visible_for_a_while(like):
    wire = like("vnext,+late-expiry")
    wire.put(id="1", ttl=10)
    wire.emulator.clock.advance(12)
    assert wire.get().status == 200
    assert found(wire.query("SELECT * FROM c"))
    wire.emulator.clock.advance(10)
    assert wire.get().status == 404
    assert found(wire.query("SELECT * FROM c")) == []


def test_an_order_needs_no_composite_index(vnext):  # 233
    vnext.put(id="1", a=1, b=2)
    assert vnext.query("SELECT * FROM c ORDER BY c.a, c.b").status == 200


# --- on request


def test_a_failed_batch_may_keep_its_beginning(like):
    wire = like("vnext,+partial-batch")
    wire.put(id="1")
    create = {"operationType": "Create", "resourceBody": {"id": "2", "pk": "a", "u": 2}}
    again = {"operationType": "Create", "resourceBody": {"id": "1", "pk": "a", "u": 3}}
    assert wire.batch(create, again).status == 207
    assert wire.get("2").status == 200


def test_the_last_page_may_have_a_token_that_begins_again(like):
    wire = like("vnext,+last-page-token")
    wire.put(id="1")
    first = wire.query("SELECT * FROM c")
    again = wire.query("SELECT * FROM c", x_ms_continuation=first.headers["x-ms-continuation"])
    assert found(again) == found(first)


def test_a_definition_may_hide_its_policies(like):
    shown = json.loads(like("vnext,+no-unique-keys,+no-policy").send("GET", "/dbs/db/colls/c").body)
    assert not {"uniqueKeyPolicy", "indexingPolicy"} & shown.keys()


def test_lists_may_be_missing(like):
    wire = like("vnext,+no-lists")
    assert [wire.send("GET", path).status for path in ("/dbs", "/offers")] == [501, 501]
    assert wire.send("GET", "/dbs/db").status == 200


def test_the_change_feed_may_fail_or_forget_its_etag(like):
    assert like("vnext,+feed-500").send("GET", DOCS, a_im="Incremental Feed").status == 500
    wire = like("vnext,+feed-without-etag")
    wire.put(id="1")
    answer = wire.send("GET", DOCS, a_im="Incremental Feed")
    assert (answer.status, "etag" in answer.headers) == (200, False)


def test_a_count_may_be_an_object(like):
    wire = like("vnext,+count-as-object")
    assert found(wire.query("SELECT VALUE COUNT(1) FROM c")) == [{"$1": 0}]


def test_some_texts_may_be_refused(like):
    wire = like("vnext,+no-nul,+ascii-queries")
    assert wire.put(id="1", text="\0").status == 500
    spec = json.dumps({"query": "SELECT 'é' FROM c"}, ensure_ascii=False).encode()
    assert wire.send("POST", DOCS, spec, content_type="application/query+json").status == 500


def test_of_two_that_create_a_database_one_may_get_500(like):
    wire = like("vnext,+race-500")
    answers = [wire.send("POST", "/dbs", {"id": "other"}).status for _ in range(3)]
    assert answers == [201, 500, 409]


def test_an_etag_without_quotation_marks_is_understood(vnext):
    etag = vnext.put(id="1").headers["etag"]
    assert '"' not in etag
    assert json.loads(vnext.get().body)["_etag"] == etag
    body = {"id": "1", "pk": "a"}
    headers = {KEY: '["a"]'}
    assert vnext.send("PUT", f"{DOCS}/1", body, if_match=etag, **headers).status == 200
    assert vnext.send("PUT", f"{DOCS}/1", body, if_match=etag, **headers).status == 412


def test_an_error_of_a_query_is_a_member_of_the_answer(vnext):
    answer = json.loads(vnext.query("SELECT 1/0").body)
    assert [error["code"] for error in answer["errors"]] == [4001]


def test_a_failed_operation_says_why(vnext):
    vnext.put(id="1")
    again = {"operationType": "Create", "resourceBody": {"id": "1", "pk": "a", "u": 3}}
    (failed,) = json.loads(vnext.batch(again).body)
    assert failed["resourceBody"]["code"] == "Conflict"


# --- switches


@pytest.mark.parametrize("each", VNEXT, ids=lambda each: each.name)
def test_every_deviation_can_be_switched(each):
    assert each.source
    assert (each.name in parse("vnext")) is each.usual
    assert each.name in parse(f"vnext,+{each.name}")
    assert each.name not in parse(f"vnext,-{each.name}")


@pytest.mark.parametrize("like", ["v2", "vnext,304", "vnext,+304", "vnext,", ""])
def test_a_wrong_name_is_refused(like):
    with pytest.raises(ValueError, match=r"unknown|no deviation"):
        Emulator(like=like)


def test_the_readme_names_every_deviation():
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    for each in VNEXT:
        assert f"| `{each.name}` | {each.what} | {each.source} |" in readme


def test_what_is_switched_off_is_as_in_azure(like):
    wire = like("vnext,-no-304")
    etag = wire.put(id="1").headers["etag"]
    assert wire.get(if_none_match=etag).status == 304


def test_the_sdk_works_on_it():
    with Emulator(like="vnext") as emulator:
        options = {"transport": emulator.transport(), "enable_endpoint_discovery": False}
        with CosmosClient(emulator.endpoint, "YW55IGtleQ==", **options) as client:
            database = client.create_database_if_not_exists("db")
            container = database.create_container_if_not_exists("c", PartitionKey("/pk"))
            for number in range(5):
                container.create_item({"id": str(number), "pk": "a", "n": number})
            text = "SELECT VALUE c.n FROM c ORDER BY c.n DESC"
            rows = container.query_items(text, enable_cross_partition_query=True)
            assert list(rows) == [4, 3, 2, 1, 0]
