"""Contract tests run once for each artifact service that claims what the test needs.

async def test_…(service, who): …            all services; `who` names a session that nobody uses
@pytest.mark.claims(EXACT)                   only those that claim it
async def test_…(service, store, who): …     `store.open()` is a second process
"""

from __future__ import annotations

import uuid
from functools import partial

import pytest

from tests.artifacts.kinds import SMALL, Store, file_store, kinds, memory_store
from tests.support.cosmos import Cosmos


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "artifact_store" not in metafunc.fixturenames:
        return
    needs = {claim for mark in metafunc.definition.iter_markers("claims") for claim in mark.args}
    able = [kind.name for kind in kinds() if needs <= kind.claims]
    metafunc.parametrize("artifact_store", able, indirect=True)


@pytest.fixture
def connect(cosmos):
    """`connect(**options)`: one more process on the test's store, with small limits."""
    return partial(cosmos.artifacts, _sizes=SMALL)


def make_store(request: pytest.FixtureRequest, cosmos: Cosmos) -> Store:
    from cosmosservice import CosmosArtifactService

    kind = request.param
    if kind == "in_memory":
        return memory_store()
    if kind == "file":
        return file_store(request.getfixturevalue("tmp_path") / "artifacts")
    if kind == "http":
        endpoint, key = request.getfixturevalue("http_emulator")
        return Store(
            partial(CosmosArtifactService, endpoint=endpoint, credential=key, database="tests")
        )
    return Store(partial(cosmos.artifacts, _sizes=SMALL) if kind == "small" else cosmos.artifacts)


@pytest.fixture
async def artifact_store(request: pytest.FixtureRequest, cosmos: Cosmos):
    made = make_store(request, cosmos)
    yield made
    await made.close()


@pytest.fixture
def service(artifact_store):
    return artifact_store.open()


@pytest.fixture
async def open_artifacts(connect, cosmos):
    """`open_artifacts(**options)`: one more process on the test's store, with small limits."""
    yield connect
    await cosmos.close()


@pytest.fixture
def who() -> dict[str, str]:
    """A session that nothing else uses: stores may be shared and outlive the test."""
    return {"app_name": f"app_{uuid.uuid4().hex[:12]}", "user_id": "ann", "session_id": "s"}
