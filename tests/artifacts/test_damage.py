"""Documents that something else changed: a clear error, never wrong bytes."""

from __future__ import annotations

import resource
import sys

import pytest
from azure.cosmos import CosmosClient

from cosmosservice import DamagedArtifactError
from tests.artifacts.kinds import blob
from tests.artifacts.processes import bytes_of, documents
from tests.support.raw import RawContainer

LARGE = bytes_of("x", 900)


@pytest.fixture
def service(open_artifacts):
    return open_artifacts()


def change(emulator, kind, **fields):
    """Changes the only document of a kind. A field that is None is removed. In the payload of a
    version, only the given fields change."""
    with CosmosClient(
        emulator.endpoint,
        credential=emulator.key,
        transport=emulator.transport(),
        enable_endpoint_discovery=False,
    ) as client:
        proxy = client.get_database_client("adk").get_container_client("artifacts")
        container = RawContainer(proxy, "scope")
        body = container.all(document_type=kind)[0]
        if isinstance(payload := fields.get("payload"), dict):
            fields["payload"] = body["payload"] | payload
        changed = {k: v for k, v in (body | fields).items() if v is not None}
        if fields:
            container.put(changed)
        else:
            container.remove(body)


async def load(service, who):
    return await service.load_artifact(**who, filename="f")


@pytest.mark.parametrize(
    "damage",
    [
        {"data": "AAAA"},
        {"data": "not base64!"},
        {"data": 5},
        {"data": None},
        {"bytes": 49},
        {"sha256": "0" * 64},
        {"part": {"text": "x"}},
        {"part": None},
        {"part": "x"},
    ],
    ids=str,
)
async def test_a_damaged_version_is_reported(service, emulator, who, damage):
    await service.save_artifact(**who, filename="f", artifact=blob(bytes_of("x", 50)))
    change(emulator, "version", **damage)
    with pytest.raises(DamagedArtifactError, match="Version 0"):
        await load(service, who)
    assert await service.list_versions(**who, filename="f") == [0]
    assert await service.save_artifact(**who, filename="f", artifact=blob(b"new")) == 1
    assert (await load(service, who)).inline_data.data == b"new"


@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        ("piece", {"data": "AAAA"}),
        ("piece", {"data": "?"}),
        ("piece", {"data": "A" * 4096}),
        ("piece", {"data": None}),
        ("piece", {}),
        ("version", {"payload": {"digests": "0" * 128}}),
        ("version", {"payload": {"digests": "?"}}),
        ("version", {"payload": {"digests": 5}}),
        ("version", {"payload": {"digest_kind": "blake3"}}),
        ("version", {"payload": {"digest_kind": "md5"}}),
        ("version", {"bytes": 800}),
        ("version", {"bytes": -1}),
        ("version", {"bytes": 10**15}),
        ("version", {"payload": "x"}),
        ("version", {"payload": {"upload": None}}),
        ("version", {"bytes": 10**12, "payload": {"upload": "x", "store": "cosmos",
                                                  "pieces": 10**9, "piece_bytes": 1000}}),
        ("version", {"bytes": 10**10, "payload": {"upload": "x", "store": "cosmos",
                                                  "pieces": 20_000, "piece_bytes": 500_000}}),
    ],
    ids=str,
)  # fmt: skip
async def test_a_damaged_payload_is_reported_and_takes_no_memory(
    service, emulator, who, kind, damage
):
    await service.save_artifact(**who, filename="f", artifact=blob(LARGE))
    change(emulator, kind, **damage)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DamagedArtifactError):
        await load(service, who)
    with pytest.raises(DamagedArtifactError):
        await (await service.open_artifact(**who, filename="f")).read()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * (1 if sys.platform == "darwin" else 1024) < 200 * 1024 * 1024


async def test_metadata_that_is_not_an_object_is_ignored(service, emulator, who):
    await service.save_artifact(**who, filename="f", artifact=blob(b"1"), custom_metadata={"a": 1})
    change(emulator, "version", custom_metadata=[1], created_at="yesterday")
    found = await service.get_artifact_version(**who, filename="f")
    assert found.custom_metadata == {}
    assert found.create_time == documents(emulator, "version")[0]["_ts"]


async def test_a_saver_with_a_wrong_clock_changes_no_time(service, emulator, who):
    await service.save_artifact(**who, filename="f", artifact=blob(b"1"))
    stored = documents(emulator, "version")[0]
    change(emulator, "version", created_at=stored["created_at"] + 86_400)
    found = await service.get_artifact_version(**who, filename="f")
    assert abs(found.create_time - stored["_ts"]) < 60


DAMAGES = [
    ("piece", {}),
    ("piece", {"data": "AAAA"}),
    ("piece", {"data": "A" * 512}),  # of the right length
    ("version", {"payload": {"digests": "0" * 128}}),
    ("version", {"payload": {"upload": None}}),
    ("version", {"payload": {"use": "x"}}),
]


@pytest.mark.parametrize(("kind", "damage"), DAMAGES, ids=str)
async def test_the_same_bytes_saved_again_do_not_rely_on_damaged_ones(
    service, open_artifacts, emulator, who, kind, damage
):
    await service.save_artifact(**who, filename="f", artifact=blob(LARGE))
    change(emulator, kind, **damage)
    for name in ("g", "h", "f"):
        await service.save_artifact(**who, filename=name, artifact=blob(LARGE))
        found = await open_artifacts().load_artifact(**who, filename=name)
        assert found.inline_data.data == LARGE
    assert len({each["payload"].get("upload") for each in documents(emulator, "version")}) <= 2


async def test_a_fork_does_not_mix_a_damaged_payload_with_a_whole_one(
    service, open_artifacts, emulator, who
):
    from cosmosservice import CosmosSessionService

    async with CosmosSessionService(account=service.account) as sessions:
        await sessions.create_session(**who)
        await service.save_artifact(**who, filename="f", artifact=blob(LARGE))
        change(emulator, "piece", data="A" * 512)
        await service.save_artifact(**who, filename="g", artifact=blob(LARGE))
        fork = await sessions.fork_session(**who)
        found = await service.load_artifact(**who | {"session_id": fork.id}, filename="g")
        assert found.inline_data.data == LARGE


@pytest.mark.parametrize("kind", ["version", "piece"])
@pytest.mark.parametrize("damage", [{"entry": 7}, {"document_type": None}], ids=str)
async def test_a_damaged_document_does_not_keep_anything_from_being_erased(
    service, emulator, who, kind, damage
):
    for name in ("f", "g"):
        await service.save_artifact(**who, filename=name, artifact=blob(LARGE))
        await service.save_artifact(**who, filename=f"user:{name}", artifact=blob(b"small"))
    change(emulator, kind, **damage)
    await service.purge_artifacts(app_name=who["app_name"], user_id=who["user_id"])
    kinds = [each.get("document_type") for each in documents(emulator)]
    assert set(kinds) <= {"tombstone", "stub", "upload"}
