"""The fixtures of the package, in projects that have nothing but a test."""

import subprocess
import sys

TESTS = """
import asyncio
import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

def test_a_client_and_its_emulator(cosmos_client, cosmos_emulator):
    database = cosmos_client.create_database("shop")
    orders = database.create_container("orders", partition_key=PartitionKey("/customer"))
    cosmos_emulator.faults.fail(503, operation="create", resource="docs", times=None)
    with pytest.raises(CosmosHttpResponseError):
        orders.create_item({"id": "1", "customer": "ann"})
    assert cosmos_emulator.requests[-1].status == 503

def test_every_test_has_an_account_of_its_own(cosmos_client):
    assert list(cosmos_client.list_databases()) == []

def test_the_asynchronous_client_on_any_loop(cosmos_async_client, cosmos_emulator):
    async def use():
        await cosmos_async_client.create_database("shop")
        return [each["id"] async for each in cosmos_async_client.list_databases()]
    assert asyncio.run(use()) == ["shop"]
    assert {record.status for record in cosmos_emulator.requests} == {200, 201}
"""


def pytest_run(folder):
    command = [sys.executable, "-W", "error::ResourceWarning", "-m", "pytest", "-q"]
    return subprocess.run(
        [*command, "-p", "no:cacheprovider", "."], cwd=folder, capture_output=True, text=True
    )


def test_the_fixtures_are_there_without_an_import(tmp_path):
    tmp_path.joinpath("test_shop.py").write_text(TESTS, encoding="utf-8")
    done = pytest_run(tmp_path)
    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_a_project_that_uses_none_of_them_loads_neither_the_emulator_nor_the_sdk():
    program = """
import sys
import pytest
before = set(sys.modules)
import cosmos_emulator.testing
print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))
print('cosmos_emulator.emulator' in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    loaded, emulator = done.stdout.splitlines()
    assert "azure" not in loaded.split()
    assert "lark" not in loaded.split()
    assert emulator == "False"
