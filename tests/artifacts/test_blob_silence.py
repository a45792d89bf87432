"""Blob Storage that takes connections and does not answer, or stops in the middle of an answer."""

from __future__ import annotations

import asyncio

import pytest

from cosmosservice import CosmosArtifactService, UnavailableError
from tests.artifacts.kinds import blob
from tests.artifacts.processes import bytes_of
from tests.support.blob_server import serving

LARGE = bytes_of("large", 5000)
TIMEOUT = 1.0
HANGS = 20 * TIMEOUT  # an operation that does not end by itself

# Within this timeout, the store itself must answer.
pytestmark = pytest.mark.needs("faults")


@pytest.fixture
async def server():
    async with serving() as made:
        yield made


@pytest.fixture
async def service(open_artifacts, server, who):
    # Loads the SDKs, which may take longer than the timeout on a slow machine.
    await open_artifacts(blobs=server.url).list_artifact_keys(**who)
    return open_artifacts(blobs=server.url, timeout=TIMEOUT)


async def save(service, who, data=LARGE, name="f"):
    return await service.save_artifact(**who, filename=name, artifact=blob(data))


async def load(service, who, **options):
    return (await service.load_artifact(**who, filename="f", **options)).inline_data.data


async def read_in_parts(service, who):
    reader = await service.open_artifact(**who, filename="f")
    return b"".join([piece async for piece in reader])


async def save_stream(service, who):
    await service.save_artifact_stream(**who, filename="g", data=[LARGE, b"more"])


OPERATIONS = {
    "load": load,
    "read in parts": read_in_parts,
    "save": lambda service, who: save(service, who, LARGE + b"more", "g"),
    "save the same bytes again": lambda service, who: save(service, who, name="g"),
    "save a stream": save_stream,
    "delete": lambda service, who: service.delete_artifact(**who, filename="f"),
    "purge": lambda service, who: service.purge_artifacts(**who),
    "sweep": lambda service, who: service.sweep(),
}


@pytest.mark.parametrize("mood", ["silent", "stalls"])
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_an_operation_ends_within_its_deadline(service, server, who, mood, operation):
    await save(service, who)
    server.mood, server.requests = mood, []
    with pytest.raises(UnavailableError, match="no answer in time") as raised:
        await asyncio.wait_for(OPERATIONS[operation](service, who), HANGS)
    said = str(raised.value)
    assert "stored" in said or "sending it again is safe" in said
    assert "sig" not in said
    assert len(server.requests) > 1  # a connection that is dead does not use up all of the time

    server.mood = "well"
    if operation in ("delete", "purge"):
        assert await service.list_artifact_keys(**who) == []
        await service.sweep()
        assert server.blobs == {}
        return
    assert await load(service, who) == LARGE
    assert await service.list_artifact_keys(**who) == ["f"]
    await service.sweep()
    assert len(server.blobs) == 1


async def test_lists_need_no_blobs(service, server, who):
    await save(service, who)
    server.mood = "silent"
    assert await service.list_artifact_keys(**who) == ["f"]
    assert await service.list_versions(**who, filename="f") == [0]
    assert (await service.get_artifact_version(**who, filename="f")).version == 0


async def test_a_slow_download_and_a_slow_upload_take_their_time(emulator, server, who):
    service = CosmosArtifactService.embedded(emulator, blobs=server.url, timeout=15 * server.pause)
    data = bytes_of("x", 30_000_000)
    server.mood = "slow"
    assert await save(service, who, data) == 0
    assert await load(service, who) == data
    assert server.requests == ["PUT", "GET"]
    await service.close()
