"""A small document takes little time and memory to read, whatever it contains.

Every document here is read quickly or never, so the tests need no clock.
"""

import sys
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from google.adk.events.event import Event
from google.genai import types
from pydantic import BaseModel

from cosmosservice.data_converters import (
    decode_state,
    decode_value,
    encode_value,
    event_to_fields,
    fields_to_event,
    from_json,
    register_classes,
    to_json,
)
from tests.support.registry import nothing_registered

# Kept as they are: the tag names something impossible.
LEFT = {
    "decimal integer": {"$int": "9" * 5_000},
    "long decimal integer": {"$int": "9" * 3_000_000},
    "octal": {"$int": "0o" + "7" * 3_000_000},
    "not an integer": {"$int": "ten"},
    "huge exponent": {"$decimal": "1E+999999999"},
    "tiny exponent": {"$decimal": "1E-999999999"},
    "power of ten in a fraction": {"$fraction": ["1e999999999", 1]},
    "fraction of nothing": {"$fraction": [1, 0]},
    "fraction of fractions": {"$fraction": [1.5, 2]},
    "timedelta": {"$timedelta": [10**12, 0, 0]},
    "infinite timedelta": {"$timedelta": [1e300, 0, 0]},
    "longer timedelta": {"$timedelta": [1, 2, 3, 4]},
    "range without steps": {"$range": [0, 5, 0]},
    "range of text": {"$range": ["a", "b", "c"]},
    "not base64": {"$bytes": "####"},
    "address": {"$ip": ["IPv4Address", 5]},
    "other class of address": {"$ip": ["os.system", "true"]},
    "other class of path": {"$path": ["os.system", "true"]},
    "zone": {"$zone": [99, 0, 0]},
    "float": {"$float": "9_9_"},
    "uuid": {"$uuid": "x"},
    "moment": {"$datetime": ["2025", None, 0, 0]},
    "tuple of text": {"$tuple": "abc"},
    "set of lists": {"$set": [[1]]},
    "deque": {"$deque": [[1], -1]},
    "other factory": {"$defaultdict": ["os.system", [["a", 1]]]},
    "pairs": {"$counter": [[1, 2, 3]]},
    "pattern": {"$pattern": "(a+)+$"},
    "no nodes": {"$deep": []},
    "nodes": {"$deep": {"a": 1}},
    "ref outside": {"$ref": 0},
}


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_what_cannot_be_or_would_be_immense_stays_as_it_is(body):
    assert decode_value(body) == body
    assert decode_state({"a": body}) == {"a": body}


def test_the_limit_of_integers_does_not_depend_on_that_of_the_process():
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        assert decode_value({"$int": "9" * 3_000_000}) == {"$int": "9" * 3_000_000}
        assert decode_value({"$fraction": [{"$int": "9" * 3_000_000}, 1]}) == {
            "$fraction": [{"$int": "9" * 3_000_000}, 1]
        }
    finally:
        sys.set_int_max_str_digits(limit)


def test_a_key_that_is_too_long_to_be_printed_stays_as_it_is():
    key = '$:{"$int":"0x' + "f" * 10_000 + '"}'
    assert decode_state({key: 1}) == {key: 1}


WITHIN = [
    2**10_000 - 1,
    -(2**10_000),
    2**1_000_000,
    Decimal("1E+999999"),
    Decimal("-1E-999999"),
    Decimal("9" * 100_000),
    Decimal("sNaN123"),
    Decimal("Infinity"),
    Decimal("0E-1000010"),
    Fraction(2**99_999, 3),
    timedelta.max,
    timedelta.min,
    range(10**30),
    b"\x00" * 1_000_000,
]


@pytest.mark.parametrize("value", WITHIN, ids=lambda value: f"{type(value).__name__}")
def test_what_python_holds_within_the_limits_comes_back(value):
    back = decode_value(from_json(to_json(encode_value(value))))
    assert type(back) is type(value)
    if isinstance(value, Decimal):
        assert str(back) == str(value)
    else:
        assert back == value


def test_a_fraction_that_would_take_long_to_reduce_is_left_as_its_two_numbers():
    numbers = [1 << 200_000, 3 << 200_000]
    assert decode_value({"$fraction": [{"$int": hex(n)} for n in numbers]}) == {
        "$fraction": numbers
    }


def test_a_float_of_many_digits_is_a_float():
    assert decode_value({"$float": "1" * 1_000_000}) == float("inf")


def test_a_container_of_a_deep_value_is_used_once():
    # Each node occurs twice in the one above: 2^60 if all were visited.
    nodes: list[Any] = [[{"$ref": n + 1}, {"$ref": n + 1}] for n in range(60)]
    back = decode_value({"$deep": [*nodes, ["end"]]})
    levels = 0
    while back != ["end"]:
        first, second = back
        assert second == {"$ref": levels + 1}
        back, levels = first, levels + 1
    assert levels == 60


