"""Artifacts in parts: written from a stream, read in pieces, with little memory."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import tracemalloc

import pytest
from google.adk.errors.input_validation_error import InputValidationError

from cosmosservice import CosmosArtifactService, StorageError
from tests.artifacts.kinds import blob, refer, text
from tests.artifacts.processes import bytes_of, documents, garbage

SIZES = [0, 1, 16, 17, 255, 256, 257, 383, 384, 385, 767, 768, 769, 3000]
# 100 MB take a while. `make artifacts-matrix` writes and reads that much.
MEGABYTES = int(os.environ.get("ARTIFACT_MEGABYTES", "6"))


@pytest.fixture
def service(open_artifacts):
    return open_artifacts()


async def in_parts(data, size):
    for start in range(0, len(data), size):
        yield data[start : start + size]
        await asyncio.sleep(0)


@pytest.mark.parametrize("size", SIZES)
async def test_a_stream_is_stored_and_read_as_it_was(service, open_artifacts, who, size):
    data = bytes_of("x", size)
    version = await service.save_artifact_stream(
        **who,
        filename="f",
        data=in_parts(data, 100),
        mime_type="video/mp4",
        display_name="Film",
        custom_metadata={"k": 1},
    )
    assert version == 0
    part = await open_artifacts().load_artifact(**who, filename="f")
    assert part == blob(data, "video/mp4", display_name="Film")
    reader = await open_artifacts().open_artifact(**who, filename="f")
    assert (reader.version, reader.size, reader.mime_type) == (0, size, "video/mp4")
    assert b"".join([piece async for piece in reader]) == data
    for offset, length in [(0, 10), (300, 200), (size, 1), (0, None), (size // 2, 10_000)]:
        end = size if length is None else offset + length
        assert await reader.read(offset, length) == data[offset:end]


@pytest.mark.parametrize(
    "source",
    [lambda data: io.BytesIO(data), lambda data: [data], lambda data: in_parts(data, 1000)],
    ids=["a file", "a list", "a generator"],
)
async def test_a_stream_may_be_many_things(service, who, source):
    data = bytes_of("x", 900)
    await service.save_artifact_stream(**who, filename="f", data=source(data))
    found = await service.load_artifact(**who, filename="f")
    assert found == blob(data, "application/octet-stream")


@pytest.mark.parametrize("wrong", [b"bytes", "text", ["text"]])
async def test_an_object_that_is_not_a_stream_is_refused(service, emulator, who, wrong):
    with pytest.raises(InputValidationError):
        await service.save_artifact_stream(**who, filename="f", data=wrong)
    assert await service.list_artifact_keys(**who) == []


async def test_a_stream_that_breaks_leaves_nothing(service, cosmos, who):
    async def breaking():
        yield bytes_of("x", 900)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="disk"):
        await service.save_artifact_stream(**who, filename="f", data=breaking())
    assert documents(cosmos) == []


async def test_the_same_bytes_are_stored_once_in_a_session(service, open_artifacts, cosmos, who):
    data = bytes_of("x", 900)
    await service.save_artifact(**who, filename="a", artifact=blob(data))
    await open_artifacts().save_artifact(**who, filename="b", artifact=blob(data, "image/gif"))
    await service.save_artifact(**who, filename="a", artifact=blob(data))
    assert len(documents(cosmos, "piece")) == 3
    await open_artifacts().save_artifact_stream(**who, filename="c", data=in_parts(data, 77))
    assert len(documents(cosmos, "piece")) == 6  # a stream has been sent when it is known
    assert documents(cosmos, "upload") == []
    assert garbage(cosmos) == []


async def test_bytes_that_are_deleted_while_they_are_saved_again_are_stored_again(
    service, open_artifacts, emulator, who
):
    data, other = bytes_of("x", 900), open_artifacts()
    await service.save_artifact(**who, filename="a", artifact=blob(data))
    deleted = []

    async def delete(_):
        await other.delete_artifact(**who, filename="a")
        deleted.append(len(documents(emulator, "piece")))

    # The pieces have been read, and the announcement of another upload is withdrawn.
    emulator.faults.call(delete, when="before", operation="delete")
    assert await service.save_artifact(**who, filename="b", artifact=blob(data)) == 0
    assert deleted == [0]
    assert (await other.load_artifact(**who, filename="b")).inline_data.data == data
    assert garbage(emulator) == []


async def test_a_reference_is_read_in_parts_too(service, who):
    data = bytes_of("x", 900)
    await service.save_artifact(**who, filename="a", artifact=blob(data))
    uri = f"artifact://apps/{who['app_name']}/users/ann/sessions/s/artifacts/a/versions/0"
    await service.save_artifact(**who, filename="r", artifact=refer(uri))
    reader = await service.open_artifact(**who, filename="r")
    assert await reader.read(100, 3) == data[100:103]


async def test_what_is_not_there_or_has_no_bytes_cannot_be_read(service, who):
    assert await service.open_artifact(**who, filename="f") is None
    await service.save_artifact(**who, filename="f", artifact=blob(b"", "application/octet-stream"))
    assert await service.open_artifact(**who, filename="f") is None
    await service.save_artifact(**who, filename="f", artifact=refer("https://example.com/x"))
    with pytest.raises(InputValidationError, match="load_artifact"):
        await service.open_artifact(**who, filename="f")
    await service.save_artifact(**who, filename="f", artifact=text("é"))
    assert await (await service.open_artifact(**who, filename="f")).read() == "é".encode()


async def test_reading_what_is_deleted_meanwhile_says_so(service, who):
    await service.save_artifact(**who, filename="f", artifact=blob(bytes_of("x", 2000)))
    reader = await service.open_artifact(**who, filename="f")
    assert await reader.read(0, 10)
    await service.delete_artifact(**who, filename="f")
    with pytest.raises(StorageError, match="deleted while it was read"):
        await reader.read(1900, 10)


async def test_large_artifacts_take_little_memory(emulator, who):
    """Real sizes: pieces of 384 KB. The emulator itself holds the stored bytes."""
    service = CosmosArtifactService.embedded(emulator)
    pieces, piece = MEGABYTES * 8, 128 * 1024
    wanted = hashlib.sha256()

    async def source():
        for number in range(pieces):
            made = number.to_bytes(8, "big") * (piece // 8)
            wanted.update(made)
            yield made

    await service.list_artifact_keys(**who)
    tracemalloc.start()
    await service.save_artifact_stream(**who, filename="f", data=source())
    saved = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    reader = await service.open_artifact(**who, filename="f")
    found = hashlib.sha256()
    async for each in reader:
        found.update(each)
    read = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    await service.close()
    assert reader.size == pieces * piece
    assert found.digest() == wanted.digest()
    # A few pieces, each in several forms: bytes, text, document, request.
    assert max(saved, read) < 40 * 1024 * 1024
