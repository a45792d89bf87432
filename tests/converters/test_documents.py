"""What is stored is readable, and values that cannot be stored are handled."""

import enum
import json
import logging
import math
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from fastapi.openapi.models import APIKey, APIKeyIn, HTTPBearer
from google.adk.auth.auth_credential import AuthCredential, AuthCredentialTypes
from google.adk.auth.auth_schemes import ExtendedOAuth2
from google.adk.auth.auth_tool import AuthConfig
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.genai import types
from pydantic import BaseModel

from cosmosservice.data_converters import (
    ENVELOPE,
    decode_state,
    decode_value,
    encode_state,
    encode_value,
    event_to_fields,
    events,
    fields_to_event,
)
from tests.converters.support import depth, same, through_the_store


def there_and_back(event: Event) -> Event:
    return fields_to_event(through_the_store(event_to_fields(event)))


def test_an_event_reads_like_the_schema():
    event = Event(
        id="e1",
        timestamp=1757296962.0,
        author="agent",
        invocation_id="i1",
        partial=False,
        content=types.Content(
            role="model",
            parts=[
                types.Part(text="Hello"),
                types.Part(
                    function_call=types.FunctionCall(id="c", name="f", args={"n": None, "m": 1.5})
                ),
                types.Part(
                    function_response=types.FunctionResponse(
                        id="c", name="f", response={"result": None}
                    )
                ),
                types.Part(inline_data=types.Blob(data=b"\xff\x00", mime_type="image/png")),
            ],
        ),
        actions=EventActions(state_delta={"random_num": "146", "none": None}),
        long_running_tool_ids={"b", "a"},
        finish_reason=types.FinishReason.STOP,
    )
    fields = event_to_fields(event)
    fields.pop("node_info", None)
    assert fields == {
        "event_id": "e1",
        "timestamp": 1757296962.0,
        "author": "agent",
        "invocation_id": "i1",
        "partial": False,
        "content": {
            "role": "model",
            "parts": [
                {"text": "Hello"},
                {"function_call": {"id": "c", "name": "f", "args": {"n": None, "m": 1.5}}},
                {"function_response": {"id": "c", "name": "f", "response": {"result": None}}},
                {"inline_data": {"data": "/wA=", "mime_type": "image/png"}},
            ],
        },
        "actions": {"state_delta": {"random_num": "146", "none": None}},
        "long_running_tool_ids": ["a", "b"],
        "finish_reason": "STOP",
    }
    assert there_and_back(event) == event


def test_state_keeps_its_keys_and_shows_its_values():
    state = {
        "n": 1,
        "app:when": datetime(2025, 1, 27, 10, 30, tzinfo=UTC),
        "user:price": Decimal("1.10"),
        "id": UUID(int=7),
        "one": 1.0,
        "big": 2**53 + 1,
        "pair": (1, "a"),
        "a.b/c~d$": {"$x": 1, "y": b"\x00"},
        "nan": math.nan,
    }
    document = encode_state(state)
    assert document == {
        "n": 1,
        "app:when": {"$datetime": "2025-01-27T10:30:00+00:00"},
        "user:price": {"$decimal": "1.10"},
        "id": {"$uuid": "00000000-0000-0000-0000-000000000007"},
        "one": {"$float": 1.0},
        "big": {"$int": "9007199254740993"},
        "pair": {"$tuple": [1, "a"]},
        "a.b/c~d$": {'$:"$x"': 1, "y": {"$bytes": "AA=="}},
        "nan": {"$float": "nan"},
    }
    assert same(decode_state(through_the_store(document)), state)


