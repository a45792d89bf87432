"""Workflows (ADK 2.0 and later): routes, parallel nodes that join, questions to the user."""

from __future__ import annotations

from google.adk.agents import LlmAgent
from google.adk.events import Event, RequestInput
from google.adk.workflow import START, JoinNode, Workflow
from google.genai import types

from tests.adk.stage import Stage
from tests.support.scripted import user


def measure(node_input) -> Event:
    """Sends long messages another way than short ones."""
    text = node_input.parts[0].text
    return Event(output=text, route="long" if len(text) > 5 else "short", state={"text": text})


def shout(node_input: str) -> str:
    return node_input.upper()


def reverse(node_input: str) -> dict:
    return {"reversed": node_input[::-1], "none": None}


async def test_nodes_route_run_side_by_side_and_join(same_as_in_memory):
    async def scene(stage: Stage) -> None:
        joined = JoinNode(name="joined")
        teller = LlmAgent(name="teller", model=stage.model("told", "told again"), output_key="told")
        stage.enact(
            Workflow(
                name="flow",
                edges=[
                    (START, measure, {"long": (shout, reverse), "short": teller}),
                    ((shout, reverse), joined),
                ],
            )
        )
        await stage.say("hi")
        await stage.say("a long message")

    seen = await same_as_in_memory(scene, by=lambda event: event.node_info.path)
    assert seen["state"]["told"] == "told"
    assert seen["state"]["text"] == "a long message"
    assert any(event.get("output") == "A LONG MESSAGE" for event in seen["stored"])


async def test_a_node_asks_the_user_and_goes_on_with_the_answer(same_as_in_memory):
    async def ask(node_input):
        yield RequestInput(interrupt_id="colour", message="Which colour?")

    def paint(node_input) -> Event:
        return Event(output=f"painted {node_input}", state={"user:colour": node_input})

    async def scene(stage: Stage) -> None:
        stage.enact(Workflow(name="flow", edges=[(START, ask, paint)]))
        paused = await stage.say("Paint.")
        asked = next(call for event in paused for call in event.get_function_calls())
        reply = types.FunctionResponse(id=asked.id, name=asked.name, response={"result": "blue"})
        await stage.say(
            user(types.Part(function_response=reply)), invocation_id=paused[0].invocation_id
        )

    seen = await same_as_in_memory(scene)
    assert "user:colour" in seen["state"]
