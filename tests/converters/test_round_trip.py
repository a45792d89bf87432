"""Everything that ADK can build is read back from the store unchanged."""

from collections import OrderedDict

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.genai import types
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cosmosservice.data_converters import (
    decode_state,
    decode_value,
    encode_state,
    encode_value,
    event_to_fields,
    fields_to_event,
)
from tests.converters.support import any_text, events, same, through_the_store, values

quick = settings(
    max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


@quick
@given(values)
def test_any_value_comes_back_as_it_was(value):
    assert same(decode_value(through_the_store(encode_value(value))), value)


@quick
@given(st.dictionaries(any_text, values, max_size=4))
def test_any_state_comes_back_as_it_was(state):
    document = encode_state(state)
    assert isinstance(document, dict)
    assert same(decode_state(through_the_store(document)), state)


@quick
@given(st.dictionaries(any_text, values, max_size=3), st.dictionaries(any_text, values, max_size=3))
def test_documents_of_states_merge_like_the_states(older, newer):
    assert same(decode_state(encode_state(older) | encode_state(newer)), older | newer)
    delta = event_to_fields(Event(author="a", actions=EventActions(state_delta=newer)))
    stored = delta["actions"].get("state_delta", {})
    assert same(decode_state(encode_state(older) | stored), older | newer)


@quick
@given(values, values)
def test_different_values_have_different_documents(left, right):
    if not same(left, right):
        assert encode_value(left) != encode_value(right) or repr(encode_value(left)) != repr(
            encode_value(right)
        )


@quick
@given(events)
def test_any_event_comes_back_as_it_was(event):
    assert same(fields_to_event(through_the_store(event_to_fields(event))), event)


@quick
@given(st.sampled_from(sorted(Event.model_fields)), values)
@example("turn_complete_reason", types.Part(text=""))
def test_an_event_whose_field_was_assigned_anything_comes_back_as_it_was(name, value):
    event = Event(author="a")
    setattr(event, name, value)
    assert same(fields_to_event(through_the_store(event_to_fields(event))), event)


@quick
@given(st.sampled_from(sorted(EventActions.model_fields)), values)
@example("requested_auth_configs", {b"": None})
@example("requested_auth_configs", OrderedDict())
def test_actions_whose_field_was_assigned_anything_come_back_as_they_were(name, value):
    event = Event(author="a")
    setattr(event.actions, name, value)
    assert same(fields_to_event(through_the_store(event_to_fields(event))), event)
