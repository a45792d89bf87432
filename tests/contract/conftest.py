"""Every test here runs once for each store that claims what the test needs.

async def test_…(service, app): …                     all stores
@pytest.mark.claims(DURABLE)                          only those that claim it
async def test_…(service, store, app): …              `store.open()` is a second process
"""

from __future__ import annotations

import asyncio
import uuid

import pytest

from tests.support.adk import ADK
from tests.support.stores import CosmosStore, MemoryStore, Store, kinds

# It compares with ADK's in-memory service, which keeps the whole contract only since 2.x.
collect_ignore = [] if ADK >= (2, 13) else ["test_any_history.py"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    needs = {claim for mark in metafunc.definition.iter_markers("claims") for claim in mark.args}
    able = [kind.name for kind in kinds() if needs <= kind.claims]
    for fixture in {"store", "sync_store"} & set(metafunc.fixturenames):
        metafunc.parametrize(fixture, able, indirect=True)


def make_store(request: pytest.FixtureRequest) -> Store:
    if request.param == "in_memory":
        return MemoryStore()
    return CosmosStore(request.getfixturevalue(f"connect_{request.param}"))


@pytest.fixture
async def store(request: pytest.FixtureRequest):
    """One of the stores."""
    made = make_store(request)
    yield made
    await made.close()


@pytest.fixture
def sync_store(request: pytest.FixtureRequest):
    """One of the stores, for tests that make and end their own event loops."""
    made = make_store(request)
    yield made
    asyncio.run(made.close())


@pytest.fixture
def service(store):
    """A session service on the store."""
    return store.open()


@pytest.fixture
def app() -> str:
    """An app that nobody else uses: stores may be shared and outlive the test."""
    return f"app_{uuid.uuid4().hex[:12]}"
