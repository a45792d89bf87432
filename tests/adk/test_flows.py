"""ADK's longer flows: questions that a later turn answers, rewinds, and summaries."""

from __future__ import annotations

import pytest
from fastapi.openapi.models import APIKey, APIKeyIn
from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.apps import ResumabilityConfig
from google.adk.apps.app import EventsCompactionConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from google.adk.auth import AuthConfig, AuthCredential, AuthCredentialTypes
from google.adk.events import Event
from google.adk.tools import FunctionTool, LongRunningFunctionTool, ToolContext
from google.genai import types

from tests.adk.stage import Stage
from tests.support.adk import ADK
from tests.support.scripted import call, user

# ADK 2 deprecates these kinds of agents in favour of Workflow.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def answer(asked: types.FunctionCall, response: dict) -> types.Content:
    """The user's answer to a call that waits for it."""
    return user(
        types.Part(
            function_response=types.FunctionResponse(
                id=asked.id, name=asked.name, response=response
            )
        )
    )


def calls_of(events: list[Event], name: str) -> list[types.FunctionCall]:
    return [asked for event in events for asked in event.get_function_calls() if asked.name == name]


def remember(fact: str, tool_context: ToolContext) -> str:
    """Remembers a fact."""
    tool_context.state["facts"] = [*tool_context.state.get("facts", []), fact]
    tool_context.state["user:last"] = fact
    return "ok"


async def test_rewind_takes_back_turns_and_the_conversation_goes_on(same_as_in_memory):
    async def scene(stage: Stage) -> None:
        model = stage.model(
            call("remember", fact="a"),
            "Noted a.",
            call("remember", fact="b"),
            "Noted b.",
            call("remember", fact="c"),
            "Noted c.",
        )
        stage.enact(LlmAgent(name="memo", model=model, tools=[remember]))
        await stage.say("Remember a.")
        second = await stage.say("Remember b.")
        await stage.rewind(second[0].invocation_id)
        await stage.say("Remember c.")

    seen = await same_as_in_memory(scene)
    assert seen["state"] == {"facts": ["a", "c"], "user:last": "c"}
    assert len(seen["stored"]) == 13
    assert "rewind_before_invocation_id" in seen["stored"][8]["actions"]


async def test_rewind_to_the_beginning_clears_the_state(same_as_in_memory):
    async def scene(stage: Stage) -> None:
        model = stage.model(call("remember", fact="a"), "Noted a.", "Hello again.")
        stage.enact(LlmAgent(name="memo", model=model, tools=[remember]))
        first = await stage.say("Remember a.")
        await stage.rewind(first[0].invocation_id)
        await stage.say("Hello.")

    seen = await same_as_in_memory(scene)
    assert seen["state"] == {"facts": None, "user:last": "a"}


async def test_old_turns_are_compacted_into_a_summary(same_as_in_memory):
    async def scene(stage: Stage) -> None:
        stage.enact(
            LlmAgent(name="talker", model=stage.model("one", "two", "three", "four", "five")),
            events_compaction_config=EventsCompactionConfig(
                compaction_interval=2,
                overlap_size=1,
                summarizer=LlmEventSummarizer(llm=stage.model("summary 1", "summary 2")),
            ),
        )
        for said in "abcde":
            await stage.say(said)

    seen = await same_as_in_memory(scene)
    assert sum("compaction" in event["actions"] for event in seen["stored"]) == 2


async def test_a_paused_run_is_resumed_with_the_answer(same_as_in_memory):
    def approve(amount: int) -> dict | None:
        """Asks a person: there is no answer yet."""
        # ADK 2 pauses only for a tool that returns nothing, ADK 1 only for one that returns
        # something.
        return None if ADK >= (2, 0) else {"status": "pending"}

    async def scene(stage: Stage) -> None:
        asking = LlmAgent(
            name="asking",
            model=stage.model(call("approve", amount=5), "Approved."),
            tools=[LongRunningFunctionTool(approve)],
            output_key="approval",
        )
        telling = LlmAgent(name="telling", model=stage.model("Done."))
        stage.enact(
            SequentialAgent(name="office", sub_agents=[asking, telling]),
            resumability_config=ResumabilityConfig(is_resumable=True),
        )
        paused = await stage.say("Spend 5.")
        await stage.say(
            answer(calls_of(paused, "approve")[0], {"status": "approved"}),
            invocation_id=paused[0].invocation_id,
        )

    seen = await same_as_in_memory(scene)
    assert any(event.get("long_running_tool_ids") for event in seen["stored"])
    assert any(event["actions"].get("agent_state") for event in seen["stored"])
    assert seen["state"] == {"approval": "Approved."}


