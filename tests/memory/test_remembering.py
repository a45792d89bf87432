"""`CosmosSessionService(memory=…)`: appended events become memories automatically."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from google.adk.memory import InMemoryMemoryService

from cosmos_emulator import Emulator
from cosmos_emulator.serving import serving
from cosmosservice import CosmosMemoryService, CosmosSessionService
from cosmosservice.errors import ConfigurationError, UnavailableError
from cosmosservice.hosting.thread_executor import NAME
from cosmosservice.sessions.store import remembering
from tests.memory.raw import documents_of, memories_of
from tests.memory.support import USER, found_texts
from tests.support.adk import event
from tests.support.cosmos import account_on
from tests.support.raw import raw_store

ROOT = Path(__file__).parents[2]
WHO = {"app_name": "app", "user_id": USER}


class Process:
    """A session service and a memory service on an account of their own."""

    def __init__(self, store, **options) -> None:
        self.account = account_on(store)
        self.memory = CosmosMemoryService(account=self.account, repeat_seconds=0)
        self.sessions = CosmosSessionService(account=self.account, memory=self.memory, **options)

    async def say(self, session, *texts: str) -> None:
        for text in texts:
            await self.sessions.append_event(session, event(text))

    async def load(self):
        return await self.sessions.get_session(**WHO, session_id="s")


@pytest.fixture
async def start(cosmos):
    started: list[Process] = []

    def make(**options) -> Process:
        started.append(Process(cosmos, **options))
        return started[-1]

    yield make
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cosmosservice.sessions.store.store.CLOSE_TIMEOUT", 0.05)
        for each in started:
            await each.account.close()


@pytest.fixture
async def process(start):
    return start()


@pytest.fixture
async def session(process):
    return await process.sessions.create_session(**WHO, session_id="s")


def written(emulator) -> list[str]:
    """The requests to the memories container."""
    requests = [each for each in emulator.requests if each.container == "memories"]
    return [each.operation for each in requests if each.resource == "docs" and each.id != "none"]


def threads() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if each.name == NAME}


def lose(process, monkeypatch) -> None:
    """From now on the process appends, but is killed before it stores a memory."""

    async def killed(*names, **options):
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(process.memory, "remember", killed)


async def test_what_is_appended_is_found(process, session):
    await process.say(session, "The garage code is 2011")
    await process.sessions.flush()
    assert await found_texts(process.memory, "garage") == ["The garage code is 2011"]


async def test_an_event_costs_one_write_and_a_new_session_one_query(process, session, emulator):
    await process.say(session, "One")
    await process.sessions.flush()
    emulator.clear_requests()
    await process.say(session, "Two", "Three")
    await process.sessions.flush()
    assert written(emulator) == ["create", "create"]


async def test_an_append_does_not_wait_for_the_memory(process, session, monkeypatch):
    lose(process, monkeypatch)
    await process.say(session, "One")
    assert [each.content.parts[0].text for each in (await process.load()).events] == ["One"]
    monkeypatch.undo()


async def test_what_a_killed_process_left_out_follows_with_the_next_event(
    process, session, start, cosmos, monkeypatch
):
    await process.say(session, "One")
    await process.sessions.flush()
    lose(process, monkeypatch)
    await process.say(session, "Two", "Three")
    other = start()
    await other.say(await other.load(), "Four")
    await other.sessions.flush()
    assert memories_of(cosmos) == ["One", "Two", "Three", "Four"]


async def test_a_process_that_left_something_out_catches_up_itself(
    process, session, cosmos, monkeypatch, caplog
):
    async def fails(*names, **options):
        raise UnavailableError("private")

    await process.say(session, "One")
    await process.sessions.flush()
    monkeypatch.setattr(process.memory, "remember", fails)
    await process.say(session, "Two")
    await process.sessions.flush()
    assert memories_of(cosmos) == ["One"]
    assert "could not be added to memory (UnavailableError)" in caplog.text
    assert "private" not in caplog.text
    assert USER not in caplog.text
    monkeypatch.undo()
    await process.say(session, "Three")
    await process.sessions.flush()
    assert memories_of(cosmos) == ["One", "Two", "Three"]


async def test_a_failure_is_retried_without_another_event(process, session, cosmos, monkeypatch):
    monkeypatch.setattr(remembering, "BACKGROUND", remembering.BACKGROUND.__class__(6, 0.0, 0.0))
    failures, again = iter([UnavailableError("not now")]), threading.Event()
    really = process.memory.remember

    async def fails_once(*names, **options):
        for failure in failures:
            raise failure
        again.set()
        return await really(*names, **options)

    monkeypatch.setattr(process.memory, "remember", fails_once)
    await process.say(session, "One")
    await asyncio.to_thread(again.wait, 20)
    await process.sessions.flush()
    assert memories_of(cosmos) == ["One"]


async def test_a_process_that_goes_on_with_a_long_session_writes_its_own_events_only(
    process, session, start, emulator
):
    await process.say(session, *(f"Note {number}" for number in range(40)))
    await process.sessions.flush()
    other = start()
    loaded = await other.load()
    emulator.clear_requests()
    await other.say(loaded, "More")
    await other.sessions.flush()
    assert written(emulator) == ["query", "create"]


async def test_two_processes_by_turns_store_each_event_once(process, session, start, emulator):
    other = start()
    for number in range(3):
        await process.say(await process.load(), f"a{number}")
        await process.sessions.flush()
        await other.say(await other.load(), f"b{number}")
        await other.sessions.flush()
    emulator.clear_requests()
    await process.say(await process.load(), "last")
    await process.sessions.flush()
    assert written(emulator) == ["query", "create"]
    assert memories_of(emulator) == ["a0", "b0", "a1", "b1", "a2", "b2", "last"]


async def test_a_session_that_was_loaded_in_part_is_remembered_whole(
    process, session, start, cosmos, monkeypatch
):
    lose(process, monkeypatch)
    await process.say(session, *(f"Note {number}" for number in range(5)))
    other = start(recent_events=1)
    await other.say(await other.load(), "More")
    await other.sessions.flush()
    assert memories_of(cosmos) == [*(f"Note {number}" for number in range(5)), "More"]


@pytest.mark.parametrize("way", ["service", "account", "block"])
async def test_closing_waits_for_what_is_due(emulator, way, monkeypatch):
    process = Process(emulator)
    really = process.memory.remember

    async def slow(*names, **options):
        await asyncio.sleep(0.05)
        return await really(*names, **options)

    monkeypatch.setattr(process.memory, "remember", slow)
    before = threads()

    async def use() -> None:
        session = await process.sessions.create_session(**WHO, session_id="s")
        await process.say(session, "One", "Two")

    if way == "block":
        async with process.account:
            await use()
    else:
        await use()
        await (process.sessions if way == "service" else process.account).close()
    assert memories_of(emulator) == ["One", "Two"]
    if way != "service":
        assert threads() == before  # no second opening was needed
    await process.account.close()


ENDS_WITHOUT_CLOSE = """
import asyncio
import sys
from cosmosservice import CosmosAccount, CosmosMemoryService, CosmosSessionService
from tests.support.adk import event