AWKWARD = {
    "one key like a tag": {"$int": "1"},
    "empty key": {"": 1},
    "surrogate key": {"\ud800": 1},
    "keys of other types": {"a": {1: "a", "1": "b", None: "c", False: "d", (1, 2): "e", 1.5: "f"}},
    "like a model": {"$class": "google.genai.types.Part", "text": "mine"},
    "like an escaped key": {"$:1": 1, "a": {1: "$:1", "$:1": 2}, "$:": 2},
    "like tags": {"a": {"$tuple": [[1, 2]]}, "b": {"$deep": [{"$ref": 0}]}, "c": {"$value": 1}},
    "surrogates": {"a": "\ud83d\ude00 is two characters, 😀 one", "\\ud800": "\\ud800"},
    "floats": {"zero": -0.0, "huge": 1e300, "inf": -math.inf, "tiny": 5e-324},
    "integers": {"edge": [2**53, -(2**53), 2**53 + 1, -(2**53) - 1], "long": -(10**5000)},
    "fold": {"at": datetime(2025, 10, 26, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1)},
    "models": {"part": types.Part(text="x"), "why": types.FinishReason.STOP, "set": {(1, 2), "a"}},
    "nothing": {},
}


@pytest.mark.parametrize("state", AWKWARD.values(), ids=AWKWARD)
def test_awkward_states_come_back(state):
    assert same(decode_state(through_the_store(encode_state(state))), state)


def test_zones_keep_their_rules():
    moment = datetime(2025, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    assert decode_value(encode_value(moment)).tzinfo is moment.tzinfo
    unknown = {"$datetime": ["2025-07-01T12:00:00+02:00", "Mars/Olympus", 0]}
    assert decode_value(unknown) == moment


def test_auth_configs_come_back_as_the_scheme_they_were():
    for scheme in (
        APIKey(**{"name": "k", "in": APIKeyIn.header, "x-extra": 1, "$odd": [1.0], "": 2}),
        HTTPBearer(bearerFormat="jwt"),
        ExtendedOAuth2(flows={"implicit": {"authorizationUrl": "u", "scopes": {"a": "b"}}}),
    ):
        config = AuthConfig(
            auth_scheme=scheme,
            raw_auth_credential=AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key="x"),
        )
        event = Event(author="a", actions=EventActions(requested_auth_configs={"call": config}))
        back = there_and_back(event)
        assert back == event
        assert type(back.actions.requested_auth_configs["call"].auth_scheme) is type(scheme)


def test_auth_configs_stored_without_their_class_are_read_by_their_aliases():
    document = event_to_fields(Event(id="e", author="a"))
    document["actions"]["requested_auth_configs"] = {
        "call": {"auth_scheme": {"type": "apiKey", "in": "header", "name": "k"}}
    }
    config = fields_to_event(document).actions.requested_auth_configs["call"]
    assert config.auth_scheme == APIKey(**{"in": APIKeyIn.header, "name": "k"})


def test_content_of_a_derived_class_keeps_its_path_and_its_class():
    event = Event(author="a", content=types.UserContent("hi"))
    fields = event_to_fields(event)
    assert fields["content"]["parts"] == [{"text": "hi"}]
    assert type(there_and_back(event).content) is types.UserContent


def test_private_attributes_come_back():
    usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=5)
    usage._initial_prompt_token_count = 3
    assert there_and_back(Event(author="a", usage_metadata=usage)).usage_metadata == usage


def test_fields_named_like_the_envelope_survive(monkeypatch):
    class Later(Event):
        seq: int = 0
        ttl: str | None = None
        event_fields: dict[str, int] | None = None

    monkeypatch.setattr(events, "Event", Later)
    event = Later(author="a", seq=5, ttl="x", event_fields={"a": 1})
    fields = event_to_fields(event)
    assert not ENVELOPE & fields.keys()
    document = {**fields, "id": "doc", "seq": 99, "ttl": 60, "session_id": "s", "_ts": 1}
    assert fields_to_event(document) == event


