"""Deleting, erasing and sweeping: what is left in the store, and what is not."""

from __future__ import annotations

import asyncio

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from cosmosservice import CosmosAccount, CosmosArtifactService, CosmosSessionService
from cosmosservice.errors import ContainerMismatchError, StorageError, TooLargeError
from tests.artifacts.kinds import blob, text
from tests.artifacts.processes import bytes_of, content, documents, garbage

LARGE, OTHER = bytes_of("large", 900), bytes_of("other", 800)
DAY = 24 * 3600


@pytest.fixture
def service(open_artifacts):
    return open_artifacts()


async def save(service, who, data, name="f"):
    return await service.save_artifact(**who, filename=name, artifact=blob(data))


async def test_a_delete_leaves_nothing_of_the_content(service, cosmos, who):
    await save(service, who, LARGE)
    await service.save_artifact(**who, filename="f", artifact=text("a secret word"))
    await service.delete_artifact(**who, filename="f")
    assert content(cosmos) == []
    left = str(documents(cosmos))
    assert "ann" not in left
    assert who["app_name"] not in left


async def test_what_a_delete_leaves_expires_or_is_swept(service, emulator, who):
    await save(service, who, LARGE)
    await service.delete_artifact(**who, filename="f")
    emulator.clock.advance(31 * DAY)
    report = await service.sweep()
    assert report.names == 1
    assert documents(emulator) == []
    assert await save(service, who, LARGE) == 0


async def test_an_old_saver_does_not_bring_back_what_was_deleted(service, open_artifacts, who):
    """It knows version 2, and returns after others have deleted all versions."""
    for _ in range(3):
        await save(service, who, b"old")
    other = open_artifacts()
    await other.delete_artifact(**who, filename="f")
    assert await save(service, who, b"new") == 0
    assert await other.list_versions(**who, filename="f") == [0]
    await service.delete_artifact(**who, filename="f")
    assert [await save(other, who, b"newer") for _ in range(2)] == [0, 1]
    assert await save(service, who, b"newest") == 2


async def test_a_purge_of_a_session_erases_it_and_nothing_else(service, cosmos, who):
    other = who | {"session_id": "other"}
    for scope in (who, other):
        await save(service, scope, LARGE)
        await save(service, scope, b"small", "g")
    await save(service, who, LARGE, "user:h")
    report = await service.purge_artifacts(**who)
    assert (report.artifacts, report.versions, report.payloads) == (2, 2, 1)
    assert await service.list_artifact_keys(**who) == ["user:h"]
    assert await service.list_artifact_keys(**other) == ["f", "g", "user:h"]
    assert {each.get("session_id") for each in content(cosmos)} == {"other", None}


async def test_a_purge_of_a_user_erases_every_session(service, cosmos, who):
    whose = {"app_name": who["app_name"], "user_id": "ann"}
    for session in ("s", "t"):
        await save(service, who | {"session_id": session}, LARGE)
    await save(service, who, OTHER, "user:h")
    stranger = who | {"user_id": "bob"}
    await save(service, stranger, b"kept")
    report = await service.purge_artifacts(**whose)
    assert (report.artifacts, report.versions, report.payloads) == (3, 3, 3)
    assert {each["user_id"] for each in content(cosmos)} == {"bob"}
    again = await service.purge_artifacts(**whose)
    assert (again.artifacts, again.versions, again.payloads) == (0, 0, 0)


async def test_a_purge_takes_uploads_under_way_and_their_save_says_so(service, cosmos, who):
    async def slow():
        yield OTHER
        report = await service.purge_artifacts(**who)
        assert report.payloads == 1
        yield OTHER

    with pytest.raises(StorageError, match="Nothing was stored"):
        await service.save_artifact_stream(**who, filename="f", data=slow())
    assert await service.list_artifact_keys(**who) == []
    await service.purge_artifacts(**who)
    assert content(cosmos) == []
    assert [each["app_name"] for each in documents(cosmos, "upload")] == [""]


async def test_a_sweep_takes_uploads_that_were_given_up_and_no_others(
    service, open_artifacts, emulator, who
):
    for age in range(2):  # one from yesterday, one from today
        other = open_artifacts()
        emulator.faults.fail(400, operation="batch", times=None)
        emulator.faults.fail(400, operation="replace", times=None)
        with pytest.raises(StorageError):
            await save(other, who, bytes_of(str(age), 900))
        emulator.faults.clear()
        emulator.clock.advance(0 if age else DAY + 60)
    await save(service, who, LARGE)
    before = len(documents(emulator, "piece"))
    report = await service.sweep()
    assert report.pieces == 3
    assert before - len(documents(emulator, "piece")) == 3
    assert garbage(emulator) == ["uploading"]
    assert (await service.load_artifact(**who, filename="f")).inline_data.data == LARGE


async def test_a_long_upload_is_not_given_up(service, emulator, who, monkeypatch):
    monkeypatch.setattr("cosmosservice.artifacts.payloads._RENEWAL_SECONDS", 0)

    async def slow():
        for _ in range(4):
            yield bytes_of("x", 400)
            emulator.clock.advance(DAY - 60)

    assert await service.save_artifact_stream(**who, filename="f", data=slow()) == 0
    await service.sweep()
    assert len((await service.load_artifact(**who, filename="f")).inline_data.data) == 1600


