"""JSON text: what is sent, and how long it is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosmosservice.data_converters import from_json, to_json, wire_size

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(VALUES)
def test_text_is_read_as_what_was_written(value):
    assert from_json(to_json(value)) == value


@given(st.text())
def test_the_size_is_that_of_what_the_sdk_sends(text):
    assert wire_size(to_json(text)) == len(json.dumps(text))


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_invalid_text_is_escaped(text):
    assert json.loads(to_json({"key": text})) == {"key": text}
