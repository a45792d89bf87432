"""The sources that `cosmosservice migrate` accepts, and clear errors for everything else."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from pathlib import Path

import pytest
from google.adk.artifacts.file_artifact_service import FileArtifactService
from google.adk.events import Event
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from cosmosservice import CosmosArtifactService, CosmosMemoryService, CosmosSessionService
from cosmosservice.account.files import Holds, contents
from tests.cli.conftest import said

TARGET = "cosmosdb://embedded/target.db"
SCHEMAS = Path(__file__).parent / "schemas"
OWNER = {"app_name": "shop", "user_id": "ada"}


def made_of(script, path="source.db"):
    """A SQLite file, made from the dump of a file that a version of ADK wrote."""
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMAS.joinpath(f"{script}.sql").read_text())
    connection.close()
    return path


@pytest.mark.parametrize(
    ("script", "holds"),
    [
        ("database_v0", Holds.DATABASE_SESSIONS),
        ("database_v1", Holds.DATABASE_SESSIONS),
        ("sqlite", Holds.SQLITE_SESSIONS),
        ("memory", Holds.MEMORIES),
    ],
)
def test_files_of_adk_are_recognised(command, script, holds):
    path = made_of(script)
    assert contents(path) == {holds}
    shown = command("sessions", "list", "--uri", f"cosmosdb://embedded/{path}")
    assert shown.code == 2
    assert f"source.db holds {holds}. It is not a store of this service." in shown.err
    assert "cosmosservice migrate sqlite:///source.db cosmosdb://embedded/NEW_FILE" in shown.err


@pytest.mark.parametrize("script", ["database_v0", "database_v1", "sqlite"])
def test_sessions_of_every_schema_arrive(command, script):
    if script.startswith("database"):
        pytest.importorskip("sqlalchemy")
    before = Path(made_of(script)).read_bytes()
    done = command("migrate", "sqlite:///source.db", TARGET)
    assert done.code == 0, done.err
    assert "2 sessions (2 copied)\n2 events\n" in done.out
    assert Path("source.db").read_bytes() == before

    async def read():
        async with CosmosSessionService.embedded("target.db") as service:
            return await service.get_session(**OWNER, session_id="one")

    session = asyncio.run(read())
    assert session.state == {
        "cart": ["tea", "milk"],
        "user:a": 1,
        "user:b": {"x": [1, 2]},
        "app:open": True,
    }
    first, second = session.events
    assert first.content.parts[0].text == "hi"
    assert first.actions.state_delta["cart"] == ["tea", "milk"]
    assert second.content.parts[0].function_call.args == {"a": 1.5}
    assert second.content.parts[1].inline_data.data == b"\xff\x00"
    assert second.long_running_tool_ids == {"x"}


def test_without_sqlalchemy_it_says_what_to_install(command, monkeypatch):
    made_of("database_v1")
    monkeypatch.setitem(sys.modules, "google.adk.sessions.database_session_service", None)
    shown = command("migrate", "sqlite:///source.db", TARGET)
    assert shown.code == 2
    assert "pip install 'google-adk[db]' 'sqlalchemy[asyncio]' aiosqlite" in shown.err


WRONG = {
    "text": (lambda path: path.write_text("Dear diary\n"), "is not a SQLite database"),
    "empty": (lambda path: path.touch(), "is empty: nothing was ever stored in it."),
    "folder": (lambda path: path.mkdir(), "is a folder: name a file, such as wrong/sessions.db."),
    "other": (
        lambda path: sqlite3.connect(path).executescript("CREATE TABLE t (x)").connection.close(),
        "is a SQLite database of another program. Name another file.",
    ),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_file_that_is_not_a_store_is_named(command, folder, kind):
    make, message = WRONG[kind]
    make(folder / "wrong")
    for arguments in (("sessions", "list"), ("doctor",), ("memory", "list", "--app=a", "--user=u")):
        shown = command(*arguments, "--uri", "cosmosdb://embedded/wrong")
        assert shown.code in (1, 2)
        assert f"wrong {message}" in shown.out + shown.err


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        (
            "sqlite:///store.db",
            "store.db is a store of this service: cosmosdb://embedded/store.db.",
        ),
        ("sqlite:///folder", "A folder of artifacts is file:///"),
        ("sqlite:///text", "text has nothing that can be copied"),
        ("file:///not/there", "There is no folder /not/there."),
    ],
)
def test_a_source_of_another_kind_is_named(command, conversation, folder, uri, message):
    folder.joinpath("folder").mkdir()
    folder.joinpath("text").write_text("Dear diary\n")
    shown = command("migrate", uri, TARGET)
    assert shown.code == 2
    assert message in shown.err
    assert not folder.joinpath("target.db").exists()


# --- memories and artifacts


def memories_in(path, **names):
    async def read():
        async with CosmosMemoryService.embedded(path) as service:
            return [each async for each in service.iter_memories(**(names or OWNER))]

    return asyncio.run(read())


def test_memories_of_adks_file_arrive_once(command):
    made_of("memory")
    looked = command("migrate", "--dry-run", "sqlite:///source.db", TARGET)
    assert looked.out == "4 memories (4 to copy)\n"
    done = command("migrate", "sqlite:///source.db", TARGET)
    assert (done.code, done.out) == (0, "4 memories (4 copied)\n")
    found = memories_in("target.db")
    assert [(each.id, each.author, each.custom_metadata["session_id"]) for each in found] == [
        ("e0", "user", "one"),
        ("e1", "user", "one"),
        ("e2", "user", "one"),
    ]
    assert found[0].content.parts[0].text == "I like tea number 0"
    assert found[0].timestamp.startswith("1970-01-01T00:01:40")
    (alone,) = memories_in("target.db", app_name="shop", user_id="bob")
    assert "session_id" not in alone.custom_metadata
    command("memory", "forget", "e1", "--app=shop", "--user=ada", "--uri", TARGET)
    again = json.loads(command("migrate", "sqlite:///source.db", TARGET, "--json").out)
    assert again["memories"] == {"already there": 3, "forgotten in the target": 1}
    assert len(memories_in("target.db")) == 2
    only = json.loads(command("migrate", "sqlite:///source.db", TARGET, "--json", "--app=x").out)
    assert only["memories"] == {}


PICTURE = types.Part.from_bytes(data=b"\x89PNG" * 50_000, mime_type="image/png")
SMALL = types.Part.from_bytes(data=b"2", mime_type="image/png")


async def save_all(service):
    one = {**OWNER, "session_id": "one"}
    await service.save_artifact(**one, filename="tea.png", artifact=PICTURE)
    await service.save_artifact(
        **one, filename="tea.png", artifact=SMALL, custom_metadata={"cups": 2}
    )
    await service.save_artifact(**one, filename="a/b.txt", artifact=types.Part(text="hällo"))
    await service.save_artifact(**one, filename="user:n.txt", artifact=types.Part(text="mine"))


def artifacts_in(path):
    async def read():
        async with CosmosArtifactService.embedded(path) as service:
            one = {**OWNER, "session_id": "one"}
            return {
                (name, version): await service.load_artifact(**one, filename=name, version=version)
                for name in await service.list_artifact_keys(**one)
                for version in await service.list_versions(**one, filename=name)
            }

    return asyncio.run(read())


def test_artifacts_of_adks_folder_arrive_once(command, folder):
    async def make():
        service = FileArtifactService(root_dir=folder / "files")
        await save_all(service)
        await service.save_artifact(**OWNER, filename="bare.txt", artifact=types.Part(text="bare"))

    asyncio.run(make())
    source = folder.joinpath("files").as_uri()
    done = command("migrate", source, TARGET)
    assert (done.code, done.out) == (0, "5 versions of artifacts (5 copied)\n"), done.err
    found = artifacts_in("target.db")
    assert found == {
        ("a/b.txt", 0): types.Part(text="hällo"),
        ("tea.png", 0): PICTURE,
        ("tea.png", 1): SMALL,
        ("user:bare.txt", 0): types.Part(text="bare"),
        ("user:n.txt", 0): types.Part(text="mine"),
    }
    assert "(5 already there)" in command("migrate", source, TARGET).out
    name = ("--app=shop", "--user=ada", "--session=one", "--uri", TARGET)
    folder.joinpath("more").write_text("more")
    command("artifacts", "put", *name, "more", "--name", "a/b.txt")
    more = command("migrate", source, TARGET)
    assert more.code == 1
    assert "artifact shop / ada / one / a/b.txt: the target has 1 more versions" in more.err


def test_another_store_gives_sessions_memories_and_artifacts(command, conversation):
    async def make():
        async with CosmosArtifactService.embedded("store.db") as artifacts:
            await save_all(artifacts)
        async with CosmosMemoryService.embedded("store.db") as memory:
            events = [said("I like tea"), said("No milk"), said("x" * 9_000)]
            await memory.add_events_to_memory(**OWNER, events=events, session_id="first")
            await memory.add_events_to_memory(
                **OWNER, events=[said("for a while")], custom_metadata={"ttl": 1000}
            )
            return events

    events = asyncio.run(make())
    command("memory", "forget", events[1].id, "--app=shop", "--user=ada")
    source = "cosmosdb://embedded/store.db"
    done = json.loads(command("migrate", source, TARGET, "--json").out)
    assert done["sessions"] == {"copied": 1}
    assert done["memories"] == {"copied": 3}
    assert done["artifacts"] == {"copied": 4}
    assert artifacts_in("target.db") == artifacts_in("store.db")
    assert memories_in("target.db") == memories_in("store.db")
    again = json.loads(command("migrate", source, TARGET, "--json").out)
    assert again["memories"] == {"already there": 3}

    async def add_again():
        async with CosmosMemoryService.embedded("target.db") as memory:
            await memory.add_events_to_memory(**OWNER, events=events, session_id="first")

    asyncio.run(add_again())  # what was forgotten stays forgotten in the copy
    assert len(memories_in("target.db")) == 3


def test_several_sources_are_copied_in_one_run(command, folder):
    async def make():
        sessions = SqliteSessionService("source.db")
        session = await sessions.create_session(**OWNER, session_id="one")
        await sessions.append_event(session, Event(author="user"))
        await save_all(FileArtifactService(root_dir=folder / "files"))

    asyncio.run(make())
    made_of("memory", "memory.db")
    sources = ("sqlite:///source.db", "sqlite:///memory.db", folder.joinpath("files").as_uri())
    done = command("migrate", *sources, TARGET)
    assert done.code == 0, done.err
    assert done.out.splitlines()[:4] == [
        "1 session (1 copied)",
        "1 event",
        "4 memories (4 copied)",
        "4 versions of artifacts (4 copied)",
    ]
