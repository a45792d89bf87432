"""ADK's own code with the artifact service: runners, rewinds, plugins, tools, servers."""

from __future__ import annotations

import base64

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.cli.service_registry import get_service_registry
from google.adk.plugins.save_files_as_artifacts_plugin import SaveFilesAsArtifactsPlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import ToolContext, load_artifacts
from google.genai import types

import cosmosservice.adk
from cosmosservice import CosmosArtifactService
from tests.adk.servers import AdkServer, agents_folder
from tests.artifacts.kinds import blob
from tests.support.scripted import ScriptedModel, call, user


async def write(title: str, content: str, tool_context: ToolContext) -> str:
    """Saves an artifact."""
    version = await tool_context.save_artifact(title, types.Part(text=content))
    return f"saved version {version}"


async def talk(runner, who, *parts):
    return [
        event
        async for event in runner.run_async(
            user_id=who["user_id"], session_id=who["session_id"], new_message=user(*parts)
        )
    ]


@pytest.fixture
def service(open_artifacts):
    return open_artifacts()


@pytest.fixture
async def sessions(who):
    made = InMemorySessionService()
    await made.create_session(**who)
    return made


async def test_a_rewind_brings_back_what_artifacts_were(service, sessions, who):
    replies = [
        call("write", title="plan", content="one"),
        "done",
        call("write", title="plan", content="two"),
        call("write", title="extra", content="x" * 500),
        "done",
    ]
    agent = LlmAgent(name="writer", model=ScriptedModel(replies=replies), tools=[write])
    app = App(name=who["app_name"], root_agent=agent)
    runner = Runner(app=app, session_service=sessions, artifact_service=service)
    await talk(runner, who, "write")
    second = await talk(runner, who, "write more")
    assert (await service.load_artifact(**who, filename="plan")).text == "two"
    await runner.rewind_async(
        user_id=who["user_id"],
        session_id=who["session_id"],
        rewind_before_invocation_id=second[0].invocation_id,
    )
    assert (await service.load_artifact(**who, filename="plan")).text == "one"
    assert await service.load_artifact(**who, filename="extra") is None
    assert await service.list_versions(**who, filename="plan") == [0, 1, 2]
    await runner.close()


async def test_uploaded_files_become_artifacts_and_no_private_uri_reaches_the_model(
    service, sessions, who
):
    model = ScriptedModel(replies=["seen"])
    agent = LlmAgent(name="reader", model=model)
    app = App(name=who["app_name"], root_agent=agent, plugins=[SaveFilesAsArtifactsPlugin()])
    runner = Runner(app=app, session_service=sessions, artifact_service=service)
    await talk(runner, who, "look", blob(b"\x89PNG" * 300, display_name="a/picture.png"))
    found = await service.load_artifact(**who, filename="a/picture.png")
    assert found.inline_data.data == b"\x89PNG" * 300
    shown = str(model.prompts)
    assert "picture.png" in shown
    assert "file_uri=" not in shown.replace("file_uri=None", "")
    await runner.close()


async def test_the_tool_that_loads_artifacts_finds_them(service, sessions, who):
    await service.save_artifact(**who, filename="notes", artifact=types.Part(text="remember"))
    model = ScriptedModel(replies=[call("load_artifacts", artifact_names=["notes"]), "read"])
    agent = LlmAgent(name="reader", model=model, tools=[load_artifacts])
    app = App(name=who["app_name"], root_agent=agent)
    runner = Runner(app=app, session_service=sessions, artifact_service=service)
    await talk(runner, who, "what is in my notes?")
    assert "remember" in str(model.prompts[-1])
    await runner.close()


def test_the_scheme_is_registered_for_artifacts(tmp_path):
    made = get_service_registry().create_artifact_service(
        f"cosmosdb://embedded/{tmp_path}/agent.db", agents_dir=str(tmp_path)
    )
    assert isinstance(made, CosmosArtifactService)
    assert isinstance(
        cosmosservice.adk.artifact_service(f"cosmosdb://embedded/{tmp_path}/a.db"),
        CosmosArtifactService,
    )


async def test_adk_api_server_keeps_artifacts_in_our_store(tmp_path, who):
    """ADK silently falls back to memory if it does not know the scheme."""
    agents = agents_folder(tmp_path / "agents")
    store = f"cosmosdb://embedded/{tmp_path}/agent.db"
    path = "/apps/greeter/users/user/sessions/s"
    with AdkServer("api_server", store, agents, f"--artifact_service_uri={store}") as server:
        server.post(path, {})
        saved = server.post(
            f"{path}/artifacts",
            {
                "filename": "picture.png",
                "artifact": {
                    "inlineData": {
                        "mimeType": "image/png",
                        "data": base64.b64encode(b"\x89PNG").decode(),
                    }
                },
            },
        )
        assert saved["version"] == 0
        assert server.get(f"{path}/artifacts") == ["picture.png"]
    async with CosmosArtifactService(uri=store) as service:
        found = await service.load_artifact(
            app_name="greeter", user_id="user", session_id="s", filename="picture.png"
        )
    assert found.inline_data.data == b"\x89PNG"
