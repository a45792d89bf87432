"""Resource tokens are a boundary: every route, with every kind of token."""

import json
from urllib.parse import quote

import pytest

from cosmos_emulator import Emulator
from cosmos_emulator.messages import Request

from .raw import create, make_container, send

MINE, OTHER = '["x"]', '["y"]'
COLL = "/dbs/db/colls/c"
QUERY = {"x-ms-documentdb-isquery": "true", "x-ms-documentdb-query-enablecrosspartition": "true"}
KEY = "x-ms-documentdb-partitionkey"

# name: method, path, headers, body
ROUTES = {
    "account": ("GET", "/", {}, None),
    "list databases": ("GET", "/dbs", {}, None),
    "read database": ("GET", "/dbs/db", {}, None),
    "create database": ("POST", "/dbs", {}, {"id": "new"}),
    "list containers": ("GET", "/dbs/db/colls", {}, None),
    "read container": ("GET", COLL, {}, None),
    "read other container": ("GET", "/dbs/db/colls/d", {}, None),
    "replace container": ("PUT", COLL, {}, {"id": "c", "partitionKey": {"paths": ["/pk"]}}),
    "ranges": ("GET", f"{COLL}/pkranges", {}, None),
    "ranges of other": ("GET", "/dbs/db/colls/d/pkranges", {}, None),
    "offers": ("GET", "/offers", {}, None),
    "users": ("GET", "/dbs/db/users", {}, None),
    "read mine": ("GET", f"{COLL}/docs/a", {KEY: MINE}, None),
    "read another of mine": ("GET", f"{COLL}/docs/a2", {KEY: MINE}, None),
    "read other key": ("GET", f"{COLL}/docs/b", {KEY: OTHER}, None),
    "read in other container": ("GET", "/dbs/db/colls/d/docs/a", {KEY: MINE}, None),
    "feed": ("GET", f"{COLL}/docs", {}, None),
    "feed of mine": ("GET", f"{COLL}/docs", {KEY: MINE}, None),
    "change feed": ("GET", f"{COLL}/docs", {"a-im": "Incremental Feed"}, None),
    "feed of a range": ("GET", f"{COLL}/docs", {"x-ms-documentdb-partitionkeyrangeid": "0"}, None),
    "query": ("POST", f"{COLL}/docs", QUERY, {"query": "SELECT * FROM c"}),
    "query mine": ("POST", f"{COLL}/docs", {**QUERY, KEY: MINE}, {"query": "SELECT * FROM c"}),
    "create mine": ("POST", f"{COLL}/docs", {KEY: MINE}, {"id": "n", "pk": "x"}),
    "create other": ("POST", f"{COLL}/docs", {KEY: OTHER}, {"id": "n", "pk": "y"}),
    "replace mine": ("PUT", f"{COLL}/docs/a", {KEY: MINE}, {"id": "a", "pk": "x"}),
    "empty other key": ("POST", f"{COLL}/operations/partitionkeydelete", {KEY: OTHER}, None),
    "empty mine": ("POST", f"{COLL}/operations/partitionkeydelete", {KEY: MINE}, None),
    "stored procedures": ("GET", f"{COLL}/sprocs", {}, None),
}
BASE = {"account", "read container", "ranges"}
READS_MINE = {"read mine", "read another of mine", "feed of mine", "query mine"}
READS = READS_MINE | {
    "read other key", "feed", "change feed", "feed of a range", "query", "stored procedures",
}  # fmt: skip
WRITES_MINE = {"create mine", "replace mine", "empty mine"}
WRITES = WRITES_MINE | {"create other", "empty other key", "replace container"}
# name: resource, mode, key, and the routes that it opens
SCOPES = {
    "container, read": ("dbs/db/colls/c", "Read", None, BASE | READS),
    "container, all": ("dbs/db/colls/c", "All", None, BASE | READS | WRITES),
    "key, read": ("dbs/db/colls/c", "Read", ["x"], BASE | READS_MINE),
    "key, all": ("dbs/db/colls/c", "All", ["x"], BASE | READS_MINE | WRITES_MINE),
    "item, read": ("dbs/db/colls/c/docs/a", "Read", ["x"], BASE | {"read mine"}),
    "item, all": ("dbs/db/colls/c/docs/a", "All", ["x"], BASE | {"read mine", "replace mine"}),
}


def token(emulator, resource, mode, key):
    send(emulator, "POST", "/dbs/db/users", {"id": "u"})
    body = {"id": "p", "permissionMode": mode, "resource": resource}
    if key is not None:
        body["resourcePartitionKey"] = key
    status, permission = send(emulator, "POST", "/dbs/db/users/u/permissions", body)
    assert status == 201
    return permission["_token"]


@pytest.fixture
def served():
    with Emulator() as emulator:
        make_container(emulator)
        make_container(emulator, "d")
        for item in ({"id": "a", "pk": "x"}, {"id": "a2", "pk": "x"}, {"id": "b", "pk": "y"}):
            create(emulator, item)
        create(emulator, {"id": "a", "pk": "x"}, "d")
        yield emulator


def ask(emulator, token, route):
    method, path, headers, body = ROUTES[route]
    data = b"" if body is None else json.dumps(body).encode()
    headers = {"authorization": quote(token, safe=""), **headers}
    return emulator.exchange(Request(method, path, headers, data))


@pytest.mark.parametrize("scope", SCOPES)
def test_a_token_opens_its_scope_and_nothing_else(served, scope):
    resource, mode, key, opened = SCOPES[scope]
    mine = token(served, resource, mode, key)
    # Deletes come last: they would leave nothing to read.
    for route in sorted(ROUTES, key=lambda name: name.startswith("empty")):
        status = ask(served, mine, route).status
        assert (status not in (401, 403)) == (route in opened), (route, status)


def test_keys_of_another_type_are_other_keys(served):
    create(served, {"id": "t", "pk": True})
    mine = token(served, "dbs/db/colls/c", "Read", [1])
    headers = {"authorization": quote(mine, safe=""), KEY: "[true]"}
    answer = served.exchange(Request("GET", f"{COLL}/docs/t", headers))
    assert answer.status == 403


def test_what_a_key_token_reads_is_of_its_key(served):
    mine = token(served, "dbs/db/colls/c", "Read", ["x"])
    for route in ("feed of mine", "query mine"):
        documents = json.loads(ask(served, mine, route).body)["Documents"]
        assert {document["pk"] for document in documents} == {"x"}


def test_a_token_is_valid_for_as_long_as_was_asked(served):
    send(served, "POST", "/dbs/db/users", {"id": "u"})
    body = {"id": "p", "permissionMode": "Read", "resource": "dbs/db/colls/c"}
    send(served, "POST", "/dbs/db/users/u/permissions", body)
    asked = {"x_ms_documentdb_expiry_seconds": "60"}
    _, permission = send(served, "GET", "/dbs/db/users/u/permissions/p", **asked)
    assert ask(served, permission["_token"], "read mine").status == 200
    served.clock.advance(61)
    assert ask(served, permission["_token"], "read mine").status == 403


@pytest.mark.parametrize("resource", ["", "dbs/db", "dbs/db/users/u", None])
def test_a_permission_is_for_a_container_or_something_in_one(served, resource):
    send(served, "POST", "/dbs/db/users", {"id": "u"})
    body = {"id": "p", "permissionMode": "All", "resource": resource}
    status, _ = send(served, "POST", "/dbs/db/users/u/permissions", body)
    assert status == 400
