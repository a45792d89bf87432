"""Large payloads in Blob Storage: the same contract, and none of their bytes in Cosmos DB."""

from __future__ import annotations

import asyncio

import pytest

from cosmosservice import (
    AuthenticationError,
    ConfigurationError,
    ContainerMismatchError,
    CosmosArtifactService,
    CosmosSessionService,
    DamagedArtifactError,
    UnavailableError,
)
from tests.artifacts.kinds import SMALL, blob, text
from tests.artifacts.processes import bytes_of, documents

LARGE = bytes_of("large", 5000)
SIZES = [0, 1, 16, 17, 256, 257, 1023, 1024, 1025, 2048, 2049, 5000]


def names(container):
    return [each.name for each in container.list_blobs()]


async def save(service, who, data, name="f"):
    return await service.save_artifact(**who, filename=name, artifact=blob(data))


async def load(service, who, name="f", **options):
    return (await service.load_artifact(**who, filename=name, **options)).inline_data.data


@pytest.mark.parametrize("size", SIZES)
async def test_bytes_come_back_as_they_were(service, open_artifacts, container, who, size):
    data = bytes_of("x", size)
    assert await save(service, who, data) == 0
    assert await load(open_artifacts(), who) == data
    assert len(names(container)) == (size > SMALL.inline)


async def test_large_text_comes_back_as_text(service, who):
    await service.save_artifact(**who, filename="f", artifact=text("é" * 3000))
    assert await service.load_artifact(**who, filename="f") == text("é" * 3000)


async def test_a_stream_is_one_blob_and_is_read_in_parts(service, open_artifacts, container, who):
    parts = [LARGE[n : n + 700] for n in range(0, len(LARGE), 700)]
    assert await service.save_artifact_stream(**who, filename="f", data=parts) == 0
    assert len(names(container)) == 1
    reader = await open_artifacts().open_artifact(**who, filename="f")
    assert b"".join([piece async for piece in reader]) == LARGE
    assert await reader.read(1000, 100) == LARGE[1000:1100]
    assert await reader.read(4990, 100) == LARGE[4990:]


async def test_the_same_bytes_are_one_blob(service, open_artifacts, container, who):
    await save(service, who, LARGE)
    await save(open_artifacts(), who, LARGE, "g")
    assert len(names(container)) == 1
    await service.delete_artifact(**who, filename="f")
    assert await load(service, who, "g") == LARGE
    await service.delete_artifact(**who, filename="g")
    assert names(container) == []


async def test_savers_at_once_send_their_payload_once(open_artifacts, container, who):
    services = [open_artifacts() for _ in range(3)]
    data = [bytes_of(str(n), 3000) for n in range(9)]
    versions = await asyncio.gather(
        *(save(services[n % 3], who, each) for n, each in enumerate(data))
    )
    assert sorted(versions) == list(range(9))
    assert len(names(container)) == 9
    for version, each in zip(versions, data, strict=True):
        assert await load(services[0], who, version=version) == each


async def test_a_purge_leaves_no_blob(service, container, emulator, who):
    await save(service, who, LARGE)
    await save(service, who, LARGE, "user:g")
    container.upload_blob(names(container)[0] + "0", b"of an uploader that did not know")
    report = await service.purge_artifacts(app_name=who["app_name"], user_id="ann")
    assert (report.artifacts, report.versions, report.payloads) == (2, 2, 2)
    assert names(container) == []
    left = [each for each in documents(emulator) if each.get("status") != "removed"]
    assert {each["document_type"] for each in left} == {"stub", "tombstone"}
    assert "ann" not in str(documents(emulator))


async def test_a_sweep_removes_blobs_without_an_owner_and_no_others(service, container, who):
    await save(service, who, LARGE)
    (kept,) = names(container)
    container.upload_blob(kept + "0", b"left")
    container.upload_blob("0" * 32 + "/1", b"left in a scope that has nothing else")
    container.get_blob_client(kept + "1").stage_block("MQ==", b"never committed")
    report = await service.sweep()
    assert report.pieces == 3
    assert names(container) == [kept]
    uncommitted = [each.name for each in container.list_blobs(include=["uncommittedblobs"])]
    assert uncommitted == [kept]
    assert await load(service, who) == LARGE


async def test_a_sweep_during_an_upload_makes_it_be_sent_again(
    service, open_artifacts, container, emulator, who
):
    """Bytes in memory are not announced, so a sweep may take them for leftovers."""
    other = open_artifacts()
    await save(service, who, b"small")

    swept = []

    async def sweep(_):
        swept.append((await other.sweep()).pieces)

    emulator.faults.call(sweep, when="before", operation="create")
    assert await save(service, who, LARGE) == 1
    assert swept == [1]
    assert await load(service, who) == LARGE
    assert len(names(container)) == 1