@pytest.mark.parametrize("ref", [0, 1, -1, 2, 2.5, True, "0", None, [0]])
def test_a_deep_value_holds_nothing_that_is_not_inside_it(ref):
    assert decode_value({"$deep": [[{"$ref": 1}], [{"$ref": ref}]]}) == [[{"$ref": ref}]]


def test_a_deep_value_inside_another_has_containers_of_its_own():
    inner = {"$deep": [[{"$ref": 1}], ["inner"]]}
    assert decode_value({"$deep": [[inner, {"$ref": 1}], ["outer"]]}) == [[["inner"]], ["outer"]]


def nested(levels: int, around: Callable[[Any], Any]) -> Any:
    body: Any = {"end": 1}
    for _ in range(levels):
        body = around(body)
    return body


class Free(BaseModel):
    inner: Any
    number: int = 0


FREE = f"{__name__}.Free"
CALL = "google.genai.types.FunctionCall"

# Inner values are read once, even if the outer one fails. Otherwise each level doubles the time.
AROUND: dict[str, Callable[[Any], Any]] = {
    "sets": lambda body: {"$set": [body]},
    "frozen sets": lambda body: {"$frozenset": [body]},
    "counters": lambda body: {"$counter": [body]},
    "deques": lambda body: {"$deque": [[body], -1]},
    "unknown tags": lambda body: {"$later": body},
    "values": lambda body: {"$value": body},
    "integers": lambda body: {"$int": body},
    "decimals": lambda body: {"$decimal": [body]},
    "enumerations": lambda body: {"$enum": ["google.genai.types.FinishReason", body]},
    "roots": lambda body: {"$root": [FREE, body]},
    "keys": lambda body: {"$deep": [{"$ref": 1}, body]},
    "models that refuse a field": lambda body: {"$class": CALL, "args": {"a": body}, "later": 1},
    "models that refuse every field": lambda body: {"$class": CALL, "args": [body], "name": []},
    "models in models": lambda body: {
        "$class": "google.genai.types.Content",
        "parts": [{"$class": "later.Part", "function_call": {"args": {"a": body}, "later": 1}}],
    },
    "models of the application": lambda body: {"$class": FREE, "inner": body, "number": [], "x": 1},
    "models that miss a field": lambda body: {"$class": FREE, "other": body},
    "unknown classes": lambda body: {"$class": "later.Model", "a": body},
}


@pytest.fixture
def registered():
    with nothing_registered():
        register_classes(Free)
        yield


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
@pytest.mark.usefixtures("registered")
def test_what_fails_again_and_again_inside_itself_is_read_once(around):
    body = nested(40, around)  # 2^40 steps would never end
    assert len(to_json(body)) < 2_000_000
    decode_value(body)
    decode_state({"a": body})
    call = types.FunctionCall(name="f", args={})
    fields = event_to_fields(
        Event(id="e", author="a", content=types.Content(parts=[types.Part(function_call=call)]))
    )
    fields["content"]["parts"][0]["function_call"]["args"] = {"a": body}
    fields["actions"] = {"state_delta": {"a": body}, "later": body}
    assert fields_to_event(fields).author == "a"


def deepest(around: Callable[[str], str]) -> str:
    """The most deeply nested text of its kind that JSON can read."""
    text = "1"
    while True:
        deeper = around(text)
        try:
            from_json(deeper)
        except ValueError:
            return text
        text = deeper


TEXTS: dict[str, Callable[[str], str]] = {
    "lists": lambda text: f"[{text}]",
    "dicts": lambda text: f'{{"a":{text}}}',
    "tuples": lambda text: f'{{"$tuple":[{text}]}}',
    "unknown classes": lambda text: f'{{"$class":"later.Model","a":{text}}}',
    "models": lambda text: f'{{"$class":"{CALL}","args":{{"a":{text}}},"later":1}}',
    "models of the application": lambda text: f'{{"$class":"{FREE}","inner":{text},"x":1}}',
}


@pytest.mark.parametrize("around", TEXTS.values(), ids=TEXTS)
@pytest.mark.usefixtures("registered")
def test_no_depth_that_json_has_is_an_error(around):
    body = from_json(deepest(around))

    def lower(frames: int) -> None:  # as deep in the stack as an application may be when it calls
        if frames:
            lower(frames - 1)
        else:
            decode_value(body)
            decode_state({"a": body, "b": 1})
            fields_to_event({"event_id": "e", "author": "a", "custom_metadata": {"a": body}})

    lower(300)
