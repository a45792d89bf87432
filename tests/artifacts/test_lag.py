"""Lagging replicas: one process saves, another one deletes, erases and loads."""

from __future__ import annotations

import math

import pytest

from cosmos_emulator import Emulator
from cosmos_emulator.replicas import Replicas
from cosmosservice import CosmosArtifactService
from tests.artifacts.kinds import SMALL, Store, blob
from tests.artifacts.processes import bytes_of, content

WHO = {"app_name": "app", "user_id": "ann", "session_id": "s"}


@pytest.fixture
def lagging():
    """An account whose replicas show only what a client's session token requires."""
    with Emulator(replicas=Replicas(lag={"artifacts": math.inf}), partitions=3) as emulator:
        yield emulator


@pytest.fixture
async def open_artifacts(lagging):
    store = Store(
        lambda: CosmosArtifactService(endpoint="embedded::memory:", _emulator=lagging, _sizes=SMALL)
    )
    yield store.open
    await store.close()


@pytest.fixture(params=[200, 900], ids=["with a header", "in pieces"])
def large(request):
    return bytes_of("large", request.param)


async def save(service, data, name="f"):
    return await service.save_artifact(**WHO, filename=name, artifact=blob(data))


async def test_savers_do_not_take_each_others_numbers(large, open_artifacts):
    one, two = open_artifacts(), open_artifacts()
    assert [await save(one, b"1"), await save(two, b"2"), await save(one, large)] == [0, 1, 2]
    assert await save(open_artifacts(), large) == 3


async def test_a_version_that_somebody_named_is_found(large, open_artifacts):
    await save(open_artifacts(), large)
    found = await open_artifacts().load_artifact(**WHO, filename="f", version=0)
    assert found.inline_data.data == large


async def test_a_delete_sees_what_others_saved(large, open_artifacts, lagging):
    await save(open_artifacts(), large)
    await open_artifacts().delete_artifact(**WHO, filename="f")
    assert content(lagging) == []
    assert await save(open_artifacts(), large) == 0


async def test_a_purge_of_a_session_leaves_nothing(large, open_artifacts, lagging):
    one = open_artifacts()
    await save(one, large)
    await save(one, b"small", "g")
    report = await open_artifacts().purge_artifacts(**WHO)
    assert (report.artifacts, report.versions) == (2, 2)
    assert report.payloads == (len(large) > SMALL.inline)
    assert content(lagging) == []


async def test_a_purge_of_a_user_leaves_nothing_in_any_session(large, open_artifacts, lagging):
    one = open_artifacts()
    await save(one, large)
    await save(one, large, "user:g")
    report = await open_artifacts().purge_artifacts(app_name="app", user_id="ann")
    assert report.versions == 2
    assert content(lagging) == []


async def test_a_sweep_takes_nothing_that_it_does_not_see(large, open_artifacts):
    one = open_artifacts()
    await save(one, large)
    await open_artifacts().sweep()
    found = await one.load_artifact(**WHO, filename="f")
    assert found.inline_data.data == large
