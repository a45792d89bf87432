"""`cosmosservice selftest`: what is promised is tried on the user's own store."""

import gc
import json
import re
from pathlib import Path

import pytest

from cosmos_emulator import Emulator
from cosmos_emulator.auth import EMULATOR_KEY
from cosmos_emulator.serving import serving
from cosmosservice.account.connection import Connection
from cosmosservice.account.options import ConnectionOptions
from cosmosservice.account.settings import Settings
from cosmosservice.errors import UnavailableError
from cosmosservice.selftest import promises
from cosmosservice.selftest.figures import DOCUMENTED
from cosmosservice.selftest.promises import PROMISES, Broken
from cosmosservice.selftest.scratch import THROUGHPUT, _Nobody
from tests.support.raw import raw_client

COST = (Path(__file__).parents[2] / "docs/cost.md").read_text()


def test_every_promise_is_kept_and_nothing_is_left(command, tmp_path):
    store = f"cosmosdb://embedded/{tmp_path}/store.db"
    done = command("selftest", "--uri", store, "--json")
    report = json.loads(done.out)
    assert [each["promise"] for each in report["promises"] if not each["kept"]] == []
    assert report["kept"]
    assert len(report["promises"]) == len(PROMISES)
    assert {each["operation"] for each in report["figures"]} == set(DOCUMENTED)
    left = command("doctor", "--uri", store).out
    assert "selftest-" not in left


def test_a_promise_that_is_not_kept_is_told_and_fails(command, tmp_path, monkeypatch):
    async def broken(*_):
        raise Broken("an event is missing")

    async def well(*_):
        return "well"

    async def unforeseen(*_):
        raise KeyError("etag")

    chosen = (
        ("access", "may do it", well),
        ("G1", "nothing is lost", broken),
        ("G2", "one is refused", unforeseen),
    )
    monkeypatch.setattr("cosmosservice.selftest.run.PROMISES", chosen)
    done = command("selftest", "--uri", f"cosmosdb://embedded/{tmp_path}/store.db")
    assert done.code == 1
    assert "an event is missing" in done.out
    assert "KeyError: 'etag'" in done.out
    assert done.out.count("Keep no data in this store") == 2
    assert "2 of 3 promises were not kept" in done.out


@pytest.fixture
def served(monkeypatch):
    """An emulator over HTTP whose faults a test may set, and its address."""
    monkeypatch.setenv("COSMOSDB_KEY", EMULATOR_KEY)
    monkeypatch.delenv("COSMOSDB_DATABASE", raising=False)
    with Emulator() as emulator, serving(emulator) as url:
        yield emulator, url


def choose(monkeypatch, *names):
    chosen = [each for each in PROMISES if each[0] in names]
    monkeypatch.setattr("cosmosservice.selftest.run.PROMISES", chosen)


@pytest.mark.parametrize("promise", ["G1 G3 G8", "G2 G5", "G13"])
def test_a_store_that_refuses_writes_is_not_said_to_break_a_promise(
    command, monkeypatch, served, caplog, promise
):
    emulator, url = served
    choose(monkeypatch, "access", promise)
    emulator.faults.fail(
        403,
        operation="create",
        container="events",
        where=lambda request: "access" not in request.partition_key,
        times=None,
    )
    done = command("selftest", "--endpoint", url)
    assert done.code == 1
    assert re.search(f"✗ {promise}.*AuthenticationError: ", done.out, re.S)
    assert "Run `cosmosservice doctor`" in done.out
    assert "Keep no data" not in done.out
    gc.collect()
    assert "never retrieved" not in caplog.text
    with raw_client(emulator) as client:
        assert list(client.list_databases()) == []


def test_what_a_purge_could_not_erase_is_told_with_the_reason(command, monkeypatch, served):
    emulator, url = served
    choose(monkeypatch, "access", "G12")
    emulator.faults.fail(
        500,
        operation="replace",
        container="events",
        where=lambda request: "access" in request.partition_key,
        times=None,
    )
    done = command("selftest", "--endpoint", url)
    assert re.search(r"a purge reports that something is left:.*answer 500", done.out)


