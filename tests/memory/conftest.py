"""open_memory, memory: the services on the test's store. In contract/: every store."""

from __future__ import annotations

import os
from functools import partial

import pytest

from cosmosservice import CosmosMemoryService


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder, with COSMOSDB_* pointing to an embedded store in it."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("COSMOSDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COSMOSDB_ENDPOINT", "embedded:store.db")
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.fixture
def connect_memory_http(http_emulator):
    endpoint, key = http_emulator
    return partial(CosmosMemoryService, endpoint=endpoint, credential=key, database="tests")


@pytest.fixture
async def open_memory(cosmos):
    """`open_memory(**options)`: one more service on the same data, like another process."""
    yield cosmos.memory
    await cosmos.close()


@pytest.fixture
def memory(open_memory):
    return open_memory()