async def test_an_upload_that_expired_says_so_and_stores_nothing(service, emulator, who):
    async def slow():
        yield bytes_of("x", 900)
        emulator.clock.advance(DAY + 60)

    with pytest.raises(StorageError, match="Nothing was stored"):
        await service.save_artifact_stream(**who, filename="f", data=slow())
    assert await service.list_artifact_keys(**who) == []


@pytest.mark.needs("conditional batches")
async def test_savers_and_deleters_at_once(open_artifacts, cosmos, who):
    services = [open_artifacts() for _ in range(3)]
    data = [bytes_of(str(n % 4), 900 if n % 2 else 40) for n in range(24)]

    async def work(n):
        if n % 6 == 5:
            await services[n % 3].delete_artifact(**who, filename="f")
        else:
            await save(services[n % 3], who, data[n])

    await asyncio.gather(*(work(n) for n in range(24)))
    versions = await services[0].list_versions(**who, filename="f")
    assert versions == list(range(len(versions)))
    for version in versions:
        found = await services[1].load_artifact(**who, filename="f", version=version)
        assert found.inline_data.data in data
    await services[0].sweep()
    assert [each for each in garbage(cosmos) if each != "uploading"] == []


async def test_metadata_that_is_too_large_is_refused(service, cosmos, who):
    with pytest.raises(TooLargeError, match="Nothing was stored"):
        await service.save_artifact(
            **who, filename="f", artifact=text("x"), custom_metadata={"k": "x" * 1_000_000}
        )
    assert documents(cosmos) == []


async def test_requests_of_each_operation(emulator, who):
    """A small save and a small load are one request each."""
    charges = []
    service = CosmosArtifactService.embedded(emulator, on_request_charge=charges.append)

    async def sent(work):
        charges.clear()
        await work
        return [each.request for each in charges]

    async def keys():
        await service.list_artifact_keys(**who)

    await keys()
    await service.load_artifact(**who, filename="none", version=0)  # reads and probes
    assert await sent(save(service, who, b"1")) == ["create"]
    assert await sent(save(service, who, b"2")) == ["create"]
    assert await sent(service.load_artifact(**who, filename="f")) == ["query"]
    assert await sent(service.load_artifact(**who, filename="f", version=0)) == ["query"]
    assert await sent(keys()) == ["query", "query"]
    medium = bytes_of("x", 256 * 1024)
    assert await sent(save(service, who, medium, "g")) == ["batch", "replace"]
    assert await sent(service.load_artifact(**who, filename="g")) == ["query"]
    large = bytes_of("y", 500_000)
    assert await sent(save(service, who, large)) == [
        "query", "create", "create", "create", "batch", "replace",
    ]  # fmt: skip
    assert {each.operation for each in charges} == {"save_artifact"}
    assert sorted(await sent(save(service, who, large, "g"))) == [
        "create", "create", "delete", "query", "query", "read", "read",
    ]  # fmt: skip
    assert await sent(service.load_artifact(**who, filename="g")) == ["query", "read", "read"]
    await service.close()


async def test_what_lists_and_descriptions_cost_does_not_depend_on_the_payload(emulator, who):
    """Of payloads in version documents, only loads read any."""
    charges = []
    service = CosmosArtifactService.embedded(emulator, on_request_charge=charges.append)

    async def cost(work):
        charges.clear()
        await work
        return sum(each.request_units for each in charges)

    found = {}
    for size in (16, 256):
        session = who | {"session_id": str(size)}
        for name in "abcdefgh":
            await save(service, session, bytes_of(name, size * 1024), name)
        found[size] = [
            await cost(service.list_artifact_keys(**session)),
            await cost(service.list_artifact_versions(**session, filename="a")),
            await cost(service.get_artifact_version(**session, filename="a")),
            await cost(service.load_artifact(**session, filename="a")),
        ]
    assert all(units < 7 for units in found[256][:3])
    assert all(units < 20 for units in found[16][:3])
    assert found[256][3] > 25
    await service.close()


async def test_a_container_without_the_unique_key_is_refused(emulator, who):
    async with CosmosSessionService.embedded(emulator) as sessions:
        await sessions.list_sessions(app_name="a")
    with CosmosClient(emulator.endpoint, emulator.key, transport=emulator.transport()) as client:
        client.get_database_client("adk").create_container("artifacts", PartitionKey("/scope"))
    service = CosmosArtifactService.embedded(emulator)
    with pytest.raises(ContainerMismatchError, match="unique key /claim"):
        await save(service, who, b"1")
    await service.close()


async def test_services_share_an_account(emulator, who):
    async with CosmosAccount.embedded(emulator) as account:
        sessions = CosmosSessionService(account=account)
        artifacts = CosmosArtifactService(account=account)
        await sessions.create_session(**who)
        await save(artifacts, who, LARGE)
        assert await artifacts.list_artifact_keys(**who) == ["f"]
    connects = [each for each in emulator.requests if each.resource == ""]
    assert len(connects) <= 3


async def test_embedded_in_a_file_it_survives_its_process(tmp_path, who):
    path = str(tmp_path / "agent.db")
    async with CosmosArtifactService.embedded(path) as service:
        await save(service, who, bytes_of("x", 500_000))
    async with CosmosArtifactService.embedded(path) as service:
        found = await service.load_artifact(**who, filename="f")
    assert found.inline_data.data == bytes_of("x", 500_000)