def test_a_database_that_could_not_be_created_need_not_be_removed(command, served):
    emulator, url = served
    emulator.faults.fail(403, resource="dbs", times=None)
    done = command("selftest", "--endpoint", url)
    assert done.code == 1
    assert "AuthenticationError: " in done.out
    assert "Not removed" not in done.err


def test_in_place_nothing_of_others_is_erased(command, conversation, monkeypatch):
    names = ("access", "memory", "artifacts", "G12")
    chosen = [each for each in PROMISES if each[0] in names]
    monkeypatch.setattr("cosmosservice.selftest.run.PROMISES", chosen)
    monkeypatch.setattr("cosmosservice.cli.selftest._print_figures", lambda report: None)

    async def nothing(scratch):
        return [], {}

    monkeypatch.setattr("cosmosservice.selftest.run.measured", nothing)
    done = command("selftest", "--in-place")
    assert done.code == 0, done.out
    assert re.search(r"\d+ documents with events.*no content is left", done.out)
    assert "first" in command("sessions", "list").out


def test_what_cannot_be_measured_is_told(command, tmp_path, monkeypatch):
    async def well(*_):
        return "well"

    async def silent(*_):
        raise UnavailableError("no answer")

    monkeypatch.setattr("cosmosservice.selftest.run.PROMISES", (("access", "may do it", well),))
    monkeypatch.setattr("cosmosservice.selftest.run.measured", silent)
    done = command("selftest", "--uri", f"cosmosdb://embedded/{tmp_path}/store.db")
    assert done.code == 1
    assert "no answer" in done.out
    assert "1 of 2 promises were not kept" in done.out


@pytest.mark.parametrize("serverless", [False, True])
async def test_the_containers_share_one_throughput_unless_the_account_is_serverless(serverless):
    with Emulator(serverless=serverless) as emulator:
        settings = Settings(endpoint="embedded::memory:", database="scratch")
        options = ConnectionOptions(emulator=emulator)
        connection = await Connection.open(settings, options, _Nobody())
        await connection.create_shared_database(THROUGHPUT)
        await connection.close()
        with raw_client(emulator) as client:
            database = client.get_database_client("scratch")
            assert database.read()["id"] == "scratch"
            if not serverless:
                assert database.get_throughput().offer_throughput == THROUGHPUT


def test_it_asks_before_it_costs_something(command, monkeypatch):
    monkeypatch.setenv("COSMOSDB_KEY", "QUJD")
    done = command("selftest", "--uri", "cosmosdb://contoso.documents.azure.com/adk")
    assert done.code == 1
    assert "request units on https://contoso.documents.azure.com" in done.err


def test_an_endpoint_is_enough_since_the_database_is_its_own(command, monkeypatch):
    monkeypatch.delenv("COSMOSDB_DATABASE", raising=False)
    monkeypatch.setenv("COSMOSDB_KEY", "QUJD")
    done = command("selftest", "--endpoint", "https://contoso.documents.azure.com")
    assert "request units on https://contoso.documents.azure.com" in done.err


def test_an_identity_that_may_create_no_database_is_told_how(command):
    done = command("selftest", "--uri", "cosmosdb://contoso.documents.azure.com/adk")
    assert done.code == 2
    assert "--in-place" in done.err


@pytest.mark.parametrize("operation", DOCUMENTED)
def test_the_figures_beside_it_are_those_of_the_documentation(operation):
    row = re.search(rf"^\| {re.escape(operation)} \| \d+ \| ([\d.]+) \|", COST, re.M)
    assert float(row[1]) == DOCUMENTED[operation]


def test_every_guarantee_is_among_the_promises():
    named = {word for promise, _, _ in promises.PROMISES for word in promise.split()}
    assert {f"G{number}" for number in range(1, 14)} <= named
