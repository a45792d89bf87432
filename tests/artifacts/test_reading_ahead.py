"""What a process has seen of a name makes its next load and save faster, and never wrong."""

from __future__ import annotations

import asyncio

import pytest

from cosmosservice.artifacts.bodies import BLOBS, MissingPiece
from cosmosservice.artifacts.digests import BLAKE3
from cosmosservice.artifacts.stores import ArtifactStores
from cosmosservice.errors import DamagedArtifactError
from tests.artifacts.kinds import blob
from tests.artifacts.processes import bytes_of

ONE, TWO = bytes_of("one", 1000), bytes_of("two", 1100)


class Shelf:
    """Blobs in memory, with the reads that were sent."""

    name = BLOBS
    digest = BLAKE3
    piece_bytes = 1024
    run = 8

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.read: list[str] = []
        self.begun = asyncio.Event()

    async def put_all(self, scope, upload, data):
        self.blobs[upload] = data

    async def get(self, scope, upload, number, start, limit):
        self.read.append(upload)
        self.begun.set()
        if upload not in self.blobs:
            raise MissingPiece("its blob is missing")
        return self.blobs[upload][start : start + limit]

    async def remove(self, scope, upload, pieces=None):
        return int(self.blobs.pop(upload, None) is not None)


@pytest.fixture
def shelf(monkeypatch):
    made = Shelf()

    async def open_blobs(self, where, connection, *, ensure):
        return made

    monkeypatch.setattr(ArtifactStores, "_open_blobs", open_blobs)
    return made


@pytest.fixture
def open_here(shelf, open_artifacts):
    return lambda: open_artifacts(blobs="https://example.invalid/artifacts")


async def save(service, who, data):
    return await service.save_artifact(**who, filename="f", artifact=blob(data))


async def load(service, who):
    found = await service.load_artifact(**who, filename="f")
    return None if found is None else found.inline_data.data


async def test_the_blob_is_read_while_the_version_is_asked_for(shelf, open_here, emulator, who):
    async with open_here() as service:
        await save(service, who, ONE)
        emulator.faults.delay(60, operation="query")  # the version
        loading = asyncio.create_task(load(service, who))
        await asyncio.wait_for(shelf.begun.wait(), 10)
        loading.cancel()
        await asyncio.gather(loading, return_exceptions=True)
        emulator.faults.clear()
        shelf.read.clear()
        assert await load(service, who) == ONE
        assert len(shelf.read) == 1


async def test_a_new_version_of_another_process_is_loaded(shelf, open_here, who):
    service, other = open_here(), open_here()
    await save(service, who, ONE)
    await save(other, who, TWO)
    assert await load(service, who) == TWO
    assert sorted(set(shelf.read)) == sorted(shelf.blobs)  # the first one in vain
    shelf.read.clear()
    assert await load(service, who) == TWO
    assert len(shelf.read) == 1


async def test_what_another_process_has_deleted_is_not_loaded(shelf, open_here, who):
    service, other = open_here(), open_here()
    await save(service, who, ONE)
    assert await load(service, who) == ONE
    await other.delete_artifact(**who, filename="f")
    assert await load(service, who) is None
    await save(other, who, TWO)
    assert await load(service, who) == TWO


async def test_a_blob_that_is_damaged_later_is_reported(shelf, open_here, who):
    service = open_here()
    await save(service, who, ONE)
    assert await load(service, who) == ONE
    for upload in shelf.blobs:
        shelf.blobs[upload] = ONE[:-1] + b"?"
    with pytest.raises(DamagedArtifactError):
        await load(service, who)


async def test_a_chosen_version_is_not_read_ahead(shelf, open_here, who):
    service = open_here()
    await save(service, who, ONE)
    await save(service, who, TWO)
    found = await service.load_artifact(**who, filename="f", version=0)
    assert found.inline_data.data == ONE
    assert len(shelf.read) == 1


@pytest.mark.parametrize("data", [b"small", ONE], ids=["in the document", "in a blob"])
async def test_a_save_after_a_load_finds_its_number_at_once(open_here, emulator, who, data):
    first, second = open_here(), open_here()
    await save(first, who, data)
    await save(first, who, data)
    assert await load(second, who) == data
    emulator.clear_requests()
    assert await save(second, who, b"new") == 2
    sent = [each.operation for each in emulator.requests if each.resource == "docs"]
    assert sent == ["create"]
