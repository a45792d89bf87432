"""A fork has blobs of its own, which are copied inside the storage account."""

from __future__ import annotations

import pytest

from cosmosservice import CosmosSessionService, DamagedArtifactError
from cosmosservice.artifacts.keys import Scope
from cosmosservice.hosting.operation import Unbounded
from tests.artifacts.kinds import blob
from tests.artifacts.processes import bytes_of

LARGE = bytes_of("large", 5000)


@pytest.mark.parametrize("by", ["signature", "key"])
async def test_a_fork_has_blobs_of_its_own(open_artifacts, container, azurite, by):
    options = {}
    if by == "key":
        options = {
            "blobs": azurite.connection_string,
            "artifact_container": container.container_name,
        }
    service = open_artifacts(**options)
    sessions = CosmosSessionService(account=service.account)
    ann = {"app_name": "app", "user_id": "ann"}
    for name in ("f", "g"):
        await service.save_artifact(
            **ann, session_id="s", filename=name, artifact=blob(LARGE + name.encode())
        )
    await sessions.create_session(**ann, session_id="s")
    await sessions.fork_session(**ann, session_id="s", new_user_id="bob", new_session_id="fork")
    await sessions.purge_user(**ann)
    other, bob = (
        open_artifacts(**options),
        {"app_name": "app", "user_id": "bob", "session_id": "fork"},
    )
    for name in ("f", "g"):
        assert await other.load_artifact(**bob, filename=name) == blob(LARGE + name.encode())
    assert len(list(container.list_blobs())) == 2
    assert (await service.sweep()).pieces == 0
    await sessions.purge_session(**bob)
    assert list(container.list_blobs()) == []


async def test_a_copy_that_is_there_is_not_made_again(service, container):
    """Two processes complete the same fork."""
    source, target = Scope("app", "ann", "s"), Scope("app", "ann", "fork")

    async def copy(store):
        bodies = store.payloads.bodies_of("blobs")
        await bodies.put_all(source, "one", LARGE)
        for _ in range(2):
            await bodies.copy(source, "one", target, "two", [len(LARGE)])
        return await bodies.get(target, "two", 0, 0, len(LARGE))

    assert await service.in_store(Unbounded("test"), copy) == LARGE


async def test_a_blob_that_is_missing_is_missing_in_the_fork_too(service, container):
    sessions = CosmosSessionService(account=service.account)
    ann = {"app_name": "app", "user_id": "ann"}
    await service.save_artifact(**ann, session_id="s", filename="f", artifact=blob(LARGE))
    await service.save_artifact(**ann, session_id="s", filename="g", artifact=blob(b"small"))
    await sessions.create_session(**ann, session_id="s")
    for each in container.list_blobs():
        container.delete_blob(each.name)
    fork = await sessions.fork_session(**ann, session_id="s")
    theirs = ann | {"session_id": fork.id}
    assert await service.load_artifact(**theirs, filename="g") == blob(b"small")
    with pytest.raises(DamagedArtifactError, match="its blob is missing"):
        await service.load_artifact(**theirs, filename="f")
