"""ADK's own ways to a store: the registry of `adk web`, and a migration."""

from __future__ import annotations

import asyncio
from urllib.parse import urlencode, urlsplit

import pytest
from click.testing import CliRunner
from google.adk.cli.service_registry import get_service_registry
from google.adk.sessions.sqlite_session_service import SqliteSessionService

import cosmosservice.adk  # noqa: F401  registers the scheme
from cosmosservice.cli.commands import cli
from tests.artifacts.kinds import text
from tests.support.adk import event, texts

WHO = {"app_name": "app", "user_id": "user"}


@pytest.fixture
def uri(cosmos, monkeypatch):
    """The store, as `adk web --session_service_uri` names it."""
    environment = cosmos.environment()
    monkeypatch.setenv("COSMOSDB_KEY", environment["COSMOSDB_KEY"])
    where = urlsplit(environment["COSMOSDB_ENDPOINT"])
    options = urlencode({"protocol": where.scheme, **cosmos.names})
    return f"cosmosdb://{where.netloc}/{cosmos.database}?{options}"


async def test_the_registry_of_adk_web_makes_services_on_it(uri, cosmos):
    registry = get_service_registry()
    sessions = registry.create_session_service(uri, agents_dir=".")
    artifacts = registry.create_artifact_service(uri, agents_dir=".")
    memory = registry.create_memory_service(uri, agents_dir=".")
    session = await sessions.create_session(**WHO)
    await sessions.append_event(session, event("green tea"))
    names = WHO | {"session_id": session.id}
    assert await artifacts.save_artifact(**names, filename="f", artifact=text("x")) == 0
    await memory.add_session_to_memory(await sessions.get_session(**names))
    for each in (sessions, artifacts, memory):
        await each.close()
    assert texts(await cosmos.sessions().get_session(**names)) == ["green tea"]
    assert await cosmos.artifacts().list_artifact_keys(**names) == ["f"]
    found = await cosmos.memory().search_memory(**WHO, query="tea")
    assert len(found.memories) == 1
    await cosmos.close()


async def test_sessions_of_another_service_are_copied_to_it(uri, cosmos, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = SqliteSessionService("source.db")
    for name in ("one", "two"):
        session = await source.create_session(**WHO, session_id=name, state={"user:n": name})
        await source.append_event(session, event(name, delta={"k": name}))
    command = ["migrate", "sqlite:///source.db", uri]
    result = await asyncio.to_thread(CliRunner().invoke, cli, command)
    assert result.exit_code == 0, result.output
    service = cosmos.sessions()
    for name in ("one", "two"):
        copied = await service.get_session(**WHO, session_id=name)
        assert (texts(copied), copied.state["k"]) == ([name], name)
    await cosmos.close()
