"""Documents of other versions, and broken ones, cost fields or an event, but never the session."""

import logging

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.genai import types
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosmosservice.data_converters import (
    UNREADABLE,
    decode_state,
    decode_value,
    event_to_fields,
    fields_to_event,
)
from tests.converters.support import events


def document() -> dict:
    return event_to_fields(
        Event(
            id="e1",
            timestamp=5.5,
            author="agent",
            invocation_id="i1",
            content=types.Content(
                role="model",
                parts=[
                    types.Part(text="hi"),
                    types.Part(function_call=types.FunctionCall(name="f", args={"a": (1,)})),
                ],
            ),
            actions=EventActions(state_delta={"d": b"x", "part": types.Part(text="p")}),
            usage_metadata=types.GenerateContentResponseUsageMetadata(prompt_token_count=5),
            grounding_metadata=types.GroundingMetadata(web_search_queries=["q"]),
        )
    )


def put(path, value):
    def change(fields):
        *steps, last = path
        for step in steps:
            fields = fields[step]
        fields[last] = value

    return change


NEWER = {
    "field of the event": put(["later"], {"a": 1}),
    "field of the actions": put(["actions", "later"], {"a": 1}),
    "field of a part": put(["content", "parts", 0, "later_field"], 1),
    "field of a call": put(["content", "parts", 1, "function_call", "later"], [1]),
    "field of the usage": put(["usage_metadata", "later"], 1),
    "field of a model in the state": put(["actions", "state_delta", "part", "later"], 1),
    "class": put(["content", "$class"], "google.genai.types.LaterContent"),
}


@pytest.mark.parametrize("change", NEWER.values(), ids=NEWER)
def test_what_a_newer_version_added_is_left_out(change, caplog):
    fields = document()
    change(fields)
    with caplog.at_level(logging.INFO):
        assert fields_to_event(fields) == fields_to_event(document())
    assert not caplog.records


def test_several_unknown_things_at_once_are_left_out():
    fields = document()
    for change in NEWER.values():
        change(fields)
    fields["content"]["parts"].append({"later_kind": {"x": 1}})
    event = fields_to_event(fields)
    assert event.content.parts == [*fields_to_event(document()).content.parts, types.Part()]


def test_a_field_of_another_type_is_left_out_alone():
    fields = document()
    fields["usage_metadata"]["prompt_token_count"] = {"total": 5}
    fields["branch"] = ["a"]
    fields["content"]["parts"][1]["function_call"]["name"] = 5
    event = fields_to_event(fields)
    assert event.content.parts[0].text == "hi"
    assert event.content.parts[1].function_call.args == {"a": (1,)}
    assert event.actions.state_delta == {"d": b"x", "part": types.Part(text="p")}
    assert event.error_code is None


@pytest.mark.filterwarnings("ignore:.*is not a valid")
def test_an_unknown_member_of_an_enumeration_costs_at_most_its_field():
    fields = document()
    fields["finish_reason"] = "LATER_REASON"
    event = fields_to_event(fields)
    assert event.finish_reason in (None, "LATER_REASON")
    assert event.content == fields_to_event(document()).content


def test_an_unknown_tag_stays_what_it_is():
    state = {"a": {"$later": {"$int": "5"}}, "b": {"$datetime": "never"}, "c": {"$set": [[]]}}
    assert decode_state(state) == {**state, "a": {"$later": 5}}
    assert decode_value({"$ref": 3}) == {"$ref": 3}


def test_an_unreadable_document_gives_a_placeholder_and_one_error_without_its_content(caplog):
    broken = {
        "event_id": 17,
        "id": "doc",
        "timestamp": 9,
        "author": "agent",
        "invocation_id": "i1",
        "content": "SECRET",
        "actions": {"state_delta": "SECRET"},
        "event_fields": "SECRET",
    }
    event = fields_to_event(broken)
    assert event.error_code == UNREADABLE
    assert (event.id, event.timestamp, event.author, event.invocation_id) == (
        "doc",
        9.0,
        "agent",
        "i1",
    )
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "SECRET" not in caplog.text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["$int", "$class", "$dict", "$deep", "$ref", "$set", "$value", "a"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.data())
@pytest.mark.filterwarnings("ignore:.*is not a valid")
def test_no_document_raises(data):
    fields = event_to_fields(data.draw(events))
    for _ in range(data.draw(st.integers(1, 3))):
        outer = fields
        while True:
            key = data.draw(
                st.sampled_from(sorted(outer) if isinstance(outer, dict) else range(len(outer)))
            )
            inner = outer[key]
            if not inner or not isinstance(inner, (dict, list)) or data.draw(st.booleans()):
                break
            outer = inner
        outer[key] = data.draw(json_values)
    assert isinstance(fields_to_event(fields), Event)
