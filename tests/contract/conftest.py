"""Every test here runs once for each store that claims what the test needs.

async def test_…(service, app): …                     all stores
@pytest.mark.claims(DURABLE)                          only those that claim it
async def test_…(service, store, app): …              `store.open()` is a second process
"""

from __future__ import annotations

import uuid

import pytest

from tests.support.stores import CosmosStore, MemoryStore, kinds


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store" not in metafunc.fixturenames:
        return
    needs = {claim for mark in metafunc.definition.iter_markers("claims") for claim in mark.args}
    able = [kind.name for kind in kinds() if needs <= kind.claims]
    metafunc.parametrize("store", able, indirect=True)


@pytest.fixture
async def store(request: pytest.FixtureRequest):
    """One of the stores."""
    if request.param == "in_memory":
        made = MemoryStore()
    else:
        made = CosmosStore(request.getfixturevalue(f"connect_{request.param}"))
    yield made
    await made.close()


@pytest.fixture
def service(store):
    """A session service on the store."""
    return store.open()


@pytest.fixture
def app() -> str:
    """An app that nobody else uses: stores may be shared and outlive the test."""
    return f"app_{uuid.uuid4().hex[:12]}"
