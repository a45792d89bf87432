"""All kinds of agents leave the same history on our service as on ADK's in-memory service."""

from __future__ import annotations

import pytest
from google.adk.agents import LlmAgent, LoopAgent, ParallelAgent, RunConfig, SequentialAgent
from google.adk.agents.run_config import StreamingMode
from google.adk.tools import ToolContext, exit_loop
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from tests.adk.stage import Stage
from tests.support.scripted import call

# ADK 2 deprecates these kinds of agents in favour of Workflow.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def count(step: int, tool_context: ToolContext) -> dict:
    """Adds to three counters and a note for this turn only."""
    for key in ("count", "user:count", "app:count"):
        tool_context.state[key] = tool_context.state.get(key, 0) + step
    tool_context.state["temp:note"] = "for this turn"
    return {"count": tool_context.state["count"], "none": None}


def fail() -> None:
    """Always fails."""
    raise RuntimeError("out of order")


async def test_a_conversation_with_tools(same_as_in_memory):
    async def scene(stage: Stage) -> None:
        model = stage.model(
            call("count", step=1),
            "Counted.",
            [call("count", step=2), call("count", step=3)],
            "Six.",
        )
        stage.enact(LlmAgent(name="counter", model=model, tools=[count]))
        await stage.say("Count.")
        await stage.say("Count twice.")

    seen = await same_as_in_memory(scene)
    assert seen["state"] == {"count": 6, "user:count": 6, "app:count": 6}
    assert len(seen["stored"]) == 8


async def test_a_conversation_that_streams(same_as_in_memory):
    async def scene(stage: Stage) -> None:
        stage.enact(LlmAgent(name="talker", model=stage.model("one two three", "four")))
        for said in ("a", "b"):
            await stage.say(said, run_config=RunConfig(streaming_mode=StreamingMode.SSE))

    seen = await same_as_in_memory(scene)
    assert len(seen["shown"]) == 6
    assert len(seen["stored"]) == 4


async def test_agents_in_sequence_hand_on_their_output(same_as_in_memory):
    async def scene(stage: Stage) -> None:
        writer = LlmAgent(name="writer", model=stage.model("draft"), output_key="draft")
        thinker = LlmAgent(name="thinker", model=stage.model("hm"), output_key="temp:thought")
        editor = LlmAgent(
            name="editor",
            model=stage.model("final"),
            instruction="Improve {draft} with {temp:thought}.",
            output_key="user:final",
        )
        stage.enact(SequentialAgent(name="desk", sub_agents=[writer, thinker, editor]))
        await stage.say("Write.")

    seen = await same_as_in_memory(scene)
    assert seen["state"] == {"draft": "draft", "user:final": "final"}


async def test_agents_in_a_loop_until_one_escalates(same_as_in_memory):
    async def scene(stage: Stage) -> None:
        critic = LlmAgent(
            name="critic",
            model=stage.model("again", call("exit_loop")),
            tools=[exit_loop],
            output_key="verdict",
        )
        worker = LlmAgent(
            name="worker", model=stage.model(call("count", step=1), "done"), tools=[count]
        )
        stage.enact(LoopAgent(name="loop", sub_agents=[critic, worker], max_iterations=5))
        await stage.say("Go.")

    seen = await same_as_in_memory(scene)
    assert any(event["actions"].get("escalate") for event in seen["stored"])


async def test_agents_in_parallel_each_on_its_branch(same_as_in_memory):
    """The order between branches is random. The order within each branch is not."""

    async def scene(stage: Stage) -> None:
        branches = [
            LlmAgent(
                name=f"branch_{name}",
                model=stage.model(call("note"), f"from {name}"),
                tools=[noting(name)],
                output_key=f"out_{name}",
            )
            for name in "abc"
        ]
        stage.enact(ParallelAgent(name="fan", sub_agents=branches))
        await stage.say("Go.")

    def noting(name: str):
        def note(tool_context: ToolContext) -> str:
            """Leaves a note."""
            tool_context.state[f"note_{name}"] = name
            tool_context.state[f"user:note_{name}"] = name
            return name

        return note

    same = await same_as_in_memory(scene, by=lambda event: event.branch or "")
    assert {event.get("branch") for event in same["stored"][1:]} == {
        "fan.branch_a",
        "fan.branch_b",
        "fan.branch_c",
    }
    assert len(same["stored"]) == 10
    assert len(same["state"]) == 9