WHO = {"app_name": "app", "user_id": "ann"}
key, *endpoints = sys.argv[1:]
kept = []

async def use(endpoint):
    account = CosmosAccount(endpoint=endpoint, credential=key, database="adk")
    memory = CosmosMemoryService(account=account)
    sessions = CosmosSessionService(account=account, memory=memory)
    kept.append(sessions)
    session = await sessions.create_session(**WHO, session_id="s")
    await sessions.append_event(session, event("One"))
    while not [each async for each in memory.iter_memories(**WHO)]:
        await asyncio.sleep(0.01)
    await sessions.append_event(session, event("Two"))  # the turn goes on: this one waits

for endpoint in endpoints:
    asyncio.run(use(endpoint))
"""


def test_the_end_of_the_process_waits_for_what_is_due(emulator, tmp_path):
    """It uses the existing connection. At the end of a process no new one can be opened to a host
    name: resolving it would take a thread."""
    file = str(tmp_path / "agent.db")
    with serving(emulator) as endpoint:
        endpoints = [f"embedded:{file}", endpoint.replace("127.0.0.1", "localhost")]
        done = subprocess.run(
            [sys.executable, "-c", ENDS_WITHOUT_CLOSE, emulator.key, *endpoints],
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert memories_of(emulator) == ["One", "Two"]
    with Emulator(file) as on_disk:
        assert memories_of(on_disk) == ["One", "Two"]


async def test_a_memory_that_hangs_does_not_hang_the_close(process, session, cosmos, monkeypatch):
    monkeypatch.setattr("cosmosservice.sessions.store.store.CLOSE_TIMEOUT", 0.05)
    lose(process, monkeypatch)
    await process.say(session, "One")
    await process.sessions.close()
    monkeypatch.undo()
    await process.say(await process.load(), "Two")
    await process.sessions.flush()
    assert memories_of(cosmos) == ["One", "Two"]


async def test_a_purged_session_leaves_no_memory_also_if_it_is_added_late(
    process, session, start, cosmos, monkeypatch
):
    """The memory is stored after another process has erased the session and its memories."""
    purged, reached = asyncio.Event(), asyncio.Event()
    really = process.memory.remember

    async def late(*names, **options):
        reached.set()
        await purged.wait()
        return await really(*names, **options)

    async with process.account:
        monkeypatch.setattr(process.memory, "remember", late)
        await process.say(await process.load(), "my secret")
        await reached.wait()
        await start().sessions.purge_session(**WHO, session_id="s")
        purged.set()
        await process.sessions.flush()
    assert documents_of(cosmos) == []


async def test_a_purge_erases_memories_on_another_account(emulator):
    memory = CosmosMemoryService.embedded(emulator)
    sessions = CosmosSessionService.embedded(emulator, memory=memory)
    session = await sessions.create_session(**WHO, session_id="s")
    await sessions.append_event(session, event("my secret"))
    await sessions.flush()
    assert memories_of(emulator) == ["my secret"]
    report = await sessions.purge_session(**WHO, session_id="s")
    assert (report.dependants, documents_of(emulator)) == (1, [])
    await sessions.close()
    await memory.close()


async def test_more_sessions_than_are_kept_in_mind_are_caught_up(
    process, session, cosmos, monkeypatch, caplog
):
    monkeypatch.setattr(remembering, "MOST_DUE", 0)
    await process.say(session, "One")
    with caplog.at_level(logging.WARNING, "cosmosservice"):
        await process.sessions.flush()
    assert "appended faster than they are added to memory" in caplog.text
    monkeypatch.undo()
    await process.say(session, "Two")
    await process.sessions.flush()
    assert memories_of(cosmos) == ["One", "Two"]


async def test_events_around_one_that_something_else_removed_are_remembered(
    process, session, start, cosmos, monkeypatch
):
    lose(process, monkeypatch)
    await process.say(session, "I have a cat", "I have a dog", "I have a cow")
    with raw_store(cosmos) as raw:
        raw.events.remove(raw.events.one(seq=2))
    other = start(recent_events=1)
    await other.say(await other.load(), "I have a hen")
    await other.sessions.flush()
    assert memories_of(cosmos) == ["I have a cat", "I have a cow", "I have a hen"]


async def test_what_was_deleted_does_not_come_back(process, session, start, cosmos):
    await process.say(session, "my secret", "something else")
    await process.sessions.flush()
    await process.memory.delete_memory(**WHO, memory_id=session.events[0].id)
    other = start()
    await other.say(await other.load(), "More")
    await other.sessions.flush()
    assert memories_of(cosmos) == ["something else", "More"]


def test_another_memory_service_is_refused():
    with pytest.raises(ConfigurationError, match="memory must be a CosmosMemoryService"):
        CosmosSessionService.embedded(memory=InMemoryMemoryService())
