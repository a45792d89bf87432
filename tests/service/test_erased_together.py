"""One erasure: a purge includes memories and artifacts."""

from __future__ import annotations

import datetime

import pytest
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from cosmosservice import (
    CosmosAccount,
    CosmosArtifactService,
    CosmosMemoryService,
    CosmosSessionService,
    UnavailableError,
)
from tests.support.adk import event
from tests.support.raw import raw_client

WHO = {"app_name": "app", "user_id": "user"}
SECRET = "the-secret-word"


async def fill(account, session_id, **who):
    names = WHO | who
    sessions = CosmosSessionService(account=account)
    session = await sessions.create_session(**names, session_id=session_id)
    await sessions.append_event(session, event(SECRET))
    memory = CosmosMemoryService(account=account)
    await memory.add_session_to_memory(session)
    artifacts = CosmosArtifactService(account=account)
    part = types.Part.from_bytes(data=SECRET.encode(), mime_type="text/plain")
    await artifacts.save_artifact(
        **names, session_id=session_id, filename="secret.txt", artifact=part
    )
    return sessions, memory, artifacts


def text_memory(text):
    return MemoryEntry(content=types.Content(parts=[types.Part(text=text)]))


def everything(emulator):
    """All documents, by container."""
    database = raw_client(emulator).get_database_client("adk")
    return {
        each["id"]: list(database.get_container_client(each["id"]).read_all_items())
        for each in database.list_containers()
    }


async def what_is_left(sessions, memory, artifacts, session_id, **who):
    names = WHO | who
    found = await memory.search_memory(**names, query=SECRET)
    keys = await artifacts.list_artifact_keys(**names, session_id=session_id)
    return len(found.memories), keys


@pytest.mark.parametrize("way", ["session", "user", "deleted"])
async def test_memories_and_artifacts_go_with_their_session(emulator, way):
    async with CosmosAccount.embedded(emulator) as account:
        await fill(account, "kept", user_id="other")
        services = await fill(account, "s")
        sessions = services[0]
        if way == "session":
            report = await sessions.purge_session(**WHO, session_id="s")
        elif way == "user":
            report = await sessions.purge_user(**WHO, include_state=True)
        else:
            await sessions.delete_session(**WHO, session_id="s")
            report = await sessions.purge_deleted(older_than=datetime.timedelta(0))
        assert (report.sessions, report.dependants > 0) == (1, True)
        assert await what_is_left(*services, "s") == (0, [])
        assert await what_is_left(*services, "kept", user_id="other") == (1, ["secret.txt"])


@pytest.mark.parametrize("container", ["memories", "artifacts", "events"])
async def test_an_interrupted_purge_is_finished_by_the_next_call(emulator, container):
    async with CosmosAccount.embedded(emulator) as account:
        services = await fill(account, "s")
        sessions = services[0]
        await sessions.delete_session(**WHO, session_id="s")
        emulator.clock.advance(40 * 24 * 3600)
        await sessions.list_sessions(**WHO)  # its answer tells the time
        emulator.faults.fail(403, container=container, operation="replace")  # a probe
        failed = await sessions.purge_deleted()
        assert (failed.sessions, len(failed.failed)) == (0, 1)
        report = await sessions.purge_deleted()
        assert (report.sessions, report.dependants > 0) == (1, True)
        assert await what_is_left(*services, "s") == (0, [])
        again = await sessions.purge_deleted()
        assert (again.sessions, again.dependants) == (0, 0)


async def test_what_cannot_be_erased_of_a_user_does_not_keep_the_rest(emulator):
    async with CosmosAccount.embedded(emulator) as account:
        sessions, memory, artifacts = await fill(account, "s")
        await memory.add_memory(**WHO, memories=[text_memory(SECRET)])
        part = types.Part.from_bytes(data=SECRET.encode(), mime_type="text/plain")
        await artifacts.save_artifact(**WHO, filename="user:secret.txt", artifact=part)
        await sessions.purge_session(**WHO, session_id="s")
        emulator.faults.fail(403, container="memories", operation="replace", times=None)  # a probe
        report = await sessions.purge_user(**WHO)
        assert [each.session_id for each in report.failed] == ["s", None]
        emulator.faults.clear()
        assert await what_is_left(sessions, memory, artifacts, "s") == (1, [])
        assert (await sessions.purge_user(**WHO)).failed == ()
        assert await what_is_left(sessions, memory, artifacts, "s") == (0, [])


async def test_no_document_holds_what_was_erased(emulator):
    async with CosmosAccount.embedded(emulator) as account:
        (sessions, *_) = services = await fill(account, "s")
        await sessions.purge_user(**WHO, include_state=True)
        assert services
    stored = everything(emulator)
    assert stored.keys() == {"sessions", "events", "memories", "artifacts"}
    assert SECRET not in str(stored)


async def test_a_field_that_nobody_knows_does_not_outlive_a_purge(open_service, raw):
    service = open_service()
    session = await service.create_session(**WHO, session_id="s")
    await service.append_event(session, event("text"))
    await service.flush()
    raw.sessions.put(raw.sessions.one(status="active") | {"new": SECRET})
    raw.events.put(raw.events.one(seq=1) | {"new": SECRET})
    assert raw.contains(SECRET)
    await open_service().purge_session(**WHO, session_id="s")
    assert raw.sessions.one(status="purged")
    assert not raw.contains(SECRET)


@pytest.mark.parametrize("source", ["kept", "purged"])
async def test_a_fork_that_nobody_asks_for_again_is_completed_or_erased(emulator, source):
    async with CosmosAccount.embedded(emulator) as account:
        sessions, *_ = await fill(account, "s")
        session = await sessions.get_session(**WHO, session_id="s")
        await sessions.append_event(session, event("another word"))
        # The first copy is stored, and the rest of the fork is not.
        emulator.faults.drop_before(container="events", operation="create", nth=2, times=None)
        with pytest.raises(UnavailableError):
            await sessions.fork_session(**WHO, session_id="s", new_user_id="other")
        emulator.faults.clear()
    async with CosmosAccount.embedded(emulator) as account:
        sessions = CosmosSessionService(account=account)
        if source == "purged":
            await sessions.purge_user(**WHO)
        emulator.clock.advance(2 * 24 * 3600)
        await sessions.list_sessions(**WHO)  # its answer tells the time
        assert await sessions.count_deleted() == 0
        assert (await sessions.purge_deleted()).failed == ()
        found = await sessions.list_sessions(app_name="app", user_id="other")
        assert len(found.sessions) == (1 if source == "kept" else 0)
        assert (SECRET in str(everything(emulator))) == (source == "kept")