def test_documents_share_nothing_with_the_event():
    event = Event(
        author="a", actions=EventActions(state_delta={"list": [[1]]}), custom_metadata={"a": {}}
    )
    before = json.dumps(fields := event_to_fields(event))
    back = fields_to_event(fields)
    event.actions.state_delta["list"][0].append(2)
    event.custom_metadata["a"]["b"] = 1
    back.actions.state_delta["list"][0].append(3)
    assert json.dumps(fields) == before


# Values that JSON cannot represent


class Colour(enum.Enum):
    RED = "red"


class Mine(BaseModel):
    when: date


@dataclass
class Pair:
    left: tuple
    right: object


def test_classes_of_the_user_become_plain_values_and_are_never_imported(caplog):
    point = namedtuple("point", "x y")
    state = {
        "enum": Colour.RED,
        "model": Mine(when=date(2025, 1, 1)),
        "data": Pair((1,), Decimal(2)),
        "ordered": OrderedDict(a=1),
        "named": point(1, 2),
        "text": type("Text", (str,), {})("t"),
    }
    assert decode_state(encode_state(state)) == {
        "enum": "red",
        "model": {"when": date(2025, 1, 1)},
        "data": {"left": (1,), "right": Decimal(2)},
        "ordered": {"a": 1},
        "named": (1, 2),
        "text": "t",
    }
    assert not caplog.records
    named = {"$class": "subprocess.Popen", "args": "true"}
    assert decode_value(named) == {"args": "true"}
    assert decode_value({"$enum": ["tests.converters.test_documents.Colour", "red"]}) == "red"


class Hostile:
    def __repr__(self):
        raise RuntimeError("no")


def test_what_cannot_be_stored_becomes_its_repr_with_one_warning(caplog):
    delta = {"f": len, "deep": [{"g": print}], "odd": Hostile(), "n": (i for i in ()), "ok": 1}
    event = Event(author="a", actions=EventActions(state_delta=delta))
    with caplog.at_level(logging.WARNING):
        back = there_and_back(event)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    stored = back.actions.state_delta
    assert stored["f"] == repr(len)
    assert stored["deep"] == [{"g": repr(print)}]
    assert stored["odd"] == "<Hostile object>"
    assert stored["n"].startswith("<generator")
    assert stored["ok"] == 1


def nested(levels, kind):
    value = kind("end")
    for _ in range(levels):
        value = kind(value)
    return value


KINDS = {
    "lists": lambda v: [v],
    "dicts": lambda v: {"k": v},
    "tuples": lambda v: (v,),
    "odd dicts": lambda v: {1: v},
    "models": lambda v: types.FunctionCall(args={"a": v}),
    "dataclasses": lambda v: [Pair((), v)],
}


@pytest.mark.parametrize("levels", [60, 98, 200])
@pytest.mark.parametrize("kind", ["lists", "dicts", "tuples", "odd dicts", "models"])
def test_deep_values_survive(kind, levels):
    value = nested(levels, KINDS[kind])
    call = types.FunctionCall(args={"deep": value, "flat": 1})
    event = Event(
        author="a",
        content=types.Content(parts=[types.Part(function_call=call)]),
        actions=EventActions(state_delta={"deep": value}),
    )
    fields = event_to_fields(event)
    assert depth(fields) < 125
    assert fields["content"]["parts"][0]["function_call"]["args"]["flat"] == 1
    assert there_and_back(event) == event


def test_values_deeper_than_python_can_recurse_survive():
    value = nested(20_000, KINDS["lists"])
    back = decode_state(through_the_store(encode_state({"v": value})))["v"]
    levels = 0
    while isinstance(back, list):
        (back,) = back
        levels += 1
    assert (levels, back) == (20_001, "end")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_value_that_contains_itself_is_cut_there_with_a_warning(kind, caplog):
    loop = {"name": "loop"}
    loop["self"] = kind(loop)
    document = through_the_store(encode_state({"loop": loop, "other": 1}))
    assert len(caplog.records) == 1
    back = decode_state(document)
    assert back["other"] == 1
    assert back["loop"]["name"] == "loop"
