"""`cosmosservice doctor` looks at the blob container too."""

from __future__ import annotations

import asyncio

import pytest

from cosmosservice import CosmosArtifactService, CosmosSessionService
from cosmosservice.account.settings import Settings
from cosmosservice.cli.doctor import examine


@pytest.fixture
def finding(tmp_path):
    """What the doctor reports about the blobs, with this setting."""
    path = str(tmp_path / "store.db")

    async def prepare():
        async with CosmosSessionService.embedded(path) as sessions:
            await sessions.list_sessions(app_name="a")
        async with CosmosArtifactService.embedded(path) as artifacts:
            await artifacts.list_artifact_keys(app_name="a", user_id="u")

    async def look(blobs):
        settings = Settings.from_env(
            env={"COSMOSDB_ENDPOINT": f"embedded:{path}", "COSMOSDB_ARTIFACT_BLOBS": blobs}
        )
        return [each async for each in examine(settings)][-1]

    asyncio.run(prepare())
    return lambda blobs: asyncio.run(look(blobs))


def test_a_container_that_can_be_used_is_ok(finding, azurite, container):
    found = finding(azurite.url(container.container_name))
    assert (found.status, found.check) == ("ok", "blobs of artifacts")
    assert list(container.list_blobs()) == []


def test_an_identity_that_may_not_write_learns_which_role_is_missing(finding, azurite, container):
    found = finding(azurite.url(container.container_name, read_only=True))
    assert found.status == "fail"
    assert "Storage Blob Data Contributor" in found.advice


def test_a_container_that_is_not_there_fails(finding, azurite):
    assert finding(azurite.url("missing")).status == "fail"
