"""`cosmosservice memory …`."""

from __future__ import annotations

import asyncio
import json
import re
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from cosmosservice import CosmosAccount, CosmosMemoryService, CosmosSessionService
from cosmosservice.cli.commands import cli
from tests.support.adk import event

WHO = ("--app", "shop", "--user", "ada")


@pytest.fixture(autouse=True)
def here(folder):
    """All commands here run in an empty folder."""


@pytest.fixture
def command():
    def run(*arguments, **options):
        result = CliRunner().invoke(cli, ["memory", *map(str, arguments)], **options)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return SimpleNamespace(code=result.exit_code, out=result.stdout, err=result.stderr)

    return run


@pytest.fixture
def filled(command):
    assert command("add", "The garage code is 2011", *WHO, "--author", "porter").code == 0
    assert command("add", "Tea at noon", *WHO).code == 0
    return command


def test_what_was_added_is_found(filled):
    shown = filled("search", "garage codes", *WHO)
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d +porter +\S+ +The garage code is 2011", shown.out)
    assert "Tea" not in shown.out


def test_scripts_get_json(filled):
    (line,) = filled("search", "garage", *WHO, "--json").out.splitlines()
    found = json.loads(line)
    assert (found["author"], found["content"]["parts"]) == (
        "porter",
        [{"text": "The garage code is 2011"}],
    )


def test_a_search_may_be_narrowed(filled):
    assert filled("search", "garage", *WHO, "--author", "nobody").err == "Nothing was found.\n"
    assert filled("search", "garage", *WHO, "--since", "2999-01-01").out == ""
    assert filled("search", "garage", *WHO, "--until", "2999-01-01").out
    wrong = filled("search", "garage", *WHO, "--since", "yesterday")
    assert wrong.code == 2
    assert "must be a date or a time in ISO 8601" in wrong.err


def test_the_latest_are_listed_first(filled):
    lines = filled("list", *WHO).out.splitlines()
    assert ["Tea" in line for line in lines] == [False, True, False]
    assert "more with --limit" in filled("list", *WHO, "--limit", "1").err


def test_the_latest_of_a_session(command):
    async def talk():
        account = CosmosAccount.embedded("store.db")
        memory = CosmosMemoryService(account=account)
        async with account, CosmosSessionService(account=account, memory=memory) as sessions:
            for name in ("one", "two"):
                names = {"app_name": "app", "user_id": "ann", "session_id": name}
                session = await sessions.create_session(**names)
                for number in range(3):
                    await sessions.append_event(session, event(f"{name} {number}"))

    asyncio.run(talk())
    listed = command("list", "--session", "two", "--limit", "2", "--json").out
    found = [json.loads(each)["content"]["parts"][0]["text"] for each in listed.splitlines()]
    assert found == ["two 2", "two 1"]


def test_a_memory_is_forgotten(filled):
    found = json.loads(filled("search", "garage", *WHO, "--json").out)
    assert filled("forget", found["id"], *WHO).err == "Forgotten.\n"
    assert filled("search", "garage", *WHO).out == ""
    again = filled("forget", "no such memory", *WHO)
    assert (again.code, again.err) == (1, "The user has no such memory.\n")


def test_everything_is_forgotten_after_a_question(filled):
    assert filled("forget", "--all", *WHO, input="n\n").code == 1
    assert filled("list", *WHO).out
    assert "Erased 2 documents." in filled("forget", "--all", *WHO, "--yes").err
    assert filled("list", *WHO).err == "No memories.\n"
    assert filled("forget", *WHO).code == 2


def test_control_characters_do_not_reach_the_terminal(command):
    command("add", "tea \x1b[31m red", *WHO)
    assert "\x1b" not in command("list", *WHO).out


def test_a_file_of_sessions_only_has_no_memories(command):
    from cosmos_emulator import Emulator

    with Emulator("store.db"):
        pass
    assert command("list", *WHO).err == "No memories.\n"
    assert command("search", "tea", *WHO).err == "Nothing was found.\n"
    assert command("forget", "tea", *WHO).err == "The user has no such memory.\n"


def test_a_store_that_is_not_there_is_a_mistake(command):
    shown = command("search", "tea", *WHO)
    assert shown.code == 2
    assert "There is no file store.db" in shown.err


def test_missing_vectors_are_made(command, folder, monkeypatch):
    (folder / "agent_vectors.py").write_text(
        "from cosmosservice import CosmosMemoryService\n"
        "async def embed(texts):\n"
        "    return [[1.0, 2.0] for _ in texts]\n"
        "async def down(texts):\n"
        "    raise RuntimeError\n"
        "down.dimensions = embed.dimensions = 2\n"
    )
    import asyncio
    import sys

    monkeypatch.syspath_prepend(str(folder))
    import agent_vectors

    from cosmosservice import CosmosMemoryService
    from tests.memory.support import session

    async def add():
        async with CosmosMemoryService.embedded("store.db", embedder=agent_vectors.down) as service:
            await service.add_session_to_memory(session("tea"))

    asyncio.run(add())
    failed = command("embed", "--embedder", "agent_vectors:down")
    assert (failed.code, "1 without a vector, 0 made." in failed.err) == (1, True)
    made = command("embed", "--embedder", "agent_vectors:embed")
    assert (made.code, "1 without a vector, 1 made." in made.err) == (0, True)
    del sys.modules["agent_vectors"]
    assert "cannot be imported" in command("embed", "--embedder", "nowhere:embed").err
    assert command("embed", "--embedder", "agent_vectors:embed", "--app", "x").code == 2
