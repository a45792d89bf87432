"""What the application's log gets at INFO, the level of ADK's commands."""

from __future__ import annotations

import logging

import pytest
from google.genai import types

from cosmosservice import (
    CosmosAccount,
    CosmosArtifactService,
    CosmosMemoryService,
    CosmosSessionService,
)
from tests.support.adk import event

HTTP_LOGGERS = (
    "azure",
    "azure.cosmos",
    "azure.cosmos._cosmos_http_logging_policy",
    "azure.core",
    "azure.core.pipeline",
    "azure.core.pipeline.policies",
    "azure.core.pipeline.policies.http_logging_policy",
)
USER = {"app_name": "app", "user_id": "secret-user"}
NAME = {**USER, "session_id": "secret-session"}


@pytest.fixture(autouse=True)
def as_at_the_start(monkeypatch, caplog):
    """Only the root logger is configured, at INFO."""
    for name in HTTP_LOGGERS:
        monkeypatch.setattr(logging.getLogger(name), "level", logging.NOTSET)
    logging.getLogger().manager._clear_cache()
    caplog.set_level(logging.INFO)
    yield
    monkeypatch.undo()
    logging.getLogger().manager._clear_cache()


async def use_everything():
    async with CosmosAccount(endpoint="embedded::memory:") as account:
        sessions = CosmosSessionService(account=account)
        memory = CosmosMemoryService(account=account)
        artifacts = CosmosArtifactService(account=account)
        session = await sessions.create_session(**NAME)
        await sessions.append_event(session, event("I like tea"))
        await memory.add_session_to_memory(session)
        await memory.search_memory(**USER, query="tea")
        large = types.Part.from_bytes(data=b"x" * 100_000, mime_type="image/png")
        await artifacts.save_artifact(**NAME, filename="a.png", artifact=large)
        await artifacts.load_artifact(**NAME, filename="a.png")
        async for _ in sessions.watch(app_name="app", since="beginning"):
            break
        await sessions.fork_session(**NAME, new_session_id="secret-fork")
        await sessions.delete_session(**NAME)
        await sessions.restore_session(**NAME)
        await sessions.purge_user(**USER, include_state=True)


async def test_only_the_connection_is_logged_at_info(caplog):
    await use_everything()
    assert [(record.name, record.msg) for record in caplog.records] == [
        ("cosmosservice", "Connected to %s, database %r.")
    ]
    assert "secret" not in caplog.text


@pytest.mark.parametrize("name", ["azure", "azure.cosmos._cosmos_http_logging_policy"])
async def test_an_application_that_wants_the_sdks_log_gets_it(caplog, name):
    logging.getLogger(name).setLevel(logging.INFO)
    await use_everything()
    assert any(record.name.startswith("azure.cosmos") for record in caplog.records)
