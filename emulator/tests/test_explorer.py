"""The data page: what it shows, and to whom."""

import json
import re
import urllib.error
import urllib.request

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from cosmos_emulator import Emulator
from cosmos_emulator.explorer.pages import Explorer
from cosmos_emulator.serving import serving

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(params=[1, 3], ids=["one partition", "three"])
def emulator(request):
    with Emulator(partitions=request.param) as emulator:
        with CosmosClient(
            emulator.endpoint, emulator.key, transport=emulator.transport()
        ) as client:
            shop = client.create_database("shop")
            orders = shop.create_container("orders", partition_key=PartitionKey("/pk"))
            for number in range(60):
                orders.create_item({"id": str(number), "pk": f"p{number % 7}", "n": number})
            orders.create_item({"id": "big", "pk": "x", "n": 100, "text": HOSTILE})
        emulator.clear_requests()
        yield emulator


@pytest.fixture
def page(emulator):
    explorer = Explorer(emulator)
    with serving(emulator, explorer=explorer) as endpoint:
        yield Page(endpoint.rstrip("/") + explorer.path)


class Page:
    """What a browser does that was given the address."""

    def __init__(self, address):
        self.address = address
        self.base = re.match(r"http://[^/]+", address)[0]
        self.cookie = ""

    def get(self, path, body=None, **headers):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, headers)
        if self.cookie:
            request.add_header("Cookie", self.cookie)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, dict(answer.headers), answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, dict(error.headers), error.read().decode()

    def open(self):
        status, headers, _ = self.get(self.address.removeprefix(self.base))
        assert status == 200
        assert "HttpOnly" in headers["Set-Cookie"]
        assert "SameSite=Strict" in headers["Set-Cookie"]
        self.cookie = headers["Set-Cookie"].split(";")[0]
        return self

    def query(self, text, **more):
        asked = {"database": "shop", "container": "orders", "query": text, **more}
        status, _, body = self.get("/_explorer/query", asked, **{"x-explorer": "1"})
        assert status == 200
        return json.loads(body)


def test_it_lists_databases_and_containers(page):
    (shop,) = json.loads(page.open().get("/_explorer/catalog")[2])
    assert (shop["id"], [each["id"] for each in shop["containers"]]) == ("shop", ["orders"])


def test_a_query_shows_documents_in_pages_with_charge_and_plan(page):
    first = page.open().query("SELECT VALUE c.n FROM c ORDER BY c.n")
    assert [each["line"] for each in first["documents"]] == [str(n) for n in range(50)]
    assert first["charge"] > 2
    assert first["plan"]["queryInfo"]["orderBy"] == ["Ascending"]
    rest = page.query("SELECT VALUE c.n FROM c ORDER BY c.n", continuation=first["continuation"])
    assert [each["line"] for each in rest["documents"][:-1]] == [str(n) for n in range(50, 60)]
    assert rest["continuation"] is None


def test_aggregates_are_added_up_whatever_the_partitions(page):
    assert page.open().query("SELECT VALUE COUNT(1) FROM c")["documents"][0]["line"] == "61"


def test_a_bad_query_is_explained(page):
    answer = page.open().query("SELECT nonsense FROM")
    assert answer["status"] == 400
    assert "Syntax error" in answer["error"]


def test_looking_leaves_no_trace_and_meets_no_fault(page, emulator):
    emulator.faults.fail(503, times=None)
    assert page.open().query("SELECT * FROM c")["documents"]
    assert list(emulator.requests) == []


def test_without_its_address_nothing_is_shown(page):
    for path in ("/_explorer/", "/_explorer/catalog", "/_explorer/open?key=guess"):
        status, _, body = page.get(path)
        assert (status, "shop" in body) == (403, False)


def test_another_site_cannot_ask_for_data(page):
    page.open()
    status, _, _ = page.get("/_explorer/query", {"database": "shop"})
    assert status == 403  # a form cannot send the page's own header
    status, _, body = page.get("/_explorer/catalog", Host="evil.example:8081")
    assert (status, "shop" in body) == (403, False)  # a name that leads here


def test_only_its_own_script_runs(page):
    _, headers, body = page.open().get("/_explorer/")
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "<script>" not in body
    assert "innerHTML" not in page.get("/_explorer/explorer.js")[2]


def test_it_is_there_only_on_request(emulator):
    with serving(emulator) as endpoint:
        assert Page(endpoint).get("/_explorer/")[0] != 200