async def test_a_transfer_to_a_sub_agent_lasts_into_the_next_turn(same_as_in_memory):
    async def scene(stage: Stage) -> None:
        joker = LlmAgent(
            name="joker",
            description="Tells jokes.",
            model=stage.model("a joke", "another joke"),
            output_key="joke",
        )
        root = LlmAgent(
            name="root",
            model=stage.model(call("transfer_to_agent", agent_name="joker")),
            sub_agents=[joker],
        )
        stage.enact(root)
        await stage.say("Make me laugh.")
        await stage.say("Again.")

    seen = await same_as_in_memory(scene)
    assert seen["stored"][-1]["author"] == "joker"
    assert seen["state"] == {"joke": "another joke"}


async def test_an_agent_used_as_a_tool(same_as_in_memory):
    async def scene(stage: Stage) -> None:
        expert = LlmAgent(
            name="expert", description="Knows.", model=stage.model("42"), output_key="answer"
        )
        root = LlmAgent(
            name="root",
            model=stage.model(call("expert", request="What is it?"), "It is 42."),
            tools=[AgentTool(expert)],
        )
        stage.enact(root)
        await stage.say("Ask.")

    seen = await same_as_in_memory(scene)
    assert seen["state"] == {"answer": "42"}


async def test_state_and_artifacts_changed_by_callbacks(same_as_in_memory):
    async def before(callback_context) -> None:
        callback_context.state["before"] = [None, 1.0]
        await callback_context.save_artifact("note.txt", types.Part(text="kept"))

    async def scene(stage: Stage) -> None:
        stage.enact(LlmAgent(name="a", model=stage.model("ok"), before_agent_callback=before))
        await stage.say("Go.", state_delta={"from_caller": {"x": None}, "user:from_caller": True})

    seen = await same_as_in_memory(scene)
    assert seen["state"] == {
        "before": [None, 1.0],
        "from_caller": {"x": None},
        "user:from_caller": True,
    }
    assert any(event["actions"]["artifact_delta"] for event in seen["stored"])


async def test_a_turn_that_fails_keeps_what_came_before_it(same_as_in_memory):
    def broken() -> None:
        raise ConnectionError("no model")

    async def scene(stage: Stage) -> None:
        model = stage.model(call("count", step=1), broken, "Better now.")
        stage.enact(LlmAgent(name="counter", model=model, tools=[count]))
        try:
            await stage.say("Count.")
        except ConnectionError:
            pass
        else:
            raise AssertionError("the failure of the model was not reported")
        await stage.say("And now?")

    seen = await same_as_in_memory(scene)
    assert seen["state"]["count"] == 1
    assert seen["stored"][-1]["content"]["parts"][0]["text"] == "Better now."


async def test_a_tool_that_fails_ends_the_turn(same_as_in_memory):
    async def scene(stage: Stage) -> None:
        stage.enact(LlmAgent(name="a", model=stage.model(call("fail"), "Next."), tools=[fail]))
        try:
            await stage.say("Go.")
        except RuntimeError:
            pass
        else:
            raise AssertionError("the failure of the tool was not reported")

    seen = await same_as_in_memory(scene)
    assert seen["stored"][0]["author"] == "user"


async def test_pictures_and_files_in_the_conversation(same_as_in_memory):
    picture = types.Part.from_bytes(data=bytes(range(256)), mime_type="image/png")

    async def scene(stage: Stage) -> None:
        stage.enact(
            LlmAgent(name="seer", model=stage.model([types.Part(text="I see"), picture], "Yes."))
        )
        await stage.say(types.Content(role="user", parts=[types.Part(text="Look:"), picture]))
        await stage.say("Sure?")

    await same_as_in_memory(scene)
