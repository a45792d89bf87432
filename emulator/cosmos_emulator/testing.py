"""Fixtures for pytest, there as soon as the package is installed: a test asks for them by name.

    cosmos_emulator         an empty account in memory: .faults, .requests, .clock
    cosmos_client           azure.cosmos.CosmosClient on it
    cosmos_async_client     azure.cosmos.aio.CosmosClient on it

They are plain fixtures and belong to no event loop. pytest loads this module at every start, also
for projects that use none of this, so what a fixture needs is imported when it is asked for.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from azure.cosmos import CosmosClient
    from azure.cosmos.aio import CosmosClient as AsyncCosmosClient

    from cosmos_emulator.emulator import Emulator


@pytest.fixture
def cosmos_emulator() -> Iterator[Emulator]:
    """An empty Cosmos DB account in memory, with its faults, its request log and its clock."""
    from cosmos_emulator.emulator import Emulator

    with Emulator() as emulator:
        yield emulator


@pytest.fixture
def cosmos_client(cosmos_emulator: Emulator) -> Iterator[CosmosClient]:
    """The synchronous client of azure-cosmos, on `cosmos_emulator`."""
    transport = cosmos_emulator.transport()
    from azure.cosmos import CosmosClient

    endpoint, key = cosmos_emulator.endpoint, cosmos_emulator.key
    with CosmosClient(endpoint, key, transport=transport) as client:
        yield client


@pytest.fixture
def cosmos_async_client(cosmos_emulator: Emulator) -> Iterator[AsyncCosmosClient]:
    """The asynchronous client of azure-cosmos, on `cosmos_emulator`."""
    transport = cosmos_emulator.async_transport()
    from azure.cosmos.aio import CosmosClient

    client = CosmosClient(cosmos_emulator.endpoint, cosmos_emulator.key, transport=transport)
    yield client
    # In a thread: the test's plugin may keep an event loop for this one.
    closing = threading.Thread(target=lambda: asyncio.run(client.close()))
    closing.start()
    closing.join()
