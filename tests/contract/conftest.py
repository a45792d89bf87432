"""Every test here runs once for each store that claims what the test needs.

async def test_…(service, app): …                     all stores
@pytest.mark.claims(DURABLE)                          only those that claim it
async def test_…(service, store, app): …              `store.open()` is a second process
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from cosmosservice import CosmosAccount, CosmosSessionService
from tests.support.adk import ADK
from tests.support.cosmos import Cosmos
from tests.support.stores import CosmosStore, MemoryStore, Store, kinds

# It compares with ADK's in-memory service, which fulfils the whole contract only since 2.x.
collect_ignore = [] if ADK >= (2, 13) else ["test_any_history.py"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    needs = {claim for mark in metafunc.definition.iter_markers("claims") for claim in mark.args}
    able = [kind.name for kind in kinds() if needs <= kind.claims]
    if "store" in metafunc.fixturenames:
        metafunc.parametrize("store", able, indirect=True)
    if "sync_store" in metafunc.fixturenames:  # these need the loop of the test
        loopless = [name for name in able if name != "block"]
        metafunc.parametrize("sync_store", loopless, indirect=True)


def make_store(request: pytest.FixtureRequest, cosmos: Cosmos) -> Store:
    if request.param == "in_memory":
        return MemoryStore()
    if request.param == "http":
        return CosmosStore(request.getfixturevalue("connect_http"))
    return CosmosStore(cosmos.sessions)


@pytest.fixture
def shares_containers() -> bool:
    return True  # each test has an app of its own


@pytest.fixture
async def store(request: pytest.FixtureRequest, cosmos: Cosmos):
    """One of the stores."""
    async with contextlib.AsyncExitStack() as stack:
        if request.param == "block":  # one account on the test's own event loop
            account = await stack.enter_async_context(cosmos.account())
            made: Store = CosmosStore(partial(CosmosSessionService, account=account))
        else:
            made = make_store(request, cosmos)
        stack.push_async_callback(made.close)
        yield made


@pytest.fixture(scope="session")
def shared_account(http_emulator: tuple[str, str]) -> Iterator[CosmosAccount]:
    """One account for the services of all tests, on a thread and over HTTP."""
    endpoint, key = http_emulator
    account = CosmosAccount(endpoint=endpoint, credential=key, database="tests")
    yield account
    asyncio.run(account.close())


@pytest.fixture
def connect_http(shared_account: CosmosAccount) -> Callable[..., CosmosSessionService]:
    return partial(CosmosSessionService, account=shared_account)


@pytest.fixture
def sync_store(request: pytest.FixtureRequest, cosmos: Cosmos):
    """One of the stores, for tests that make and end their own event loops."""
    made = make_store(request, cosmos)
    yield made
    asyncio.run(made.close())


@pytest.fixture
def service(store):
    """A session service on the store."""
    return store.open()


@pytest.fixture
def app() -> str:
    """An app that nothing else uses: stores may be shared and outlive the test."""
    return f"app_{uuid.uuid4().hex[:12]}"