async def test_a_changed_blob_is_reported_and_never_returned(service, container, who):
    await save(service, who, LARGE)
    (name,) = names(container)
    changed = LARGE[:-1] + bytes([LARGE[-1] ^ 1])
    for damage in (changed, LARGE[:-1], LARGE[:100], b""):
        container.upload_blob(name, damage, overwrite=True)
        with pytest.raises(DamagedArtifactError):
            await load(service, who)
        reader = await service.open_artifact(**who, filename="f")
        with pytest.raises(DamagedArtifactError):
            await reader.read(4990, 10)
    container.delete_blob(name)
    with pytest.raises(DamagedArtifactError, match="missing"):
        await load(service, who)


@pytest.mark.parametrize("damage", [None, b"", LARGE[:-1], LARGE[:-1] + b"?"], ids=["lost", *"abc"])
async def test_the_same_bytes_saved_again_do_not_rely_on_damaged_ones(
    service, open_artifacts, container, who, damage
):
    await save(service, who, LARGE)
    (first,) = names(container)
    if damage is None:
        container.delete_blob(first)
    else:
        container.upload_blob(first, damage, overwrite=True)
    for name in ("g", "h", "f"):
        await save(service, who, LARGE, name)
        assert await load(open_artifacts(), who, name) == LARGE
    assert len(set(names(container)) - {first}) == 1


@pytest.mark.parametrize("size", [300_000, 50_000_000])
async def test_every_operation_ends_within_its_timeout_while_azurite_is_stopped(
    open_artifacts, azurite, who, size
):
    data = bytes_of("x", size)
    await save(open_artifacts(_sizes=None), who, data)
    service = open_artifacts(_sizes=None, timeout=1.0)
    await save(service, who, data + b"another", "g")
    assert await load(service, who) == data
    operations = [
        lambda: load(service, who),
        lambda: save(service, who, data + b"more", "h"),
        lambda: service.save_artifact_stream(**who, filename="h", data=[data, b"more"]),
        lambda: service.delete_artifact(**who, filename="g"),
        lambda: service.sweep(),
        lambda: service.purge_artifacts(**who),
    ]
    with azurite.stopped():
        for operation in operations:
            with pytest.raises(UnavailableError, match="no answer in time"):
                await asyncio.wait_for(operation(), 20)
    await service.purge_artifacts(**who)
    assert await service.list_artifact_keys(**who) == []


async def test_a_service_without_blobs_says_what_it_needs(service, emulator, who):
    await save(service, who, LARGE)
    plain = CosmosArtifactService.embedded(emulator)
    with pytest.raises(ConfigurationError, match="COSMOSDB_ARTIFACT_BLOBS"):
        await load(plain, who)
    await plain.close()


async def test_a_connection_string_makes_the_container(emulator, azurite, who):
    service = CosmosArtifactService.embedded(
        emulator, blobs=azurite.connection_string, artifact_container=f"a{who['app_name'][4:]}"
    )
    await save(service, who, bytes_of("x", 300_000))
    assert await load(service, who) == bytes_of("x", 300_000)
    await service.close()


async def test_an_identity_that_may_not_write_gets_an_error_and_stores_no_version(
    emulator, azurite, container, who
):
    url = azurite.url(container.container_name, read_only=True)
    service = CosmosArtifactService(
        endpoint="embedded::memory:", blobs=url, _emulator=emulator, _sizes=SMALL
    )
    with pytest.raises(AuthenticationError, match="Storage Blob Data Contributor"):
        await save(service, who, LARGE)
    assert await service.list_artifact_keys(**who) == []
    assert "sig" not in repr(service)
    await service.close()


async def test_a_missing_container_is_reported(emulator, azurite, who):
    service = CosmosArtifactService.embedded(emulator, blobs=azurite.url("missing"))
    with pytest.raises(ContainerMismatchError, match="blob container"):
        await save(service, who, bytes_of("x", 300_000))
    await service.close()


async def test_a_process_without_the_settings_of_blobs_erases_nothing(
    service, emulator, container, who
):
    """It says what is missing, and the session waits for one that has them."""
    sessions, alone = (
        CosmosSessionService(account=service.account),
        CosmosSessionService.embedded(emulator),
    )
    await sessions.create_session(**who)
    await service.save_artifact(**who, filename="f", artifact=blob(LARGE))
    for call in (alone.purge_session(**who), alone.create_session(**who)):
        with pytest.raises(ConfigurationError, match="COSMOSDB_ARTIFACT_BLOBS"):
            await call
    (failed,) = (await alone.purge_deleted()).failed
    assert "COSMOSDB_ARTIFACT_BLOBS" in failed.reason
    assert len(list(container.list_blobs())) == 1
    assert (await sessions.purge_session(**who)).sessions == 1
    assert list(container.list_blobs()) == []
    await alone.close()