async def test_a_run_that_broke_off_is_resumed_where_it_stopped(same_as_in_memory):
    def broken() -> None:
        raise ConnectionError("no model")

    async def scene(stage: Stage) -> None:
        first = LlmAgent(name="first", model=stage.model("one"), output_key="first")
        second = LlmAgent(name="second", model=stage.model(broken, "two"), output_key="second")
        stage.enact(
            SequentialAgent(name="both", sub_agents=[first, second]),
            resumability_config=ResumabilityConfig(is_resumable=True),
        )
        try:
            await stage.say("Go.")
        except ConnectionError:
            pass
        else:
            raise AssertionError("the failure of the model was not reported")
        broken_off = (await stage.session()).events[-1].invocation_id
        await stage.say(None, invocation_id=broken_off)

    seen = await same_as_in_memory(scene)
    assert seen["state"] == {"first": "one", "second": "two"}


async def test_a_long_running_tool_reports_progress_and_result(same_as_in_memory):
    def build() -> dict:
        """Starts something slow."""
        return {"status": "started"}

    async def scene(stage: Stage) -> None:
        model = stage.model(call("build"), "Started.", "Half way.", "Finished.")
        stage.enact(LlmAgent(name="builder", model=model, tools=[LongRunningFunctionTool(build)]))
        asked = calls_of(await stage.say("Build."), "build")[0]
        for status in ("half", "done"):
            await stage.say(answer(asked, {"status": status}))

    await same_as_in_memory(scene)


async def test_a_tool_waits_for_confirmation(same_as_in_memory):
    spent: list[int] = []

    def spend(amount: int, tool_context: ToolContext) -> dict:
        """Spends money."""
        spent.append(amount)
        tool_context.state["spent"] = amount
        return {"spent": amount}

    async def scene(stage: Stage) -> None:
        model = stage.model(
            call("spend", amount=5), "Spent 5.", call("spend", amount=7), "Refused."
        )
        stage.enact(
            LlmAgent(
                name="cashier", model=model, tools=[FunctionTool(spend, require_confirmation=True)]
            )
        )
        for amount, confirmed in ((5, True), (7, False)):
            came = await stage.say(f"Spend {amount}.")
            asked = calls_of(came, "adk_request_confirmation")[0]
            await stage.say(answer(asked, {"confirmed": confirmed}))

    seen = await same_as_in_memory(scene)
    assert spent == [5, 5]
    assert seen["state"] == {"spent": 5}
    assert any(event["actions"]["requested_tool_confirmations"] for event in seen["stored"])


async def test_a_tool_asks_for_a_credential_and_gets_it(same_as_in_memory):
    wanted = AuthConfig(
        auth_scheme=APIKey(**{"type": "apiKey", "in": APIKeyIn.header, "name": "X-Key"}),
        raw_auth_credential=AuthCredential(
            auth_type=AuthCredentialTypes.API_KEY, api_key="to be asked for"
        ),
        credential_key="weather",
    )

    def weather(tool_context: ToolContext) -> dict:
        """Asks a service that wants a key."""
        credential = tool_context.get_auth_response(wanted)
        if credential is None:
            tool_context.request_credential(wanted)
            return {"status": "waiting"}
        tool_context.state["key_length"] = len(credential.api_key)
        return {"weather": "fine"}

    async def scene(stage: Stage) -> None:
        model = stage.model(call("weather"), "I need a key.", "It is fine.")
        stage.enact(LlmAgent(name="forecaster", model=model, tools=[weather]))
        came = await stage.say("How is the weather?")
        asked = calls_of(came, "adk_request_credential")[0]
        given = AuthConfig.model_validate(asked.args["authConfig"])
        given.exchanged_auth_credential = AuthCredential(
            auth_type=AuthCredentialTypes.API_KEY, api_key="secret"
        )
        await stage.say(answer(asked, given.model_dump(by_alias=True, exclude_none=True)))

    seen = await same_as_in_memory(scene)
    assert seen["state"]["key_length"] == 6
    assert any(event["actions"]["requested_auth_configs"] for event in seen["stored"])
