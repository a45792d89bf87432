"""ADK's Runner, tools and web server, with our memory service."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from google.adk.agents import LlmAgent
from google.adk.cli.fast_api import get_fast_api_app
from google.adk.cli.service_registry import get_service_registry
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import load_memory, preload_memory
from pydantic import PrivateAttr
from pydantic_core import to_jsonable_python
from starlette.testclient import TestClient

import cosmosservice.adk  # noqa: F401
from cosmosservice import CosmosMemoryService
from tests.memory.raw import documents_of
from tests.memory.support import conversation
from tests.support.scripted import ScriptedModel, call, user

AGENTS = Path(__file__).parents[2] / "examples" / "agents"
WHO = {"app_name": "app", "user_id": "ann"}


async def talk(memory, model, *, tools=(), **callbacks):
    """One turn of an agent that has the memory. Returns its answer."""
    agent = LlmAgent(name="assistant", model=model, tools=list(tools), **callbacks)
    sessions = InMemorySessionService()
    runner = Runner(app_name="app", agent=agent, session_service=sessions, memory_service=memory)
    session = await sessions.create_session(**WHO)
    message = user("When was I in Lisbon?")
    return [
        each
        async for each in runner.run_async(
            user_id="ann", session_id=session.id, new_message=message
        )
    ]


class Watched(ScriptedModel):
    """Records what it was shown: tool results and the instructions, where older ADKs put
    memories."""

    _shown: list[str] = PrivateAttr(default_factory=list)

    async def generate_content_async(self, llm_request, stream=False):
        said = to_jsonable_python(llm_request.contents)
        self._shown.append(f"{said} {llm_request.config.system_instruction}")
        async for each in super().generate_content_async(llm_request, stream):
            yield each


@pytest.fixture
async def remembering(memory):
    await memory.add_session_to_memory(
        conversation("Have you ever been to Lisbon?", "Yes, last May!")
    )
    return memory


async def test_load_memory_gives_the_model_what_was_said(remembering):
    model = Watched(replies=[call("load_memory", query="Lisbon"), "Last May."])
    await talk(remembering, model, tools=[load_memory])
    assert "Yes, last May!" in model._shown[1]


async def test_preload_memory_shows_it_before_the_model_is_asked(remembering, emulator):
    model = Watched(replies=[call("load_memory", query="Lisbon"), "Last May."])
    emulator.clear_requests()
    await talk(remembering, model, tools=[preload_memory, load_memory])
    assert len(model._shown) == 2
    for prompt in model._shown:
        assert "Yes, last May!" in prompt
    queries = [each for each in emulator.requests if each.operation == "query"]
    assert len(queries) == 4  # two searches: the second model call of the turn needs no new one


async def test_a_callback_adds_the_session_to_memory(memory, cosmos):
    async def remember(callback_context):
        await callback_context.add_session_to_memory()

    model = ScriptedModel(replies=["You told me: last May."])
    await talk(memory, model, after_agent_callback=remember)
    kept = [each for each in documents_of(cosmos) if each["kind"] == "memory"]
    assert sorted(each["author"] for each in kept) == ["assistant", "user"]


@pytest.fixture
def server(tmp_path, monkeypatch):
    # A process can set its tracer provider only once, and this server must not do it.
    monkeypatch.setattr("opentelemetry.trace.set_tracer_provider", lambda **_: None)
    uri = f"cosmosdb://embedded/{tmp_path / 'agent.db'}"
    app = get_fast_api_app(
        agents_dir=str(AGENTS),
        session_service_uri=uri,
        memory_service_uri=uri,
        artifact_service_uri="memory://",
        web=False,
    )
    with TestClient(app) as client:
        yield client


def test_the_registry_makes_ours(tmp_path):
    made = get_service_registry().create_memory_service(
        f"cosmosdb://embedded/{tmp_path / 'agent.db'}", agents_dir=str(AGENTS)
    )
    assert isinstance(made, CosmosMemoryService)


def test_the_memory_button_of_adk_web_stores_the_session_with_ours(server, tmp_path):
    from cosmos_emulator import Emulator

    sessions = "/apps/greeter/users/ann/sessions"
    assert server.post(f"{sessions}/s", json={}).status_code == 200
    turn = {
        "app_name": "greeter",
        "user_id": "ann",
        "session_id": "s",
        "new_message": {"role": "user", "parts": [{"text": "My name is Ada."}]},
    }
    assert server.post("/run", json=turn).status_code == 200
    answer = server.patch("/apps/greeter/users/ann/memory", json={"session_id": "s"})
    assert answer.status_code == 200
    with Emulator(str(tmp_path / "agent.db")) as emulator:
        kept = documents_of(emulator)
    assert "My name is Ada." in str(kept)


async def test_nobody_is_named_in_the_log(memory, caplog):
    with caplog.at_level(logging.INFO, "cosmosservice"):
        await memory.add_session_to_memory(
            conversation("Lisbon?", "Secretly!", user="ann-private", id="session-private")
        )
        await memory.search_memory(app_name="app", user_id="ann-private", query="lisbon")
    assert "private" not in caplog.text
    assert "Secretly" not in caplog.text
    assert "private" not in repr(memory)
