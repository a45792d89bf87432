"""Every test here runs once for each store that claims what the test needs.

async def test_…(service, app): …                     all stores
@pytest.mark.claims(DURABLE)                          only those that claim it
async def test_…(service, store, app): …              `store.open()` is a second process
"""

from __future__ import annotations

import uuid

import pytest

from tests.memory.support import AdkStore
from tests.support.adk import ADK
from tests.support.cosmos import Cosmos
from tests.support.stores import DURABLE, MODERN, CosmosStore, cosmos_kinds, on_endpoint

CLAIMS = {name: {MODERN, DURABLE} for name in cosmos_kinds()}
if not on_endpoint():
    CLAIMS["in_memory"] = {MODERN} if ADK >= (2, 13) else set()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    needs = {claim for mark in metafunc.definition.iter_markers("claims") for claim in mark.args}
    if "store" in metafunc.fixturenames:
        able = [name for name, claims in CLAIMS.items() if needs <= claims]
        metafunc.parametrize("store", able, indirect=True)


@pytest.fixture
def shares_containers() -> bool:
    return True  # each test has an app of its own


@pytest.fixture
async def store(request: pytest.FixtureRequest, cosmos: Cosmos):
    """One of the stores."""
    if request.param == "in_memory":
        yield AdkStore()
        return
    http = request.param == "http"
    made = CosmosStore(request.getfixturevalue("connect_memory_http") if http else cosmos.memory)
    yield made
    await made.close()


@pytest.fixture
def service(store):
    return store.open()


@pytest.fixture
def app() -> str:
    """An app that nothing else uses: stores may be shared and outlive the test."""
    return f"app_{uuid.uuid4().hex[:12]}"
