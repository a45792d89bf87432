"""`cosmosservice memory follow`: appended events become memories, also after a restart."""

from __future__ import annotations

import asyncio
import datetime
import json
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from cosmos_emulator import Emulator
from cosmosservice import CosmosMemoryService, CosmosSessionService
from cosmosservice.cli import following
from cosmosservice.cli.commands import cli
from cosmosservice.errors import UnavailableError
from tests.memory.raw import documents_of, memories_of
from tests.memory.support import found_texts
from tests.support.adk import event
from tests.support.raw import raw_client

ADA = {"app_name": "shop", "user_id": "ada"}


@pytest.fixture(autouse=True)
def here(folder):
    """All commands here run in an empty folder."""


def follow(*options: str) -> SimpleNamespace:
    arguments = ["memory", "follow", "--app", "shop", *(options or ["--once"])]
    result = CliRunner().invoke(cli, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return SimpleNamespace(code=result.exit_code, out=result.stdout, err=result.stderr)


async def append(*texts: str, session_id: str = "s", user_id: str = "ada") -> list[str]:
    """Appends these texts. Returns the ids of the events."""
    async with CosmosSessionService.embedded("store.db") as service:
        name = {"app_name": "shop", "user_id": user_id, "session_id": session_id}
        session = await service.get_session(**name) or await service.create_session(**name)
        made = [await service.append_event(session, event(text)) for text in texts]
        return [each.id for each in made]


def say(*texts: str, **names: str) -> list[str]:
    return asyncio.run(append(*texts, **names))


def with_sessions(work) -> None:
    async def use() -> None:
        async with CosmosSessionService.embedded("store.db") as service:
            await work(service)

    asyncio.run(use())


def kept() -> list[str]:
    with Emulator("store.db") as emulator:
        return memories_of(emulator)


def test_what_is_there_is_added_and_then_what_is_new():
    say("One", "Two")
    assert follow().err == "2 events read, 2 stored as memories.\n"
    assert follow().err == "0 events read, 0 stored as memories.\n"
    say("Three")
    assert follow().err == "1 event read, 1 stored as memories.\n"
    assert kept() == ["One", "Two", "Three"]


def test_only_a_user_or_a_session_may_be_followed():
    say("One")
    say("Two", session_id="t")
    say("Three", user_id="bob")
    follow("--once", "--user", "ada", "--session", "t")
    assert kept() == ["Two"]
    follow("--once", "--user", "ada")
    assert sorted(kept()) == ["One", "Two"]
    assert follow("--once", "--session", "t").code == 0  # its id is unique


def test_a_follower_may_begin_now():
    say("One")
    follow("--once", "--since", "now")
    say("Two")
    follow()
    assert kept() == ["Two"]
    assert follow("--once", "--since", "beginning").err == "2 events read, 1 stored as memories.\n"


def test_scripts_get_json():
    say("One", "Two")
    (line,) = follow("--once", "--json").out.splitlines()
    assert json.loads(line) == {"events": 2, "stored": 2, "erased": 0}


def test_it_goes_on_where_it_was_killed(monkeypatch):
    """Killed after memories were stored, but before the progress was."""

    async def killed(*_):
        raise SystemExit(137)

    say("One", "Two")
    with monkeypatch.context() as patch:
        patch.setattr(following, "_store_continuation", killed)
        assert follow().code == 137
    assert kept() == ["One", "Two"]
    say("Three")
    assert follow().err == "3 events read, 1 stored as memories.\n"
    assert kept() == ["One", "Two", "Three"]


def test_it_follows_until_it_is_stopped(capsys, monkeypatch):
    monkeypatch.setattr(following, "BACKGROUND", following.BACKGROUND.__class__(6, 0.0, 0.0))
    options = {"app_name": "shop", "since": None, "once": False, "interval": 0.01}
    options |= {"embedder": None, "as_json": False}
    really = CosmosMemoryService.remember
    failures = iter([UnavailableError("private")])

    async def unsteady(self, *names, **more):
        for failure in failures:
            raise failure
        return await really(self, *names, **more)

    monkeypatch.setattr(CosmosMemoryService, "remember", unsteady)

    keep = following._store_continuation

    async def use() -> None:
        stored: asyncio.Queue[None] = asyncio.Queue()

        async def kept_continuation(*where):
            await keep(*where)
            stored.put_nowait(None)

        monkeypatch.setattr(following, "_store_continuation", kept_continuation)
        await append("One")
        task = asyncio.create_task(following.follow(None, None, None, **options))
        async with asyncio.timeout(20):
            await stored.get()
            await append("Two")
            await stored.get()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(use())
    assert kept() == ["One", "Two"]
    printed = capsys.readouterr().err
    assert "cannot be stored now (UnavailableError)" in printed
    assert "private" not in printed
    assert "2 events read, 2 stored as memories." in printed


def test_what_was_erased_does_not_come_back_when_everything_is_read_again():
    (secret, *_) = say("my secret", "something else")
    say("another secret", session_id="purged")
    follow()

    async def erase(service):
        memory = CosmosMemoryService(account=service.account)
        await memory.delete_memory(**ADA, memory_id=secret)
        report = await service.purge_session(**ADA, session_id="purged")
        assert report.dependants == 1

    with_sessions(erase)
    follow("--once", "--since", "beginning")
    assert kept() == ["something else"]
    with Emulator("store.db") as emulator:
        assert "secret" not in str(documents_of(emulator))


def test_memories_go_that_were_added_after_their_session_was_purged():
    say("my secret")
    follow()

    async def purge(service):
        memory = CosmosMemoryService(account=service.account)
        session = await service.get_session(**ADA, session_id="s")
        await service.purge_session(**ADA, session_id="s")
        assert kept() == []
        await memory.add_session_to_memory(session)

    with_sessions(purge)
    assert kept() == ["my secret"]
    assert follow().err == "0 events read, 0 stored as memories, 1 document erased.\n"
    assert kept() == []


def test_the_purge_of_a_predecessor_leaves_the_session_that_has_its_name():
    import datetime

    say("Old")
    with_sessions(lambda service: service.delete_session(**ADA, session_id="s"))
    say("New")
    follow()
    with_sessions(lambda service: service.purge_deleted(older_than=datetime.timedelta(0)))
    follow()
    assert "New" in kept()


def test_a_continuation_in_another_container_is_explained():
    say("One")
    follow()
    with Emulator("store.db") as emulator, raw_client(emulator) as client:
        client.get_database_client("adk").delete_container("events")
    say("Two", session_id="t")
    wrong = follow()
    assert wrong.code == 2
    assert "use --since beginning" in " ".join(wrong.err.split())
    assert follow("--once", "--since", "beginning").code == 0
    assert sorted(kept()) == ["One", "Two"]


def test_a_session_that_was_created_again_is_another_source():
    """Following both incarnations at once, then the purge of the first one."""
    session = {**ADA, "session_id": "s"}
    say("tea of old")
    with_sessions(lambda service: service.delete_session(**session))
    say("tea of new")
    follow()
    with Emulator("store.db") as emulator:
        incarnations = [
            each.get("incarnation") for each in documents_of(emulator) if "memory_id" in each
        ]
    assert len(set(incarnations)) == 2
    assert None not in incarnations
    with_sessions(lambda service: service.purge_deleted(older_than=datetime.timedelta()))
    follow()
    assert kept() == ["tea of new"]


def test_copied_memories_are_found_in_their_copied_session():
    say("tea")
    follow()
    stores = ["cosmosdb://embedded/store.db", "cosmosdb://embedded/new.db"]
    assert CliRunner().invoke(cli, ["migrate", *stores]).exit_code == 0

    async def search() -> list[str]:
        async with CosmosMemoryService.embedded("new.db") as memory:
            return await found_texts(memory, "tea", app="shop", user="ada", session_id="s")

    assert asyncio.run(search()) == ["tea"]
