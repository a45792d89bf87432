"""`cosmosservice selftest`: what is promised is tried on the user's own store."""

import json
import re
from pathlib import Path

import pytest

from cosmosservice.selftest import promises
from cosmosservice.selftest.figures import DOCUMENTED
from cosmosservice.selftest.promises import PROMISES, Broken

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

    chosen = (("access", "may do it", well), ("G1", "nothing is lost", broken))
    monkeypatch.setattr("cosmosservice.selftest.run.PROMISES", chosen)
    done = command("selftest", "--uri", f"cosmosdb://embedded/{tmp_path}/store.db")
    assert done.code == 1
    assert "an event is missing" in done.out
    assert "1 of 2 promises were not kept" in done.out


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
