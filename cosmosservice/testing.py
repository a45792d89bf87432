"""Fixtures for pytest, there as soon as the package is installed: a test asks for them by name.

    cosmos_account      an account in memory, empty, of this test alone
    cosmos_sessions     a CosmosSessionService on it
    cosmos_memory       a CosmosMemoryService on it
    cosmos_artifacts    a CosmosArtifactService on it

They are plain fixtures and belong to no event loop: tests run by pytest-asyncio, by anyio on
asyncio, and tests without a loop can all use them. pytest loads this module at every start, also
for projects that use none of this, so what the fixtures need is imported when one is asked for.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cosmosservice import (
        CosmosAccount,
        CosmosArtifactService,
        CosmosMemoryService,
        CosmosSessionService,
    )


@pytest.fixture
def cosmos_account() -> Iterator[CosmosAccount]:
    """An empty Cosmos DB account in memory. `COSMOSDB_*` and `.env` are not read."""
    from cosmosservice import CosmosAccount
    from cosmosservice.account.settings import EMBEDDED_DATABASE, Settings

    settings = Settings(endpoint="embedded::memory:", database=EMBEDDED_DATABASE)
    account = CosmosAccount(_settings=settings)
    yield account
    # In a thread: the test's plugin may keep an event loop for this one.
    closing = threading.Thread(target=lambda: asyncio.run(account.close()))
    closing.start()
    closing.join()


@pytest.fixture
def cosmos_sessions(cosmos_account: CosmosAccount) -> CosmosSessionService:
    """A session service on `cosmos_account`."""
    from cosmosservice import CosmosSessionService

    return CosmosSessionService(account=cosmos_account)


@pytest.fixture
def cosmos_memory(cosmos_account: CosmosAccount) -> CosmosMemoryService:
    """A memory service on `cosmos_account`, which finds by words."""
    from cosmosservice import CosmosMemoryService

    return CosmosMemoryService(account=cosmos_account)


@pytest.fixture
def cosmos_artifacts(cosmos_account: CosmosAccount) -> CosmosArtifactService:
    """An artifact service on `cosmos_account`, with large payloads in Cosmos DB."""
    from cosmosservice import CosmosArtifactService

    return CosmosArtifactService(account=cosmos_account)
