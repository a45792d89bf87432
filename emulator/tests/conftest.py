"""Every way to reach the emulator: in process and over HTTP, with the async and the sync SDK."""

import os
import uuid

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.aio import CosmosClient as AsyncCosmosClient
from hypothesis import settings

from cosmos_emulator import Emulator, storage
from cosmos_emulator.serving import serving

# The same examples in every run, so that a change is not blamed for a random find. To search:
# HYPOTHESIS_PROFILE=search
settings.register_profile("repeat", derandomize=True)
settings.register_profile("search", derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))


@pytest.fixture
def opened(monkeypatch):
    """The connections to files of data, as emulators open them."""
    connections, open_file = [], storage.open_file

    def noted(path):
        connections.append(open_file(path))
        return connections[-1]

    monkeypatch.setattr(storage, "open_file", noted)
    return connections


@pytest.fixture
def emulator():
    with Emulator() as emulator:
        yield emulator


@pytest.fixture(params=["in process", "http"])
def way(request, emulator):
    """The endpoint that a client connects to, and its transport."""
    if request.param == "in process":
        yield emulator.endpoint, {"transport": emulator.async_transport()}
        return
    with serving(emulator, patience=10) as endpoint:
        yield endpoint, {}


@pytest.fixture
async def client(emulator, way):
    endpoint, options = way
    async with AsyncCosmosClient(endpoint, emulator.key, **options) as client:
        yield client


@pytest.fixture
async def database(client):
    return await client.create_database("db")


@pytest.fixture
async def container(database):
    return await database.create_container("c", partition_key=PartitionKey("/pk"))


@pytest.fixture(params=["in process", "http"])
def sync_client(request, emulator):
    if request.param == "in process":
        with CosmosClient(
            emulator.endpoint, emulator.key, transport=emulator.transport()
        ) as client:
            yield client
        return
    with (
        serving(emulator, patience=10) as endpoint,
        CosmosClient(endpoint, emulator.key) as client,
    ):
        yield client


@pytest.fixture
def sync_container(sync_client):
    database = sync_client.create_database("db")
    return database.create_container("c", partition_key=PartitionKey("/pk"))


@pytest.fixture
def new_container(database):
    """Makes a container with the test's own options."""

    async def make(path="/pk", **options):
        name = f"c-{uuid.uuid4().hex[:8]}"
        return await database.create_container(name, partition_key=PartitionKey(path), **options)

    return make


class Charge:
    """Collects the request charge of a call: `response_hook=charge`."""

    def __call__(self, headers, _body):
        self.value = float(headers["x-ms-request-charge"])
        self.headers = headers


@pytest.fixture
def charge():
    return Charge()
