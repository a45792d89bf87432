"""ADK's own commands with --session_service_uri=cosmosdb://…"""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from google.adk.cli.utils.service_factory import create_session_service_from_options

from cosmosservice import CosmosSessionService
from cosmosservice.adk import memory_service, session_service
from cosmosservice.errors import ConfigurationError
from tests.adk.servers import ADK, AdkServer, agents_folder, clean_environment, texts
from tests.support.adk import event

GUIDE = Path(__file__).parents[2] / "docs" / "azure.md"
SESSIONS = "/apps/greeter/users/user/sessions"


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    """The tests inspect what the commands stored, and the commands get no settings either."""
    for name in [name for name in os.environ if name.startswith("COSMOSDB_")]:
        monkeypatch.delenv(name)


def follow_the_guide(server):
    """The conversation of docs/azure.md, as it is printed there."""
    printed = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    (code,) = (each for each in printed if "urllib" in each)
    exec(code.replace("http://localhost:8000", server.url), {})
    talk = server.get("/apps/greeter/users/ada/sessions/first")
    assert texts(talk["events"])[-1] == "Nice to meet you, Ada."


def test_api_server_finds_the_session_again_after_a_restart(tmp_path):
    uri = "cosmosdb://embedded/sessions.db"
    with AdkServer("api_server", uri, agents_folder(tmp_path / "agents")) as server:
        server.post(f"{SESSIONS}/first", {"mood": "curious"})
        assert texts(server.run("first", "My name is Ada.")) == ["Nice to meet you, Ada."]
        before = server.get(f"{SESSIONS}/first")
        follow_the_guide(server)
    assert tmp_path.joinpath("sessions.db").exists()

    with_yaml = agents_folder(tmp_path / "agents_yaml", services_yaml=True)
    with AdkServer("api_server", uri, with_yaml) as server:
        assert [session["id"] for session in server.get(SESSIONS)] == ["first"]
        after = server.get(f"{SESSIONS}/first")
        assert after == before
        assert texts(after["events"]) == ["My name is Ada.", "Nice to meet you, Ada."]
        assert after["state"]["mood"] == "curious"
        assert after["state"]["user:name"] == "Ada"
        assert texts(server.run("first", "Do you know me?")) == ["Hello, Ada."]


def test_adk_run_keeps_its_session(tmp_path):
    agents = agents_folder(tmp_path / "agents")
    run = subprocess.run(
        [ADK, "run", "--session_service_uri=cosmosdb://embedded/s.db", agents / "greeter"],
        input="My name is Ada.\nDo you know me?\nexit\n",
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "[greeter]: Nice to meet you, Ada." in run.stdout
    assert "[greeter]: Hello, Ada." in run.stdout

    async def stored():
        async with CosmosSessionService.embedded(str(tmp_path / "s.db")) as service:
            return (await service.list_sessions(app_name="greeter")).sessions

    (session,) = asyncio.run(stored())
    assert session.state == {"introduced": True, "user:name": "Ada"}


def test_registration_imports_nothing_that_could_be_missing():
    code = "import sys, cosmosservice.adk; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "google.adk.cli.service_registry" in loaded
    assert not loaded & {"azure.cosmos", "azure.identity", "cosmos_emulator", "lark"}


def test_uri_with_a_key_is_refused():
    uri = "cosmosdb://contoso.documents.azure.com/adk?key=c2VjcmV0"
    with pytest.raises(ConfigurationError, match="The URI contains a key") as caught:
        create_session_service_from_options(base_dir=".", session_service_uri=uri)
    assert "c2VjcmV0" not in str(caught.value)


async def test_sessions_of_a_uri_may_become_memories_by_themselves(tmp_path):
    uri = f"cosmosdb://embedded/{tmp_path / 's.db'}"
    sessions = session_service(f"{uri}?remember=true")
    async with sessions, memory_service(uri) as memory:
        ann = {"app_name": "app", "user_id": "ann"}
        session = await sessions.create_session(**ann)
        await sessions.append_event(session, event("The garage code is 2011"))
        await sessions.flush()
        assert len((await memory.search_memory(**ann, query="garage")).memories) == 1
    with pytest.raises(ConfigurationError, match="remember is true or false"):
        session_service(f"{uri}?remember=maybe")
