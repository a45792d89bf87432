"""A session with a ttl takes its artifacts along when it expires. Memories stay with the user."""

from __future__ import annotations

import pytest
from google.genai import types

from cosmosservice import (
    CosmosAccount,
    CosmosArtifactService,
    CosmosMemoryService,
    CosmosSessionService,
    SessionNotFoundError,
)
from tests.support.adk import event, texts
from tests.together.processes import left_of

HOUR = 3600
ADA = {"app_name": "app", "user_id": "ada"}
THIS, FORK = ADA | {"session_id": "s"}, ADA | {"session_id": "fork"}
FILE = types.Part.from_bytes(data=b"oldbytes" * 20, mime_type="text/plain")


class Process:
    def __init__(self, emulator, **options):
        self.account = CosmosAccount.embedded(emulator)
        self.sessions = CosmosSessionService(account=self.account, **options)
        self.artifacts = CosmosArtifactService(account=self.account)
        self.memory = CosmosMemoryService(account=self.account, repeat_seconds=0)

    async def fill(self):
        session = await self.sessions.create_session(**THIS)
        await self.sessions.append_event(session, event("oldword"))
        await self.artifacts.save_artifact(**THIS, filename="f", artifact=FILE)
        await self.memory.add_session_to_memory(session)
        await self.sessions.flush()
        return session

    async def files(self, who=THIS):
        return await self.artifacts.list_artifact_keys(**who)

    async def remembered(self, who=ADA):
        found = await self.memory.search_memory(**who, query="oldword")
        return len(found.memories)


@pytest.fixture
async def connect(emulator):
    made = []

    def one_more(**options):
        made.append(Process(emulator, **options))
        return made[-1]

    yield one_more
    for each in made:
        await each.account.close()


# The session has expired; and its document and events are removed, too.
AGES = pytest.mark.parametrize("hours", [1.5, 100])


@AGES
async def test_an_expired_session_takes_its_files_along(connect, emulator, later, hours):
    await connect(ttl=HOUR).fill()
    later(hours * HOUR)
    report = await CosmosSessionService.embedded(emulator).purge_deleted()
    assert report.failed == ()
    assert left_of(emulator, "oldbytes") == []
    assert await connect().remembered() == 1


@AGES
@pytest.mark.parametrize("ttl", [HOUR, None])
async def test_its_successor_begins_without_files(connect, later, hours, ttl):
    await connect(ttl=HOUR).fill()
    later(hours * HOUR)
    after = connect(ttl=ttl)
    await after.sessions.create_session(**THIS)
    assert await after.files() == []
    assert (await after.remembered(), await after.remembered(THIS)) == (1, 0)
    await after.sessions.purge_deleted()
    assert await after.remembered() == 1


async def test_a_session_in_use_keeps_its_files(connect, later):
    process = connect(ttl=HOUR)
    await process.fill()
    for _ in range(8):
        later(0.9 * HOUR)
        assert await process.sessions.get_session(**THIS)
        await process.sessions.flush()
        await process.sessions.purge_deleted()
    assert await process.files() == ["f"]


@AGES
async def test_a_fork_takes_its_files_along_when_it_expires(connect, emulator, later, hours):
    process = connect(ttl=HOUR)
    await process.fill()
    await process.sessions.fork_session(**THIS, new_session_id="fork")
    await process.sessions.purge_session(**THIS)
    assert await process.files(FORK) == ["f"]
    await process.sessions.close()
    later(hours * HOUR)
    await connect().sessions.purge_deleted()
    assert left_of(emulator, "oldbytes") == []


@AGES
async def test_a_fork_onto_an_expired_name_has_its_own_files_only(connect, later, hours):
    await connect(ttl=HOUR).fill()
    later(hours * HOUR)
    process = connect()
    source = await process.sessions.create_session(**ADA, session_id="source")
    await process.sessions.append_event(source, event("new"))
    if hours < 3:  # its document is still there
        await process.sessions.purge_session(**THIS)
    fork = await process.sessions.fork_session(
        **ADA, session_id="source", new_session_id=THIS["session_id"]
    )
    assert texts(fork) == ["new"]
    assert await process.files() == []


async def test_a_fork_can_have_the_name_of_a_purged_session(connect, emulator):
    process = connect()
    await process.fill()
    await process.sessions.fork_session(**THIS, new_session_id="fork")
    old = await process.sessions.get_session(**FORK)
    for _ in range(2):
        await process.sessions.purge_session(**FORK)
        await connect().sessions.fork_session(**THIS, new_session_id="fork")
    found = await connect().sessions.get_session(**FORK)
    assert texts(found) == ["oldword"]
    assert await process.files(FORK) == ["f"]
    with pytest.raises(SessionNotFoundError):
        await connect().sessions.append_event(old, event("late"))
    await connect().sessions.append_event(found, event("next"))
    assert texts(await connect().sessions.get_session(**FORK)) == ["oldword", "next"]
    await process.sessions.purge_user(**ADA)
    assert left_of(emulator, "oldbytes") == left_of(emulator, "oldword") == []
