"""Every field that ADK gives an event is read back."""

from __future__ import annotations

import copy
import math
import pickle

import pytest
from fastapi.openapi.models import APIKey, APIKeyIn
from google.adk.auth import AuthConfig, AuthCredential, AuthCredentialTypes
from google.adk.auth.auth_credential import HttpAuth, HttpCredentials
from google.adk.events import Event, EventActions
from google.adk.events.event_actions import EventCompaction
from google.adk.events.ui_widget import UiWidget
from google.adk.models.cache_metadata import CacheMetadata
from google.adk.sessions import Session
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from tests.support.adk import event, reload

API_KEY = AuthConfig(
    auth_scheme=APIKey(**{"type": "apiKey", "in": APIKeyIn.header, "name": "X-Key"}),
    raw_auth_credential=AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key="k"),
    credential_key="stable",
)

CONTENT = types.Content(
    role="model",
    parts=[
        types.Part(text="thinking", thought=True, thought_signature=b"\x00\xffsignature"),
        types.Part(inline_data=types.Blob(data=bytes(range(256)), mime_type="image/png")),
        types.Part(file_data=types.FileData(file_uri="gs://b/o", mime_type="audio/wav")),
        types.Part(
            function_call=types.FunctionCall(
                id="call", name="tool", args={"num": "146", "none": None, "deep": {"x": [1.0, 1]}}
            )
        ),
        types.Part(
            function_response=types.FunctionResponse(
                id="call", name="tool", response={"result": None}
            )
        ),
        types.Part(executable_code=types.ExecutableCode(code="1+1", language="PYTHON")),
        types.Part(
            code_execution_result=types.CodeExecutionResult(outcome="OUTCOME_OK", output="2")
        ),
    ],
)

ACTIONS = {
    "skip_summarization": True,
    "state_delta": {"k": {"nested": None}, "user:u": 1, "app:a": False},
    "artifact_delta": {"file.txt": 0, "user:photo.png": 3},
    "transfer_to_agent": "other",
    "transfer_reason": "it knows more",
    "escalate": False,
    "requested_auth_configs": {"call": API_KEY},
    "requested_tool_confirmations": {
        "call": ToolConfirmation(hint="sure?", confirmed=False, payload={"amount": 1.0})
    },
    "compaction": EventCompaction(
        start_timestamp=1.5,
        end_timestamp=2.5,
        compacted_content=types.Content(role="model", parts=[types.Part(text="summary")]),
    ),
    "end_of_agent": True,
    "agent_state": {"times_looped": 2, "current": None},
    "rewind_before_invocation_id": "earlier",
    "route": ["left", 1, True],
    "render_ui_widgets": [UiWidget(id="w", provider="mcp", payload={"resource_uri": "ui://w"})],
    "set_model_response": {"answer": [1, 1.0, None]},
}

FIELDS = {
    "model_version": "model-1",
    "content": CONTENT,
    "grounding_metadata": types.GroundingMetadata(
        web_search_queries=["q"],
        search_entry_point=types.SearchEntryPoint(sdk_blob=b"\xfe blob", rendered_content="<b>"),
    ),
    "partial": False,
    "turn_complete": True,
    "finish_reason": types.FinishReason.STOP,
    "error_code": "E1",
    "error_message": "it failed",
    "interrupted": True,
    "custom_metadata": {"key": {"none": None, "list": []}},
    "usage_metadata": types.GenerateContentResponseUsageMetadata(
        prompt_token_count=1, candidates_token_count=1, total_token_count=2
    ),
    "live_session_resumption_update": types.LiveServerSessionResumptionUpdate(
        new_handle="h", resumable=True
    ),
    "live_session_id": "live-1",
    "go_away": types.LiveServerGoAway(time_left="10s"),
    "input_transcription": types.Transcription(text="in", finished=True),
    "output_transcription": types.Transcription(text="out", finished=False),
    "avg_logprobs": -0.1 - 0.2,
    "logprobs_result": types.LogprobsResult(
        chosen_candidates=[
            types.LogprobsResultCandidate(token="a", token_id=1, log_probability=-0.1)
        ]
    ),
    "cache_metadata": CacheMetadata(
        cache_name="projects/p/locations/l/cachedContents/1",
        expire_time=3.5,
        fingerprint="f",
        invocations_used=1,
        contents_count=2,
    ),
    "citation_metadata": types.CitationMetadata(citations=[types.Citation(title="t", uri="u")]),
    "interaction_id": "interaction-1",
    "environment_id": "environment-1",
    "invocation_id": "invocation-1",
    "author": "agent",
    "output": {"any": [1, None, "x"]},
    "long_running_tool_ids": {"b", "a"},
    "branch": "root.child",
    "isolation_scope": "scope-1",
    "id": "event-1",
    "timestamp": 1757296962.409481,
}


def full_event() -> Event:
    """An event with a value in every field of this version of ADK."""
    fields = dict(FIELDS)
    if "turn_complete_reason" in Event.model_fields:
        fields["turn_complete_reason"] = list(types.TurnCompleteReason)[-1]
    if "interaction_status" in Event.model_fields:
        fields["interaction_status"] = list(types.InteractionStatus)[-1]
    if "voice_activity" in Event.model_fields:
        fields["voice_activity"] = types.VoiceActivity(
            voice_activity_type=list(types.VoiceActivityType)[-1]
        )
    if "node_info" in Event.model_fields:
        fields["node_info"] = Event.model_fields["node_info"].annotation(path="root/child@1")
    actions = {name: value for name, value in ACTIONS.items() if name in EventActions.model_fields}
    fields["actions"] = EventActions(**actions)
    return Event(**{name: value for name, value in fields.items() if name in Event.model_fields})


