"""`make test-blobs`: the artifact service with large payloads in Azurite."""

from __future__ import annotations

import uuid
from functools import partial

import pytest

from tests.artifacts.kinds import SMALL, Store
from tests.blobs.azurite import running


@pytest.fixture(scope="session")
def azurite(tmp_path_factory):
    with running(tmp_path_factory.mktemp("azurite")) as found:
        yield found


@pytest.fixture
def container(azurite):
    """A blob container for one test, made with the plain SDK."""
    made = azurite.container()
    yield made
    made.close()


@pytest.fixture
async def open_artifacts(emulator, azurite, container):
    """`open_artifacts(**options)`: one more process, with payloads in that container."""
    from cosmosservice import CosmosArtifactService

    store = Store(
        partial(
            CosmosArtifactService,
            endpoint="embedded::memory:",
            blobs=azurite.url(container.container_name),
            _emulator=emulator,
            _sizes=SMALL,
        )
    )
    yield store.open
    await store.close()


@pytest.fixture
def service(open_artifacts):
    return open_artifacts()


@pytest.fixture
def who():
    return {"app_name": f"app_{uuid.uuid4().hex[:12]}", "user_id": "ann", "session_id": "s"}
