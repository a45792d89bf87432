"""Services with `memory=` that nobody closes, and processes that end in every way."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from cosmos_emulator import Emulator
from cosmosservice import CosmosAccount, CosmosMemoryService, CosmosSessionService
from cosmosservice.cli.commands import cli
from cosmosservice.hosting.thread_executor import NAME
from tests.memory.raw import documents_of, memories_of
from tests.support.adk import event

ROOT = Path(__file__).parents[2]
WHO = {"app_name": "app", "user_id": "ann"}

PROGRAM = """
import asyncio
import multiprocessing
import os
import signal
import sys
import threading
from cosmosservice import CosmosAccount, CosmosMemoryService, CosmosSessionService
from tests.support.adk import event

FOLDER, *WAYS = sys.argv[1:]
for WAY in WAYS:
    PATH = os.path.join(FOLDER, WAY)
    child = os.fork()
    if child == 0:
        os.dup2(os.open(PATH + ".stderr", os.O_CREAT | os.O_WRONLY), 2)
        break
    os.waitpid(child, 0)
else:
    os._exit(0)

def services():
    if WAY == "two accounts":
        memory = CosmosMemoryService.embedded(PATH)
        return CosmosSessionService.embedded(PATH, memory=memory)
    account = CosmosAccount.embedded(PATH)
    return CosmosSessionService(account=account, memory=CosmosMemoryService(account=account))

async def talk(first=0, count=20, text="Note"):
    sessions = services()
    session = await sessions.create_session(app_name="app", user_id="ann")
    for number in range(first, first + count):
        await sessions.append_event(session, event(f"{text} {number}"))

def parts():
    return [(first, 5) for first in range(0, 20, 5)]

if WAY in ("one loop", "two accounts"):
    asyncio.run(talk())
elif WAY == "large":
    asyncio.run(talk(text="words " * 10_000 + os.urandom(8_000).hex()))
elif WAY == "several loops":
    for part in parts():
        asyncio.run(talk(*part))
elif WAY == "threads":
    def in_loop(part):
        asyncio.run(talk(*part))
    threads = [threading.Thread(target=in_loop, args=[part]) for part in parts()]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
elif WAY == "exit":
    async def exits():
        await talk()
        sys.exit()
    asyncio.run(exits())
elif WAY == "error":
    async def fails():
        await talk()
        raise SystemExit(0)
    asyncio.run(fails())
elif WAY == "_exit":
    asyncio.run(talk())
    os._exit(0)
elif WAY in ("SIGKILL", "SIGTERM"):
    asyncio.run(talk())
    os.kill(os.getpid(), getattr(signal, WAY))
elif WAY == "forked child":
    child = multiprocessing.get_context("fork").Process(target=lambda: asyncio.run(talk()))
    child.start()
    child.join()
"""

NOTES = {f"Note {number}" for number in range(20)}
IN_ORDER = ["one loop", "two accounts", "several loops", "threads", "exit", "error"]
ABRUPTLY = ["_exit", "SIGKILL", "SIGTERM", "forked child"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The stores of programs that ended in every way. One interpreter loads what they need, and
    becomes each of them by a fork."""
    folder = tmp_path_factory.mktemp("ended")
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", PROGRAM]
    ended = subprocess.run(
        [*command, folder, *IN_ORDER, *ABRUPTLY, "large"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=200,
    )
    assert ended.stderr == ""
    return folder


@pytest.fixture
def run(folder):
    """`run(way)`: the store of the program that ended in this way."""

    def run(way: str) -> str:
        assert (folder / f"{way}.stderr").read_text("utf-8") == ""
        return str(folder / way)

    return run


@pytest.mark.parametrize("way", IN_ORDER)
def test_services_that_go_out_of_scope_add_every_event(run, way):
    path = run(way)
    with Emulator(path) as emulator:
        assert set(memories_of(emulator)) == NOTES


def test_large_events_are_added_at_the_end_of_a_process(run):
    """When no thread can start any more."""
    with Emulator(run("large")) as emulator:
        kinds = [each["kind"] for each in documents_of(emulator)]
        assert (kinds.count("memory"), kinds.count("part")) == (20, 20)


@pytest.mark.parametrize("way", ABRUPTLY)
def test_follow_adds_what_a_process_that_ended_abruptly_left_out(run, way):
    path = run(way)
    with Emulator(path) as emulator:
        assert set(memories_of(emulator)) < NOTES
    command = ["memory", "follow", "--app", "app", "--once", "--uri", f"cosmosdb://embedded/{path}"]
    assert CliRunner().invoke(cli, command).exit_code == 0
    with Emulator(path) as emulator:
        assert set(memories_of(emulator)) == NOTES


def threads() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if each.name == NAME}


async def until(condition) -> None:
    for _ in range(1_000):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it never came true")


@pytest.mark.parametrize("accounts", [1, 2])
async def test_dropped_services_finish_and_are_collected_while_the_process_goes_on(
    emulator, accounts
):
    before = threads()

    async def talk() -> None:
        account = CosmosAccount.embedded(emulator)
        other = account if accounts == 1 else CosmosAccount.embedded(emulator)
        memory = CosmosMemoryService(account=other)
        sessions = CosmosSessionService(account=account, memory=memory)
        session = await sessions.create_session(**WHO, session_id="s")
        for number in range(20):
            await sessions.append_event(session, event(f"Note {number}"))

    await talk()
    gc.collect()
    await until(lambda: set(memories_of(emulator)) == NOTES)
    await until(lambda: threads() <= before)


async def test_a_service_that_is_dropped_during_an_append_adds_its_event(emulator, monkeypatch):
    """The caller has given up waiting, and its loop has ended."""
    monkeypatch.setattr("cosmosservice.hosting.concurrency.GRACE", 0.01)
    before = threads()
    reached, go_on = threading.Event(), threading.Event()

    async def append() -> None:
        account = CosmosAccount.embedded(emulator)
        sessions = CosmosSessionService(
            account=account, memory=CosmosMemoryService(account=account)
        )
        session = await sessions.create_session(**WHO, session_id="s")

        async def wait(request) -> None:
            reached.set()
            await asyncio.to_thread(go_on.wait)

        emulator.faults.call(wait, when="before", operation="create", container="events")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(sessions.append_event(session, event("Note")), 0.2)

    async with CosmosMemoryService.embedded(emulator) as memory:
        await memory.search_memory(**WHO, query="tea")  # makes the container
    await asyncio.to_thread(asyncio.run, append())
    gc.collect()
    assert reached.is_set()
    go_on.set()
    await until(lambda: memories_of(emulator) == ["Note"])
    await until(lambda: threads() <= before)
