"""Requests that no well-behaved client sends: each gets a clear answer, and nothing breaks."""

import base64
import hashlib
import hmac
import json

import pytest

from cosmos_emulator import Emulator

from .raw import create, make_container, send, signed

DOCS = "/dbs/db/colls/c/docs"
KEY = '["x"]'


@pytest.fixture
def served(emulator):
    make_container(emulator)
    return emulator


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"null",
        b"\xff\xfe",
        b'{"id": "a", "pk": "x", "n": NaN}',
        b'{"id": "a", "pk": "x", "n": 1e999}',
        b'{"id": "a", "pk": "x", "n": Infinity}',
        b'{"pk": "x"}',
        b"[" * 100_000,
        b'{"id": "a", "pk": "x", "deep": ' + b"[" * 500 + b"]" * 500 + b"}",
    ],
    ids=lambda body: repr(body[:40]),
)
@pytest.mark.parametrize("method", ["create", "upsert", "replace", "patch", "batch", "query"])
def test_a_body_that_is_not_an_item_is_400(served, method, body):
    create(served, {"id": "a", "pk": "x"})
    headers = {
        "upsert": {"x_ms_documentdb_is_upsert": "True"},
        "batch": {"x_ms_cosmos_is_batch_request": "True"},
        "query": {"x_ms_documentdb_isquery": "True"},
    }.get(method, {})
    verb, path = {"replace": ("PUT", f"{DOCS}/a"), "patch": ("PATCH", f"{DOCS}/a")}.get(
        method, ("POST", DOCS)
    )
    status, answer = send(served, verb, path, body, x_ms_documentdb_partitionkey=KEY, **headers)
    assert status == 400
    assert answer["code"] == "BadRequest"
    assert "Message: " in answer["message"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 400),
        ("GET", "/dbs/db/nowhere", 400),
        ("GET", "/dbs/db/colls/c/docs/a/attachments", 400),
        ("GET", "/dbs//colls", 400),
        ("GET", "/dbs/none/colls", 404),
        ("GET", "/dbs/db/colls/none", 404),
        ("GET", "/dbs/db/colls/none/docs/a", 404),
        ("GET", "/dbs/db/colls/none/pkranges", 404),
        ("POST", "/", 405),
        ("POST", "/dbs/db/colls/c/operations/explode", 404),
        ("PUT", "/dbs", 405),
        ("PUT", DOCS, 405),
        ("POST", f"{DOCS}/a", 405),
        ("POST", "/offers", 405),
        ("BREW", "/dbs", 405),
        ("GET", "/dbs/%00/colls", 404),
        ("GET", "/dbs/%FF%FE/colls", 404),
        ("GET", "/" + "a/" * 1000, 400),
    ],
)
def test_an_unknown_route_is_refused(served, method, path, status):
    got, answer = send(served, method, path, {"id": "a"}, x_ms_documentdb_partitionkey=KEY)
    assert got == status
    assert answer["code"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x_ms_documentdb_partitionkey": "x"},
        {"x_ms_documentdb_partitionkey": '"x"'},
        {"x_ms_documentdb_partitionkey": '["x", "y"]'},
        {"x_ms_documentdb_partitionkey": '[["x"]]'},
        {"x_ms_documentdb_partitionkey": json.dumps(["x" * 3000])},
    ],
)
def test_a_bad_partition_key_is_400(served, headers):
    status, _ = send(served, "POST", DOCS, {"id": "a", "pk": "x"}, **headers)
    assert status == 400
    status, _ = send(served, "GET", f"{DOCS}/a", **headers)
    assert status == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"x_ms_max_item_count": "many"},
        {"x_ms_max_item_count": "-7"},
        {"x_ms_continuation": "somewhere"},
        {"a_im": "Incremental Feed", "if_none_match": "somewhere"},
        {"a_im": "Incremental Feed", "if_modified_since": "yesterday"},
        {"a_im": "Incremental Feed", "x_ms_max_item_count": "many"},
    ],
)
def test_an_absurd_header_of_a_feed_is_400(served, headers):
    status, _ = send(served, "GET", DOCS, x_ms_documentdb_partitionkey=KEY, **headers)
    assert status == 400


@pytest.mark.parametrize("value", ["", "x", "-1", '{"maxThroughput": "much"}', "[]"])
def test_an_absurd_throughput_is_400(served, value):
    body = {"id": "d", "partitionKey": {"paths": ["/pk"]}}
    headers = {"x_ms_offer_throughput": value}
    assert send(served, "POST", "/dbs/db/colls", body, **headers)[0] == 400
    headers = {"x_ms_cosmos_offer_autopilot_settings": value}
    assert send(served, "POST", "/dbs/db/colls", body, **headers)[0] == 400


@pytest.mark.parametrize(
    "token",
    [
        None,
        "",
        "nonsense",
        "type=master",
        "type=master&ver=1.0&sig=%00",
        "type=master&ver=1.0&sig=ä",
        "type=aad&ver=1.0&sig=nonsense",
        "type=resource&ver=1&sig=nonsense;;;",
        "type=unknown&ver=1.0&sig=x",
    ],
)
def test_an_invalid_token_is_401(served, token):
    request = signed(served.key, "GET", "/dbs")
    request.headers.pop("authorization")
    if token is not None:
        request.headers["authorization"] = token
    assert served.exchange(request).status == 401


def test_a_request_without_a_date_is_401(served):
    request = signed(served.key, "GET", "/dbs")
    request.headers.pop("x-ms-date")
    assert served.exchange(request).status == 401


def test_a_signature_for_another_resource_is_401(served):
    request = signed(served.key, "GET", "/dbs/db")
    other = signed(served.key, "DELETE", "/dbs/db")
    other.headers["authorization"] = request.headers["authorization"]
    assert served.exchange(other).status == 401


def test_a_forged_resource_token_is_401(served):
    payload = base64.b64encode(b'{"resource": "dbs/db", "mode": "all"}').decode()
    mac = base64.b64encode(hmac.digest(b"guess", payload.encode(), hashlib.sha256)).decode()
    request = signed(served.key, "GET", "/dbs/db")
    request.headers["authorization"] = f"type=resource&ver=1&sig={mac};{payload};"
    assert served.exchange(request).status == 401


def test_a_key_that_is_not_base64_is_refused():
    with pytest.raises(ValueError, match="base64"):
        Emulator(key="not base64!")


def test_the_key_is_in_no_repr(emulator):
    assert emulator.key not in repr(emulator) + repr(emulator.requests)