def test_the_full_event_leaves_no_field_out():
    full = full_event()
    assert set(Event.model_fields) - full.model_fields_set == set()
    assert set(EventActions.model_fields) - full.actions.model_fields_set == set()


async def test_every_field_survives(service, app):
    session = await service.create_session(app_name=app, user_id="ann")
    full = full_event()
    await service.append_event(session, full.model_copy(deep=True))
    stored = (await reload(service, session)).events[0]
    for name in Event.model_fields:
        assert getattr(stored, name) == getattr(full, name), name
    for name in EventActions.model_fields:
        assert getattr(stored.actions, name) == getattr(full.actions, name), name
    assert stored == full


async def test_events_that_were_read_are_events_in_every_way(service, app):
    """ADK and its API server compare, copy, pickle, dump and validate them."""
    session = await service.create_session(app_name=app, user_id="ann")
    full = full_event()
    await service.append_event(session, full.model_copy(deep=True))

    async def read() -> Event:
        return (await reload(service, session)).events[0]

    assert isinstance(await read(), Event)
    assert full == await read()
    assert copy.deepcopy(await read()) == full
    assert (await read()).model_copy(deep=True) == full
    assert (await read()).model_copy(update={"author": "x"}).content == full.content
    assert pickle.loads(pickle.dumps(await read())) == full
    assert (await read()).model_dump() == full.model_dump()
    dumped, expected = (each.model_dump_json(by_alias=True) for each in (await read(), full))
    assert sorted(dumped) == sorted(expected)  # it contains a set, which has no order
    assert (await read()).model_fields_set >= {"content", "actions", "id"}
    assert sorted(repr(await read())) == sorted(repr(full))
    assert (await read()).get_function_calls() == full.get_function_calls()
    assert (await read()).is_final_response() == full.is_final_response()
    changed = await read()
    changed.author = "somebody"
    assert changed != full
    assert changed.content == full.content
    stored = await reload(service, session)
    assert stored.model_dump()["events"] == [full.model_dump()]
    sent = stored.model_dump_json(by_alias=True, exclude_none=True)
    assert Session.model_validate_json(sent).events == [full]


async def test_an_event_with_nothing_in_it_survives(service, app):
    session = await service.create_session(app_name=app, user_id="ann")
    bare = Event(author="user")
    await service.append_event(session, bare)
    assert (await reload(service, session)).events == [bare]


@pytest.mark.parametrize(
    "credential",
    [
        AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key="k"),
        AuthCredential(
            auth_type=AuthCredentialTypes.HTTP,
            http=HttpAuth(scheme="bearer", credentials=HttpCredentials(token="t")),
        ),
    ],
    ids=["api_key", "http"],
)
async def test_a_request_for_credentials_comes_back_as_the_same_kind(service, app, credential):
    asked = API_KEY.model_copy(update={"raw_auth_credential": credential})
    session = await service.create_session(app_name=app, user_id="ann")
    await service.append_event(
        session,
        Event(author="agent", actions=EventActions(requested_auth_configs={"call": asked})),
    )
    stored = (await reload(service, session)).events[0].actions.requested_auth_configs["call"]
    read = AuthConfig.model_validate(stored)
    assert read == asked
    assert type(read.auth_scheme) is APIKey
    assert read.auth_scheme.in_ is APIKeyIn.header


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf], ids=repr)
async def test_numbers_that_json_lacks_survive_in_typed_fields(service, app, value):
    session = await service.create_session(app_name=app, user_id="ann")
    await service.append_event(session, event("hello", avg_logprobs=value))
    assert repr((await reload(service, session)).events[0].avg_logprobs) == repr(value)


@pytest.mark.parametrize("text", ["", "a\ud800b", "\x00", "☃" * 1000, "  padded\n"], ids=ascii)
async def test_any_text_survives(service, app, text):
    session = await service.create_session(app_name=app, user_id="ann")
    await service.append_event(session, event(text))
    assert (await reload(service, session)).events[0].content.parts[0].text == text


async def test_an_image_of_several_megabytes_survives(service, app):
    image = bytes(range(256)) * (3 * 4096)
    session = await service.create_session(app_name=app, user_id="ann", state={"k": 0})
    await service.append_event(session, event("before"))
    content = types.Content(
        role="user", parts=[types.Part.from_bytes(data=image, mime_type="image/png")]
    )
    await service.append_event(session, event(content=content, delta={"k": 1}))
    await service.append_event(session, event("after"))
    stored = await reload(service, session)
    assert stored.events[1].content == content
    assert len(stored.events) == 3
    assert stored.state == {"k": 1}


async def test_a_wide_and_deep_state_survives(service, app):
    deep: dict = {}
    for n in range(40):
        deep = {"level": n, "inner": deep}
    delta = {"deep": deep, **{f"key {n}": n for n in range(500)}}
    session = await service.create_session(app_name=app, user_id="ann")
    await service.append_event(session, event("set", delta=delta))
    assert (await reload(service, session)).state == delta
